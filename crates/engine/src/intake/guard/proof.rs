//! Proofs that more than one provider takes: an `Authorization` header, and HMAC-SHA256 over a body.

use domain::Secret;
use hmac::{Hmac, KeyInit as _, Mac as _};
use http::HeaderMap;
use http::header::AUTHORIZATION;
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

/// How far a sender's clock may be off.
const TOLERANCE_SECS: u64 = 300;

/// A secret that nobody has.
pub fn random() -> Secret {
    store::keys::new_secret("")
}

/// A secret that a request shows as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shown {
    Nothing,
    Wrong,
    Right,
}

impl Shown {
    /// Compares hashes: texts of different lengths could be told apart by the time it takes to compare them.
    pub fn new(given: Option<&[u8]>, wanted: &[[u8; 32]; 2]) -> Self {
        let Some(given) = given else { return Self::Nothing };
        let given: [u8; 32] = Sha256::digest(given).into();
        let is_one = wanted.iter().fold(false, |is_one, hash| is_one | bool::from(given.ct_eq(hash)));
        if is_one { Self::Right } else { Self::Wrong }
    }
}

/// The credentials in the `Authorization` header, if it has this scheme (given with its space).
pub fn authorization<'a>(headers: &'a HeaderMap, scheme: &[u8]) -> Option<&'a [u8]> {
    let (given, rest) = headers.get(AUTHORIZATION)?.as_bytes().split_at_checked(scheme.len())?;
    given.eq_ignore_ascii_case(scheme).then(|| rest.trim_ascii())
}

/// Whether a timestamp in seconds is within 300 s of now.
pub fn is_now(timestamp: &str, now_secs: i64) -> bool {
    let is_plain = !timestamp.is_empty() && timestamp.bytes().all(|byte| byte.is_ascii_digit());
    let at: Option<i64> = timestamp.parse().ok();
    is_plain & at.is_some_and(|at| at.abs_diff(now_secs) <= TOLERANCE_SECS)
}

/// An HMAC with this key.
pub fn keyed(secret: &[u8]) -> Hmac<Sha256> {
    Hmac::new_from_slice(secret).expect("HMAC takes keys of any length")
}

/// HMACs of a body under way, with the secret in force and the one before, and the signatures that the request shows.
pub struct Signed {
    pub macs: [Hmac<Sha256>; 2],
    pub said: Vec<[u8; 32]>,
    /// The timestamp, if the scheme has one, is within 300 s of now.
    pub is_timely: bool,
}

impl Signed {
    /// Computes every HMAC and compares it with every signature, whatever is found on the way.
    pub fn passes(&self) -> bool {
        let mut passes = false;
        for mac in &self.macs {
            let made = mac.clone().finalize().into_bytes();
            for said in &self.said {
                passes |= bool::from(made.ct_eq(said));
            }
        }
        passes
    }

    pub fn update(&mut self, piece: &[u8]) {
        self.macs.iter_mut().for_each(|mac| mac.update(piece));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timestamp_is_plain_digits_within_five_minutes_of_now() {
        let now = 1_800_000_000;
        for good in ["1800000000", "1800000300", "1799999700", "01800000000"] {
            assert!(is_now(good, now), "{good}");
        }
        for bad in ["", "0", "1800000301", "1799999699", "+1800000000", "-1800000000", "1800000000.0", " 1800000000"] {
            assert!(!is_now(bad, now), "{bad:?}");
        }
        assert!(!is_now(&"9".repeat(40), now), "more than a number holds");
    }

    #[test]
    fn an_authorization_header_is_read_for_its_own_scheme_alone() {
        let of = |text: &str, scheme: &[u8]| {
            let headers = HeaderMap::from_iter([(AUTHORIZATION, text.parse().expect("a header"))]);
            authorization(&headers, scheme).map(<[u8]>::to_vec)
        };
        assert_eq!(of("BEARER  key ", b"bearer "), Some(b"key".to_vec()));
        for (text, scheme) in [("Basic key", &b"bearer "[..]), ("Bearer", b"bearer "), ("", b"basic ")] {
            assert_eq!(of(text, scheme), None, "{text:?}");
        }
        assert_eq!(authorization(&HeaderMap::new(), b"basic "), None);
    }
}
