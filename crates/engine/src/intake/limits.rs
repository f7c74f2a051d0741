//! Counts per minute, by any key. Each process counts for itself.

use std::collections::HashMap;
use std::hash::Hash;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

const WINDOW: Duration = Duration::from_secs(60);
const MOST_COUNTED: usize = 16_384;

/// Counts of the current minute.
pub struct PerMinute<K>(Mutex<HashMap<K, (Instant, u32)>>);

impl<K> Default for PerMinute<K> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<K: Eq + Hash> PerMinute<K> {
    /// Counts one more; an error when that is over `most`, with how long to wait.
    pub fn count(&self, key: K, most: u32) -> Result<(), Duration> {
        let now = Instant::now();
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if counts.len() >= MOST_COUNTED {
            counts.retain(|_, (since, _)| now - *since < WINDOW);
            if counts.len() >= MOST_COUNTED {
                counts.clear(); // an attack; memory stays bounded all the same
            }
        }
        let (since, n) = counts.entry(key).or_insert((now, 0));
        if now - *since >= WINDOW {
            (*since, *n) = (now, 0);
        }
        *n = n.saturating_add(1);
        if *n > most { Err(WINDOW.saturating_sub(now - *since)) } else { Ok(()) }
    }

    /// How long to wait, if `most` are counted already.
    pub fn is_over(&self, key: &K, most: u32) -> Option<Duration> {
        let counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (since, n) = counts.get(key)?;
        let left = WINDOW.checked_sub(since.elapsed())?;
        (*n >= most).then_some(left)
    }
}

/// The network that an address counts for. A host with one IPv6 address has 2⁶⁴ of them.
pub fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => IpAddr::V6(Ipv6Addr::from(u128::from(address) >> 64 << 64)),
        v4 => v4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_over_waits_for_the_minute_to_end_and_others_do_not() {
        let counts = PerMinute::default();
        for _ in 0..3 {
            assert_eq!(counts.is_over(&"a", 3), None);
            assert_eq!(counts.count("a", 3), Ok(()));
        }
        let wait = counts.count("a", 3).expect_err("over");
        assert!(wait <= WINDOW && wait > WINDOW / 2, "{wait:?}");
        assert!(counts.is_over(&"a", 3).is_some());
        assert_eq!(counts.count("b", 3), Ok(()));
    }

    #[test]
    fn the_addresses_of_one_host_count_as_one() {
        let of = |text: &str| network(text.parse().expect("an address"));
        assert_eq!(of("2001:db8::1"), of("2001:db8::ffff"));
        assert_ne!(of("2001:db8::1"), of("2001:db8:1::1"));
        assert_eq!(of("::ffff:192.0.2.1"), of("192.0.2.1"));
        assert_ne!(of("192.0.2.1"), of("192.0.2.2"));
    }

    #[test]
    fn memory_is_bounded_however_many_are_counted() {
        let counts = PerMinute::default();
        for n in 0..3 * MOST_COUNTED {
            let _ = counts.count(n, 1);
        }
        assert!(counts.0.lock().expect("counts").len() <= MOST_COUNTED);
    }
}
