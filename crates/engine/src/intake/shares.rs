//! Shares of the waiting room. A sender that fills a share has filled only that: a channel cannot take all that its tenant may have, nor a tenant
//! all there is.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::Hash;

use domain::{ChannelId, TenantId};

/// The whole room, for everybody. A channel alone gets a third of it.
const MOST: Amount = Amount { rows: 6_144, bytes: 192 << 20, files: 24 };

/// Whose share it is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Owner {
    pub tenant_id: TenantId,
    pub channel_id: ChannelId,
}

/// A part of the room.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Amount {
    /// Verified events that wait for the committer.
    pub rows: usize,
    /// Bytes of bodies and events in memory.
    pub bytes: usize,
    /// Large bodies, each in files of its own.
    pub files: usize,
}

impl Amount {
    fn each(self, other: Self, of: impl Fn(usize, usize) -> usize) -> Self {
        Self { rows: of(self.rows, other.rows), bytes: of(self.bytes, other.bytes), files: of(self.files, other.files) }
    }
}

/// The parts of the room that are held: by everybody, by each tenant, and by each channel.
#[derive(Default)]
pub(super) struct Shares {
    all: Amount,
    tenants: HashMap<TenantId, Amount>,
    channels: HashMap<ChannelId, Amount>,
}

impl Shares {
    /// Changes what one request holds. False: that would be too much, and nothing is changed.
    ///
    /// A channel, its tenant and everybody may together hold no more than there is. So each tenant can hold at most what is free
    /// for everybody, and each channel at most what is free for its tenant: each leaves room for the next.
    pub fn change(&mut self, owner: Owner, from: Amount, to: Amount) -> bool {
        let held = [
            Some(self.all),
            self.tenants.get(&owner.tenant_id).copied(),
            self.channels.get(&owner.channel_id).copied(),
        ];
        let more = to.each(from, usize::saturating_sub);
        let fits = |of: fn(&Amount) -> usize| {
            let held: usize = held.iter().flatten().map(of).sum();
            of(&more) == 0 || held + 3 * of(&more) <= of(&MOST)
        };
        if !(fits(|amount| amount.rows) && fits(|amount| amount.bytes) && fits(|amount| amount.files)) {
            return false;
        }
        self.all = moved(self.all, from, to);
        change_one(&mut self.tenants, owner.tenant_id, from, to);
        change_one(&mut self.channels, owner.channel_id, from, to);
        true
    }
}

fn moved(held: Amount, from: Amount, to: Amount) -> Amount {
    held.each(to, usize::saturating_add).each(from, usize::saturating_sub)
}

/// Changes what one channel or tenant holds. One that holds nothing is forgotten.
fn change_one<K: Eq + Hash>(held: &mut HashMap<K, Amount>, key: K, from: Amount, to: Amount) {
    match held.entry(key) {
        Entry::Occupied(mut one) => {
            *one.get_mut() = moved(*one.get(), from, to);
            if *one.get() == Amount::default() {
                one.remove();
            }
        }
        Entry::Vacant(none) if to != Amount::default() => drop(none.insert(to)),
        Entry::Vacant(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOTHING: Amount = Amount { rows: 0, bytes: 0, files: 0 };

    fn owner() -> Owner {
        Owner { tenant_id: TenantId::new(), channel_id: ChannelId::new() }
    }

    /// How many requests of this size find room, at most `most`.
    fn fill(shares: &mut Shares, owner: Owner, one: Amount, most: usize) -> usize {
        (0..most).take_while(|_| shares.change(owner, NOTHING, one)).count()
    }

    #[test]
    fn a_channel_gets_a_third_and_leaves_room_for_its_tenants_other_channels_and_for_other_tenants() {
        for (one, third) in [
            (Amount { rows: 1, ..NOTHING }, 2_048),
            (Amount { bytes: 1 << 20, ..NOTHING }, 64),
            (Amount { files: 1, ..NOTHING }, 8),
        ] {
            let (mut shares, first) = (Shares::default(), owner());
            assert_eq!(fill(&mut shares, first, one, usize::MAX), third, "{one:?}");
            let sibling = Owner { channel_id: ChannelId::new(), ..first };
            assert!(fill(&mut shares, owner(), one, 1) == 1, "{one:?}: another tenant finds no room");
            assert!(fill(&mut shares, sibling, one, 1) == 1, "{one:?}: another channel of the tenant finds no room");
        }
    }

    /// S32.
    #[test]
    fn ten_tenants_that_take_all_they_can_leave_room_for_the_largest_event_of_another() {
        let (mut shares, one) = (Shares::default(), Amount { bytes: 1 << 10, ..NOTHING });
        for _ in 0..10 {
            assert!(fill(&mut shares, owner(), one, usize::MAX) > 1_000);
        }
        assert!(shares.all.bytes > MOST.bytes / 2, "{:?} of the room is used", shares.all);
        assert!(shares.change(owner(), NOTHING, Amount { bytes: 1 << 20, ..NOTHING }));
    }

    #[test]
    fn what_is_given_back_is_free_again_and_a_change_that_does_not_fit_changes_nothing() {
        let (mut shares, owner) = (Shares::default(), owner());
        let some = Amount { rows: 1, bytes: 20 << 20, files: 1 };
        assert!(shares.change(owner, NOTHING, some));
        assert!(!shares.change(owner, some, Amount { rows: 0, bytes: 80 << 20, files: 0 }), "more than a third");
        assert_eq!(shares.all, some);
        assert!(shares.change(owner, some, Amount { rows: 2, bytes: 10, files: 0 }), "more of one, less of others");
        assert!(shares.change(owner, Amount { rows: 2, bytes: 10, files: 0 }, NOTHING));
        assert_eq!(shares.all, NOTHING);
        assert!(shares.tenants.is_empty() && shares.channels.is_empty());
    }
}
