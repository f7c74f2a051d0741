//! The door for webhooks. Whoever knocks is verified on the raw bytes before anything is parsed (`guard`), what they bring is
//! put into our words (`normalise`), and they are answered once it is durable (`receive`).

mod body;
mod channels;
mod committer;
mod guard;
mod limits;
mod mail;
mod normalise;
mod receive;
mod refusals;
mod room;
mod sample;

pub use guard::{are_networks, sign, sign_standard, sign_twilio};
pub use limits::network;
pub use receive::{Intake, Knock, Received, Refusal, Visit};
pub use sample::{Said, Sample, sample, sample_of, url};
