//! HTTP: the API, the event stream and the dashboard. The only crate with axum and templates.
//!
//! A request passes one middleware (`edge`), then its handler. What goes wrong is an `api::error::ApiError`, and the edge
//! writes it down as the reader wants it: problem+json for programs, a page for people.

pub mod api;
mod app;
mod caps;
mod edge;
mod heads;
mod mcp;
mod realtime;
mod ring;
mod server;
mod terms;
mod ui;

pub use server::serve;
