//! A conversation: its messages, the oldest first, folded but for the newest.

use askama::Template;
use axum::extract::State;
use axum::response::IntoResponse;
use chrono::{DateTime, Utc};
use domain::DocumentId;
use domain::shown::{clipped, plural, shown_lines};
use engine::mail::reading::{self, Message};
use uuid::Uuid;

use super::document::{MOST_TEXT_CHARS, cut};
use super::layout::Layout;
use super::mail::{HERE, MailRow, called, subject};
use super::{Visitor, html};
use crate::api::error::ApiError;
use crate::api::extract::Path;
use crate::app::App;

#[derive(Template)]
#[template(path = "thread.html")]
struct ThreadPage {
    layout: Layout,
    subject: String,
    /// The number of its messages, in words.
    count: String,
    mailbox: (String, String),
    messages: Vec<MessageRow>,
}

struct MessageRow {
    row: MailRow,
    /// Its sender, also in the owner's own messages.
    sender: String,
    to: String,
    text: String,
    quoted: String,
    is_newest: bool,
}

pub(crate) async fn show(
    State(app): State<App>,
    visitor: Visitor,
    Path(id): Path<Uuid>,
) -> Result<impl IntoResponse, ApiError> {
    let conversation = reading::conversation(&app.env, &visitor, DocumentId(id)).await?;
    let (now, letters) = (app.env.clock.now(), &conversation.letters);
    // What it was about in the beginning; answers add their "Re:".
    let named = letters.iter().find_map(|message| message.line.head.subject.as_deref());
    let subject = subject(named);
    let n = i64::try_from(letters.len()).unwrap_or(i64::MAX);
    let count = plural(n, "message", "messages");
    html(&ThreadPage {
        layout: Layout::new(&visitor, now, subject.clone(), HERE),
        subject,
        count: if conversation.is_cut { format!("The newest {count}") } else { count },
        mailbox: (format!("/connections/accounts/{}", conversation.source_id), clipped(&conversation.source_name, 80)),
        messages: letters
            .iter()
            .enumerate()
            .map(|(nth, message)| row(message, nth + 1 == letters.len(), now))
            .collect(),
    })
}

fn row(message: &Message, is_newest: bool, now: DateTime<Utc>) -> MessageRow {
    let text = |text: &str| shown_lines(&cut(text.trim_matches('\n'), MOST_TEXT_CHARS));
    let head = &message.line.head;
    let to: Vec<String> = head.to.iter().take(5).map(called).collect();
    let more = if head.to.len() > to.len() { format!(" and {} more", head.to.len() - to.len()) } else { String::new() };
    MessageRow {
        row: MailRow::new(&message.line, now),
        sender: head.from.as_ref().map_or_else(|| "Nobody".into(), called),
        to: if to.is_empty() { String::new() } else { format!("to {}{more}", to.join(", ")) },
        text: text(&message.letter.text),
        quoted: text(message.letter.quoted.as_deref().unwrap_or_default()),
        is_newest,
    }
}
