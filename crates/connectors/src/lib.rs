//! The only crate with an HTTP client. It never sees PostgreSQL.

mod embed;
mod http;

pub use embed::EmbedClient;
pub use http::{Http, install_tls};
