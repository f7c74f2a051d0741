//! Sources: accounts at providers that are read page by page into memory, and what people do with them. The lanes that read them are
//! [`ingest`](crate::lanes::ingest), [`client_facts`](crate::lanes::client_facts) and [`forget`](crate::lanes::forget).

pub(crate) mod again;
pub mod connect;
pub mod jobs;
mod pace;
pub mod providers;
pub mod settings;
pub mod tokens;
pub mod words;

pub use connectors::guide;
pub use connectors::pull::{Provider, is_named, spec};

pub use self::pace::Paced;
pub(crate) use self::pace::gates;
pub use self::providers::{Providers, UnknownProvider};
