//! The door for webhooks. Whoever knocks is verified on the raw bytes before anything is parsed (`guard`), what they bring is
//! put into our words (`normalise`), and they are answered once it is durable (`receive`).

mod channels;
mod committer;
mod guard;
mod limits;
mod normalise;
mod receive;
mod room;

pub use guard::sign;
pub use limits::network;
pub use receive::{BODY_BYTES, Intake, Knock, Received, Refusal};
