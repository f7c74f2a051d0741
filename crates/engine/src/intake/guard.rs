//! Who may bring something, decided on the raw bytes. Comparisons take the same time whatever they find, and whoever has no
//! channel is checked against a secret that nobody has: a refusal says nothing, not even by when it comes.

use std::sync::LazyLock;

use domain::Secret;
use hmac::{Hmac, KeyInit as _, Mac as _};
use http::HeaderMap;
use http::header::AUTHORIZATION;
use sha2::Sha256;
use store::channels::Provider;
use subtle::ConstantTimeEq as _;

use super::channels::Channel;

/// A check under way: fed with the body as it comes.
pub(super) struct Check {
    mac: Hmac<Sha256>,
    /// What the sender says the MAC is.
    signature: Option<[u8; 32]>,
    is_bearer: bool,
    is_known: bool,
}

/// What the bytes of a channel's requests are signed with.
pub(super) fn keyed(secret: &[u8]) -> Hmac<Sha256> {
    Hmac::new_from_slice(secret).expect("HMAC takes keys of any length")
}

/// The header `X-Webhook-Signature` of a body, as a sender makes it.
pub fn sign(secret: &Secret, body: &[u8]) -> String {
    let signed = keyed(secret.reveal().as_bytes()).chain_update(body).finalize().into_bytes();
    format!("sha256={}", signed.iter().map(|byte| format!("{byte:02x}")).collect::<String>())
}

impl Check {
    /// `None`: nobody's key, or a channel that takes nothing.
    pub fn begin(channel: Option<&Channel>, headers: &HeaderMap) -> Self {
        match channel.map(|channel| channel.provider) {
            Some(Provider::Generic) | None => Self::generic(channel, headers),
        }
    }

    /// `Authorization: Bearer ak_live_…`, or `X-Webhook-Signature: sha256=<hex>` over the body.
    fn generic(channel: Option<&Channel>, headers: &HeaderMap) -> Self {
        static NOBODY: LazyLock<(Hmac<Sha256>, String)> = LazyLock::new(|| {
            let (secret, bearer) = (store::keys::new_secret(""), store::keys::new_secret("ak_live_"));
            (keyed(secret.reveal().as_bytes()), bearer.reveal().to_owned())
        });
        let (mac, bearer) = match channel {
            Some(channel) => (&channel.mac, channel.bearer.reveal()),
            None => (&NOBODY.0, NOBODY.1.as_str()),
        };
        let shown = headers.get(AUTHORIZATION).map_or(&b""[..], |value| value.as_bytes());
        let shown = shown.split_at_checked(7).filter(|(scheme, _)| scheme.eq_ignore_ascii_case(b"bearer "));
        let shown = shown.map_or(&b""[..], |(_, key)| key.trim_ascii());
        Self {
            mac: mac.clone(),
            signature: headers.get("x-webhook-signature").and_then(|value| hex_signature(value.as_bytes())),
            is_bearer: shown.ct_eq(bearer.as_bytes()).into(),
            is_known: channel.is_some(),
        }
    }

    pub fn update(&mut self, bytes: &[u8]) {
        self.mac.update(bytes);
    }

    pub fn passes(self) -> bool {
        let is_signed = self.mac.verify(&self.signature.unwrap_or_default().into()).is_ok() & self.signature.is_some();
        (is_signed | self.is_bearer) & self.is_known
    }
}

fn hex_signature(header: &[u8]) -> Option<[u8; 32]> {
    let hex = header.strip_prefix(b"sha256=")?;
    let mut signature = [0; 32];
    if hex.len() != 2 * signature.len() {
        return None;
    }
    let digit = |byte: u8| char::from(byte).to_digit(16);
    for (byte, pair) in signature.iter_mut().zip(hex.chunks_exact(2)) {
        *byte = u8::try_from(digit(pair[0])? * 16 + digit(pair[1])?).ok()?;
    }
    Some(signature)
}

#[cfg(test)]
mod tests {
    use domain::{ChannelId, Secret, TenantId};
    use http::HeaderValue;
    use store::channels::{Opened, Secrets};

    use super::*;

    const SECRET: &str = "a-secret-of-more-than-24-characters";

    fn channel() -> Channel {
        Channel::new(Opened {
            id: ChannelId::new(),
            tenant_id: TenantId::new(),
            provider: Provider::Generic,
            is_active: true,
            person_id: None,
            max_per_minute: None,
            secrets: Secrets {
                ingestion_key: Secret::new("k"),
                webhook_secret: Secret::new(SECRET),
                bearer: Secret::new("ak_live_0123456789"),
            },
        })
    }

    fn passes(channel: Option<&Channel>, headers: &[(&'static str, &str)], body: &[u8]) -> bool {
        let headers: HeaderMap = headers
            .iter()
            .map(|(name, value)| {
                (http::HeaderName::from_static(name), HeaderValue::try_from(*value).expect("a header"))
            })
            .collect();
        let mut check = Check::begin(channel, &headers);
        for chunk in body.chunks(7) {
            check.update(chunk);
        }
        check.passes()
    }

    #[test]
    fn a_signature_as_openssl_makes_it_passes_and_nothing_near_it() {
        let channel = channel();
        let body = br#"{"content":"hello"}"#;
        // printf %s '{"content":"hello"}' | openssl dgst -sha256 -hmac a-secret-of-more-than-24-characters
        let good = "sha256=ad233a7097e7151710e96fac4ca88b1b94a7e1ed53a36d16228db8338235b72a";
        let sign = |text: &str| passes(Some(&channel), &[("x-webhook-signature", text)], body);
        assert!(sign(good));
        assert!(sign(&good.to_uppercase().replace("SHA256", "sha256")));
        for at in 7..good.len() {
            let mut forged = good.as_bytes().to_vec();
            forged[at] = if forged[at] == b'0' { b'1' } else { b'0' };
            assert!(!sign(std::str::from_utf8(&forged).expect("text")), "one digit changed at {at}");
        }
        let bad =
            ["", "sha256=", &good[..70], &good[7..], &format!("{good}00"), "sha1=00", "sha256=zz", &format!(" {good}")];
        for bad in bad {
            assert!(!sign(bad), "{bad:?} passed");
        }
        assert!(!passes(Some(&channel), &[("x-webhook-signature", good)], br#"{"content":"hellp"}"#));
        assert!(!passes(Some(&channel), &[("x-webhook-signature", good)], b""));
        assert!(!passes(None, &[("x-webhook-signature", good)], body), "nobody's channel took something");
        assert!(!passes(Some(&channel), &[], body));
    }

    #[test]
    fn a_bearer_key_passes_whole_and_with_its_channel_alone() {
        let channel = channel();
        let bearer = |text: &str| passes(Some(&channel), &[("authorization", text)], b"x");
        for good in ["Bearer ak_live_0123456789", "bearer ak_live_0123456789", "BEARER  ak_live_0123456789 "] {
            assert!(bearer(good), "{good:?}");
        }
        let bad = [
            "",
            "Bearer",
            "Bearer ",
            "Bearer ak_live_012345678",
            "Bearer ak_live_01234567890",
            "Basic ak_live_0123456789",
        ];
        for bad in bad {
            assert!(!bearer(bad), "{bad:?} passed");
        }
        assert!(!passes(None, &[("authorization", "Bearer ak_live_0123456789")], b"x"));
        let forged_beside = [("authorization", "Bearer ak_live_0123456789"), ("x-webhook-signature", "sha256=00")];
        assert!(passes(Some(&channel), &forged_beside, b"x"), "one proof is enough");
    }
}
