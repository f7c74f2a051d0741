//! The folders of a mailbox: their names, and the kind of place that each is. Hidden folders and search folders are left out.

use std::collections::{BTreeMap, HashMap};

use domain::mail::Place;
use serde::{Deserialize, Serialize};

use super::graph::{Graph, Part, Told};
use super::wire::{MailFolder, Named, Rest};
use crate::pull::{Account, PullError, record};

/// Folders that Outlook itself makes, under names that are the same in every language.
pub(super) const WELL_KNOWN: [(&str, &str, Place); 6] = [
    ("inbox", "Inbox", Place::Inbox),
    ("sentitems", "Sent Items", Place::Sent),
    ("drafts", "Drafts", Place::Drafts),
    ("outbox", "Outbox", Place::Drafts),
    ("junkemail", "Junk Email", Place::Spam),
    ("deleteditems", "Deleted Items", Place::Deleted),
];

/// Folders beyond that are a circle, or a mailbox that nobody reads.
const MOST: usize = 5_000;
const FIELDS: &str = "$select=id,displayName,parentFolderId,childFolderCount,isHidden&$top=250";

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Folder {
    pub name: String,
    pub place: Place,
}

/// By id.
pub(super) type Folders = BTreeMap<String, Folder>;

/// Reads all folders, level by level.
pub(super) async fn read(graph: &Graph, account: &Account<'_>) -> Result<Folders, PullError> {
    let mut tree: HashMap<String, MailFolder> = HashMap::new();
    let mut special: HashMap<String, Place> = HashMap::new();
    let mut parts = vec![Part::new(format!("/me/mailFolders?{FIELDS}"))];
    parts.extend(WELL_KNOWN.iter().map(|(name, ..)| Part::new(format!("/me/mailFolders/{name}?$select=id"))));
    let mut is_first = true;
    while !parts.is_empty() {
        let answers = graph.all(account, &parts).await?;
        let mut next = Vec::new();
        for (index, told) in answers.into_iter().enumerate() {
            let body = match told {
                Told::Body(body) => body,
                // A folder that this mailbox lacks, or that went away meanwhile.
                Told::Refused { status: 404, .. } if index > 0 || !is_first => continue,
                Told::Refused { status, code } => {
                    let code = code.unwrap_or_else(|| format!("http_{status}"));
                    return Err(PullError::Forbidden { who: graph.who(), code });
                }
            };
            if is_first && index > 0 {
                let named: Named = graph.parsed(&body)?;
                special.insert(named.id, WELL_KNOWN[index - 1].2);
                continue;
            }
            let list: Rest<MailFolder> = graph.parsed(&body)?;
            if let Some(link) = &list.next {
                next.push(Part::new(graph.below(link)?));
            }
            for folder in list.value.0 {
                if !is_read(&folder) || tree.contains_key(&folder.id) {
                    continue;
                }
                if folder.child_folder_count.unwrap_or(0) > 0 {
                    next.push(Part::new(format!("/me/mailFolders/{}/childFolders?{FIELDS}", folder.id)));
                }
                tree.insert(folder.id.clone(), folder);
            }
        }
        if tree.len() > MOST {
            let what = format!("{} has more than {MOST} folders", graph.who());
            return Err(PullError::Unreadable { what, raw: String::new() });
        }
        (parts, is_first) = (next, false);
    }
    let folder = |(id, folder): (&String, &MailFolder)| {
        let name = folder.display_name.clone().unwrap_or_default();
        (id.clone(), Folder { name, place: place(id, &tree, &special) })
    };
    Ok(tree.iter().map(folder).collect())
}

fn is_read(folder: &MailFolder) -> bool {
    let is_search = folder.kind.as_deref().is_some_and(|kind| kind.ends_with("mailSearchFolder"));
    !is_search && folder.is_hidden != Some(true) && record::is_plain_id(&folder.id)
}

/// A folder inside one of Outlook's own is the same kind of place. Only those in the inbox are places of their own.
fn place(id: &str, tree: &HashMap<String, MailFolder>, special: &HashMap<String, Place>) -> Place {
    if let Some(place) = special.get(id) {
        return *place;
    }
    let mut at = tree.get(id);
    for _ in 0..tree.len() {
        let Some(parent) = at.and_then(|folder| folder.parent_folder_id.as_deref()) else { break };
        match special.get(parent) {
            Some(Place::Inbox) | None => at = tree.get(parent),
            Some(place) => return *place,
        }
    }
    Place::Other
}

/// The order in which folders are read: what people look for first comes first.
pub(super) fn rank(place: Place) -> u8 {
    match place {
        Place::Inbox => 0,
        Place::Sent => 1,
        Place::Other => 2,
        Place::Drafts => 3,
        Place::Spam => 4,
        Place::Deleted => 5,
    }
}
