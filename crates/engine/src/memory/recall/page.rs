//! A page of hits: documents are read with their texts, in growing numbers, until the page is full. Texts that are the same, or nearly, are one hit.

use std::collections::HashMap;

use domain::text::Likeness;
use store::Tx;
use store::memory::{self, Found};
use uuid::Uuid;

use super::ranking::Ranked;

/// At least so many documents are read before the first ones are chosen: their texts decide between near equals.
const READ: usize = 20;

/// Documents whose best chunks have the same text, or nearly.
pub(super) struct Group {
    /// The best of them, by which the group has its place.
    pub ranked: Ranked,
    /// The newest of them, which is shown.
    pub newest: Found,
    /// The others, newest first.
    pub others: Vec<Found>,
    likeness: Likeness,
}

impl Group {
    pub fn document_ids(&self) -> impl Iterator<Item = Uuid> {
        std::iter::once(self.newest.document_id).chain(self.others.iter().map(|found| found.document_id))
    }
}

/// The order in which documents that were read are shown.
pub(super) enum Order<'a> {
    /// As they are given.
    Given,
    /// By score, after a part that depends on the text was added.
    Scored(&'a (dyn Fn(&Found) -> f64 + Sync)),
}

/// Groups in their order, and the documents that were left out because an earlier page has shown their text.
#[derive(Default)]
pub(super) struct Page {
    pub groups: Vec<Group>,
    pub copies: Vec<Uuid>,
}

/// Reads the first `n_groups` groups of the ranked documents, or all there are. Those that are gone meanwhile are left out, and so are those that are
/// like one of the `shown`.
pub(super) async fn read(
    tx: &mut Tx,
    ranked: &[Ranked],
    n_groups: usize,
    order: &Order<'_>,
    shown: &[Group],
) -> store::Result<Page> {
    let mut read: Vec<(Ranked, Found)> = Vec::new();
    let (mut from, mut until) = (0, n_groups.max(READ).min(ranked.len()));
    loop {
        let next = &ranked[from..until];
        let ids: Vec<(Uuid, Uuid)> =
            next.iter().map(|ranked| (ranked.fused.document_id, ranked.fused.chunk_id)).collect();
        let found = memory::found(tx, &ids).await?;
        let mut found: HashMap<Uuid, Found> = found.into_iter().map(|found| (found.document_id, found)).collect();
        for ranked in next {
            let Some(found) = found.remove(&ranked.fused.document_id) else { continue };
            let mut ranked = ranked.clone();
            if let Order::Scored(part) = order {
                ranked.fused.score += part(&found);
            }
            read.push((ranked, found));
        }
        if let Order::Scored(_) = order {
            read.sort_by(|(a, _), (b, _)| {
                b.fused.score.total_cmp(&a.fused.score).then(a.fused.document_id.cmp(&b.fused.document_id))
            });
        }
        let page = grouped(&read, shown);
        if page.groups.len() >= n_groups || until == ranked.len() {
            return Ok(page);
        }
        (from, until) = (until, (until * 2).min(ranked.len()));
    }
}

/// Groups what is alike, in the order of the best of each group.
fn grouped(read: &[(Ranked, Found)], shown: &[Group]) -> Page {
    let mut page = Page::default();
    for (ranked, found) in read {
        let likeness = Likeness::of(&found.text);
        let is_same = |group: &Group| group.ranked.exact == ranked.exact && group.likeness.is_alike(&likeness);
        if shown.iter().any(is_same) {
            page.copies.push(found.document_id);
        } else if let Some(group) = page.groups.iter_mut().find(|group| is_same(group)) {
            group.others.push(found.clone());
        } else {
            let (ranked, newest) = (ranked.clone(), found.clone());
            page.groups.push(Group { ranked, newest, others: Vec::new(), likeness });
        }
    }
    for group in &mut page.groups {
        group.others.push(group.newest.clone());
        group.others.sort_by(|a, b| b.at.cmp(&a.at).then(a.document_id.cmp(&b.document_id)));
        group.newest = group.others.remove(0);
    }
    page
}

#[cfg(test)]
mod tests {
    use chrono::{DateTime, TimeDelta};
    use domain::DocumentType;

    use super::super::fusion::Fused;
    use super::*;

    #[test]
    fn the_same_text_is_one_hit_and_its_newest_document_is_shown() {
        let read: Vec<(Ranked, Found)> =
            [(1, 5, "Late delivery."), (2, 9, "late  delivery"), (3, 1, "Other words"), (4, 7, "Late delivery!")]
                .map(|(id, day, text)| {
                    let (document_id, chunk_id) = (Uuid::from_u128(id), Uuid::from_u128(100 + id));
                    let fused = Fused {
                        document_id,
                        chunk_id,
                        score: 1.0,
                        keyword_rank: None,
                        vector_rank: None,
                        similarity: None,
                    };
                    let at = DateTime::UNIX_EPOCH + TimeDelta::days(day);
                    let found = Found {
                        document_id,
                        chunk_id,
                        title: None,
                        document_type: DocumentType::Note,
                        source_id: Uuid::nil(),
                        source_name: String::new(),
                        external_id: String::new(),
                        at,
                        stored_at: at,
                        ordinal: 0,
                        page: None,
                        page_label: None,
                        file_kind: None,
                        n_chunks: 1,
                        url: None,
                        text: text.into(),
                    };
                    (Ranked { fused, n: 0, exact: Vec::new() }, found)
                })
                .into();
        let groups = grouped(&read, &[]).groups;
        let ids: Vec<Vec<u128>> =
            groups.iter().map(|group| group.document_ids().map(|id| id.as_u128()).collect()).collect();
        assert_eq!(ids, [vec![2, 4, 1], vec![3]]);
        assert_eq!(groups[0].ranked.fused.document_id.as_u128(), 1, "it has the place of the best");
        let mut apart = read.clone();
        apart[1].0.exact = vec!["2041".into()];
        assert_eq!(
            grouped(&apart, &[]).groups.len(),
            3,
            "one has the number that was asked for, and the other does not"
        );
        let later = grouped(&read[1..], &grouped(&read[..1], &[]).groups);
        let left: Vec<u128> = later.groups.iter().flat_map(Group::document_ids).map(|id| id.as_u128()).collect();
        assert_eq!((left, later.copies.len()), (vec![3], 2), "copies of what an earlier page has shown");
    }
}
