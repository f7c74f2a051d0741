//! The only crate with an HTTP client. It never sees PostgreSQL.

mod http;

pub use http::Http;
