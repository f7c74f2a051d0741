//! The files of letters: listed for those that have some, and fetched where they are kept. A page takes only as many letters as their files fit
//! into memory; the others are asked for again by id.

use std::collections::BTreeSet;
use std::time::Duration;

use bytes::Bytes;
use domain::mail::{Attachment, LeftOut, Letter, Note, files};
use futures_util::{StreamExt as _, TryStreamExt as _, stream};

use super::graph::{Graph, Part, Told, lasting};
use super::map::{self, Message};
use super::opened;
use super::wire::{File, Rest};
use crate::pull::http::{Bounds, Refused};
use crate::pull::{Account, PullError};

/// Requests at the same time. Graph allows four to a mailbox, and one is left for others.
const AT_ONCE: usize = 3;
/// The files of one page. One letter alone may have more.
const PAGE_MAX_BYTES: u64 = 48 * 1024 * 1024;
/// Files of one letter: no more are looked at.
const FILES_MAX: usize = 200;
/// The size that Graph tells is that of the store, which is a little more or less.
const BOUNDS: Bounds = Bounds {
    total: Duration::from_secs(300),
    idle: Duration::from_secs(30),
    bytes: (files::MOST_BYTES + 1024 * 1024) as usize,
};
/// The properties of the base type. `contentId` belongs to files alone, and `contentBytes` would be all of them.
const FIELDS: &str = "$select=id,name,contentType,size,isInline&$top=200";

/// The letters with their files, and the ids of those for which there was no room.
pub(super) struct Completed {
    pub messages: Vec<Message>,
    pub left: Vec<String>,
    /// The ids of those whose files Graph does not find. It may only not find them yet.
    pub unsure: Vec<String>,
}

/// A file to fetch: the letter and the file, by their numbers.
struct Wanted {
    message: usize,
    file: usize,
    path: String,
    is_page: bool,
}

/// The reasons why a file has no bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Missing {
    TooLarge,
    NotFound,
    Refused,
}

impl Missing {
    fn left_out(self) -> LeftOut {
        match self {
            Self::TooLarge => LeftOut::TooLarge,
            Self::NotFound | Self::Refused => LeftOut::Unreadable,
        }
    }
}

pub(super) async fn complete(
    graph: &Graph,
    account: &Account<'_>,
    mut messages: Vec<Message>,
) -> Result<Completed, PullError> {
    // What is not read needs no files.
    let needs = |message: &Message| message.has_files && account.places.contains(&message.letter.place);
    let having: Vec<usize> = (0..messages.len()).filter(|index| needs(&messages[*index])).collect();
    let part = |index: &usize| Part::new(format!("/me/messages/{}/attachments?{FIELDS}", messages[*index].id));
    let mut unsure = BTreeSet::new();
    let answers = graph.all(account, &having.iter().map(part).collect::<Vec<_>>()).await?;
    for (index, told) in having.into_iter().zip(answers) {
        match told {
            Told::Body(body) => {
                let list: Rest<File> = graph.parsed(&body)?;
                let found = list.value.0.into_iter().filter_map(map::file_of);
                messages[index].letter.files = found.take(FILES_MAX).collect();
            }
            Told::Refused { status, .. } => {
                messages[index].letter.notes.push(Note::FilesUnread);
                // It went away since, which the next delta tells, or it is to be asked for once more.
                unsure.extend((status == 404).then_some(index));
            }
        }
    }
    let (n_whole, wanted) = fitting(&messages);
    let left = messages.split_off(n_whole).into_iter().map(|message| message.id).collect();
    let fetching = wanted.into_iter().map(|wanted| async move {
        let read = fetched(graph, account, &wanted).await?;
        Ok::<_, PullError>((wanted, read))
    });
    let fetched: Vec<_> = stream::iter(fetching).buffered(AT_ONCE).try_collect().await?;
    // The last one first: a file that is opened may go, and those behind it move up.
    for (Wanted { message, file, .. }, read) in fetched.into_iter().rev() {
        unsure.extend((read == Err(Missing::NotFound)).then_some(message));
        place(&mut messages[message].letter, file, read.map_err(Missing::left_out));
    }
    // Those that are left are asked for again anyway.
    let unsure = unsure.into_iter().filter_map(|index| Some(messages.get(index)?.id.clone())).collect();
    Ok(Completed { messages, left, unsure })
}

/// The number of letters whose files fit into a page, at least one, and the files to fetch.
fn fitting(messages: &[Message]) -> (usize, Vec<Wanted>) {
    let (mut sum, mut wanted) = (0, Vec::new());
    for (index, message) in messages.iter().enumerate() {
        let is_fetched = |file: &Attachment| file.left_out.is_none() || opened::is_opened(file);
        let own: Vec<usize> =
            (0..message.letter.files.len()).filter(|file| is_fetched(&message.letter.files[*file])).collect();
        let bytes: u64 = own.iter().map(|file| message.letter.files[*file].size_bytes).sum();
        if index > 0 && sum + bytes > PAGE_MAX_BYTES {
            return (index, wanted);
        }
        sum += bytes;
        wanted.extend(own.into_iter().map(|file| {
            let Attachment { part, .. } = &message.letter.files[file];
            let path = format!("/me/messages/{}/attachments/{part}/$value", message.id);
            let is_page = files::media_type(&message.letter.files[file]) == "text/html";
            Wanted { message: index, file, path, is_page }
        }));
    }
    (messages.len(), wanted)
}

/// The bytes of a file, or why there are none.
async fn fetched(graph: &Graph, account: &Account<'_>, wanted: &Wanted) -> Result<Result<Vec<u8>, Missing>, PullError> {
    match graph.download(account, &wanted.path, wanted.is_page, BOUNDS).await {
        Ok(bytes) => Ok(Ok(bytes)),
        Err(Refused::TooLarge { .. }) => Ok(Err(Missing::TooLarge)),
        Err(Refused::Lasting { status: 504, .. }) => Err(graph.too_much()),
        Err(Refused::Lasting { status: 404, .. }) => Ok(Err(Missing::NotFound)),
        // Protected by rights.
        Err(Refused::Lasting { .. }) => Ok(Err(Missing::Refused)),
        Err(refused) => Err(lasting(graph, refused)),
    }
}

/// Puts the bytes into the letter.
fn place(letter: &mut Letter, index: usize, read: Result<Vec<u8>, LeftOut>) {
    let Some(file) = letter.files.get_mut(index) else { return };
    match read {
        Err(left_out) => file.left_out = Some(left_out),
        Ok(bytes) if opened::is_opened(file) => opened::open(letter, index, &bytes),
        Ok(bytes) => {
            file.size_bytes = bytes.len() as u64;
            file.content = Some(Bytes::from(bytes));
        }
    }
}
