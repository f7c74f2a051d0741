//! Sources: accounts at providers that are read page by page into memory, and what a person does about them. The lanes that do the reading
//! are [`ingest`](crate::work::lanes::ingest), [`client_facts`](crate::work::lanes::client_facts) and [`forget`](crate::work::lanes::forget).

pub mod connect;
pub mod decisions;
pub mod jobs;
mod pace;
pub mod providers;
pub mod tokens;
pub mod words;

pub use connectors::pull::is_named;

pub use self::pace::Paced;
pub use self::providers::Providers;
