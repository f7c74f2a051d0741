//! The only crate with an HTTP client. It never sees PostgreSQL.

pub mod guide;
mod http;
pub mod models;
pub mod oidc;
pub mod outside;
pub mod pull;
pub mod relay;
mod rest;

pub use http::{Http, install_tls};
pub use outside::Outside;
pub use rest::{Pieces, Rest, RestError};
