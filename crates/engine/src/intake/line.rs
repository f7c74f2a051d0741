//! The line before the committer. Tenants take turns, so that what one of them sends delays another by one turn and not by all of it.

use std::collections::{HashMap, VecDeque};

use domain::TenantId;

/// Sessions of the committer.
pub(super) const SESSIONS: usize = 3;
/// Groups under way that have events of one tenant. One session is left for the others, so their events need not wait for its groups.
const MOST_GROUPS: usize = SESSIONS - 1;
/// Largest group of one transaction.
const GROUP_ROWS: usize = 256;
const GROUP_BYTES: usize = 4 << 20;

/// Everything that waits, by tenant.
pub(super) struct Line<T> {
    tenants: HashMap<TenantId, Tenant<T>>,
    /// Those with something that waits, in the order of their turns.
    turns: VecDeque<TenantId>,
}

struct Tenant<T> {
    /// Each with its size.
    waiting: VecDeque<(usize, T)>,
    /// Groups under way.
    groups: usize,
}

/// A group that is committed together, and its tenants.
pub(super) struct Taken<T> {
    pub all: Vec<T>,
    pub of: Vec<TenantId>,
}

impl<T> Default for Line<T> {
    fn default() -> Self {
        Self { tenants: HashMap::new(), turns: VecDeque::new() }
    }
}

impl<T> Line<T> {
    pub fn push(&mut self, tenant_id: TenantId, bytes: usize, one: T) {
        let tenant = self.tenants.entry(tenant_id).or_insert_with(|| Tenant { waiting: VecDeque::new(), groups: 0 });
        if tenant.waiting.is_empty() {
            self.turns.push_back(tenant_id);
        }
        tenant.waiting.push_back((bytes, one));
    }

    /// Takes the next group; empty when nothing may be taken now. `idle`: further sessions without work, which get their part.
    ///
    /// Of several tenants each adds as many events as the one that has the fewest: nobody's event waits for another's long list. The rest
    /// is the next group's.
    pub fn take(&mut self, idle: usize) -> Taken<T> {
        let open: Vec<TenantId> = self.turns.iter().copied().filter(|id| self.is_open(id)).collect();
        let lengths = || open.iter().map(|id| self.tenants.get(id).map_or(0, |tenant| tenant.waiting.len()));
        let (n_waiting, fewest) = (lengths().sum::<usize>(), lengths().min().unwrap_or(0));
        let others = match open.as_slice() {
            [one] => idle.min(MOST_GROUPS - 1 - self.tenants.get(one).map_or(0, |tenant| tenant.groups)),
            _ => idle,
        };
        let most = n_waiting.div_ceil(1 + others).min(GROUP_ROWS);
        let mut taken = Taken { all: Vec::with_capacity(most), of: Vec::new() };
        let mut bytes = 0;
        'group: for round in 0..fewest {
            for id in &open {
                let Some(tenant) = self.tenants.get_mut(id) else { continue };
                let next = tenant.waiting.front().map_or(0, |(bytes, _)| *bytes);
                if taken.all.len() >= most || (!taken.all.is_empty() && bytes + next > GROUP_BYTES) {
                    break 'group;
                }
                bytes += next;
                taken.all.extend(tenant.waiting.pop_front().map(|(_, one)| one));
                if round == 0 {
                    taken.of.push(*id);
                    tenant.groups += 1;
                }
            }
        }
        self.turns.retain(|id| !taken.of.contains(id));
        let left = taken.of.iter().filter(|id| self.tenants.get(id).is_some_and(|tenant| !tenant.waiting.is_empty()));
        self.turns.extend(left.copied().collect::<Vec<_>>());
        taken
    }

    /// Something waits that may be taken now.
    pub fn has_next(&self) -> bool {
        self.turns.iter().any(|id| self.is_open(id))
    }

    /// A group with events of these tenants has ended.
    pub fn end(&mut self, of: &[TenantId]) {
        for id in of {
            if let Some(tenant) = self.tenants.get_mut(id) {
                tenant.groups = tenant.groups.saturating_sub(1);
                if tenant.groups == 0 && tenant.waiting.is_empty() {
                    self.tenants.remove(id);
                }
            }
        }
    }

    fn is_open(&self, id: &TenantId) -> bool {
        self.tenants.get(id).is_some_and(|tenant| tenant.groups < MOST_GROUPS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(of: &[(TenantId, usize)]) -> Line<TenantId> {
        let mut line = Line::default();
        for (id, n) in of {
            (0..*n).for_each(|_| line.push(*id, 1, *id));
        }
        line
    }

    fn count(taken: &Taken<TenantId>, id: TenantId) -> usize {
        taken.all.iter().filter(|of| **of == id).count()
    }

    #[test]
    fn one_tenant_alone_fills_groups_and_shares_them_with_one_idle_session() {
        let flood = TenantId::new();
        let mut busy = line(&[(flood, 1_000)]);
        assert_eq!(busy.take(0).all.len(), GROUP_ROWS);
        let mut idle = line(&[(flood, 100)]);
        assert_eq!(idle.take(2).all.len(), 50, "the third session is not for the same tenant");
        assert_eq!(idle.take(1).all.len(), 50);
    }

    /// F38: at the door.
    #[test]
    fn a_tenant_with_a_long_list_leaves_a_session_to_the_others_and_takes_turns_with_them() {
        let (flood, few) = (TenantId::new(), TenantId::new());
        let mut line = line(&[(flood, 2_000)]);
        let under_way = [line.take(0), line.take(0)];
        assert!(line.take(0).all.is_empty() && !line.has_next(), "a third group of the same tenant");
        line.push(few, 1, few);
        assert!(line.has_next());
        assert_eq!(line.take(0).all, [few], "it waits for nobody");
        line.end(&under_way[0].of);
        line.push(few, 1, few);
        line.push(few, 1, few);
        let mixed = line.take(0);
        assert_eq!((count(&mixed, few), count(&mixed, flood)), (2, 2), "no more of the flood than of the others");
        assert!(!line.has_next(), "the flood is in two groups again");
        line.end(&mixed.of);
        assert_eq!(line.take(0).all.len(), GROUP_ROWS);
    }

    #[test]
    fn more_tenants_than_a_group_has_places_come_one_after_the_other() {
        let ids: Vec<TenantId> = (0..2 * GROUP_ROWS).map(|_| TenantId::new()).collect();
        let mut line = line(&ids.iter().map(|id| (*id, 2)).collect::<Vec<_>>());
        let [first, second] = [line.take(0), line.take(0)];
        assert_eq!(first.all, ids[..GROUP_ROWS]);
        assert_eq!(second.all, ids[GROUP_ROWS..]);
        assert_eq!(line.take(0).all, first.all, "then it is the first one's turn again");
    }

    #[test]
    fn a_group_is_bounded_in_bytes_and_nothing_is_left_behind() {
        let (mut line, id) = (Line::default(), TenantId::new());
        for size in [GROUP_BYTES + 1, GROUP_BYTES, 1, 1] {
            line.push(id, size, size);
        }
        for expected in [vec![GROUP_BYTES + 1], vec![GROUP_BYTES], vec![1, 1]] {
            let taken = line.take(0);
            assert_eq!(taken.all, expected);
            line.end(&taken.of);
        }
        assert!(line.take(0).all.is_empty() && line.tenants.is_empty() && line.turns.is_empty());
    }
}
