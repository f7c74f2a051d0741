//! Long lists of postings that this process has read before. A segment is written once and its number is never given out again, so a list is the
//! same for as long as anybody asks for it. The words that most chunks have are in most questions: their lists are hundreds of kilobytes, and reading
//! them would be most of a search.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use store::Tx;
use store::memory::{self, Looked};

/// Longer lists are kept here. A shorter one is stored in its row, and comes with the row at no further cost.
pub(super) const LONG: usize = 400;
/// So much is kept. Beyond it, those go that were not asked for lately.
const MOST_BYTES: usize = 64 << 20;

/// Cheap to clone; all clones are the same.
#[derive(Clone, Default)]
pub struct Lists(Arc<Mutex<Known>>);

#[derive(Default)]
struct Known {
    /// By segment and lexeme.
    lists: HashMap<i64, HashMap<Box<str>, Entry>>,
    bytes: usize,
    /// The number of look-ups so far.
    now: u64,
}

struct Entry {
    list: Arc<[u8]>,
    used: u64,
}

impl Lists {
    /// Adds the long lists that the question needs, and reads from the database those that are not known. Returns whether all are there: a segment
    /// may have been merged into another one since the look, and its lists with it.
    pub(super) async fn add_to(&self, tx: &mut Tx, looked: &mut Looked) -> store::Result<bool> {
        let missing: Vec<(usize, i64, String)> =
            looked.missing().map(|(at, segment, lexeme)| (at, segment, lexeme.to_owned())).collect();
        let mut unknown = Vec::new();
        {
            let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            known.now += 1;
            for (at, segment, lexeme) in &missing {
                match known.get(*segment, lexeme) {
                    Some(list) => looked.add(*at, list),
                    None => unknown.push((*at, *segment, lexeme.as_str())),
                }
            }
        }
        if unknown.is_empty() {
            return Ok(true);
        }
        let wanted: Vec<(i64, &str)> = unknown.iter().map(|(_, segment, lexeme)| (*segment, *lexeme)).collect();
        let lists = memory::posting_lists(tx, &wanted).await?;
        if lists.len() != wanted.len() || lists.iter().any(Vec::is_empty) {
            return Ok(false);
        }
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for ((at, segment, lexeme), list) in unknown.into_iter().zip(lists) {
            let list: Arc<[u8]> = list.into();
            looked.add(at, list.clone());
            known.insert(segment, lexeme, list);
        }
        known.shrink(MOST_BYTES);
        Ok(true)
    }
}

impl Known {
    fn get(&mut self, segment: i64, lexeme: &str) -> Option<Arc<[u8]>> {
        let entry = self.lists.get_mut(&segment)?.get_mut(lexeme)?;
        entry.used = self.now;
        Some(entry.list.clone())
    }

    fn insert(&mut self, segment: i64, lexeme: &str, list: Arc<[u8]>) {
        self.bytes += list.len();
        let entry = Entry { list, used: self.now };
        let before = self.lists.entry(segment).or_default().insert(lexeme.into(), entry);
        self.bytes -= before.map_or(0, |entry| entry.list.len());
    }

    /// If they have more than `most` bytes, removes those that were not used for the longest time, until half of it is free.
    fn shrink(&mut self, most: usize) {
        if self.bytes <= most {
            return;
        }
        let mut by_use: Vec<(u64, usize)> =
            self.lists.values().flat_map(HashMap::values).map(|entry| (entry.used, entry.list.len())).collect();
        by_use.sort_unstable_by(|a, b| b.cmp(a));
        let mut kept = 0;
        let oldest = by_use.into_iter().take_while(|(_, bytes)| {
            kept += bytes;
            kept <= most / 2
        });
        let since = oldest.last().map_or(u64::MAX, |(used, _)| used);
        for lists in self.lists.values_mut() {
            lists.retain(|_, entry| entry.used >= since);
        }
        self.lists.retain(|_, lists| !lists.is_empty());
        self.bytes = self.lists.values().flat_map(HashMap::values).map(|entry| entry.list.len()).sum();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_that_nobody_asks_for_go_first() {
        let mut known = Known::default();
        for segment in 0..10 {
            known.now += 1;
            known.insert(segment, "word", vec![0; 100].into());
            known.insert(segment, "word", vec![0; 100].into());
        }
        assert_eq!(known.bytes, 1_000, "written twice, kept once");
        known.now += 1;
        assert!(known.get(3, "word").is_some() && known.get(3, "other").is_none() && known.get(77, "word").is_none());
        known.shrink(1_000);
        assert_eq!(known.bytes, 1_000, "there is room");
        known.shrink(999);
        let kept: Vec<i64> = (0..10).filter(|segment| known.get(*segment, "word").is_some()).collect();
        assert_eq!((kept, known.bytes), (vec![3, 7, 8, 9], 400));
    }
}
