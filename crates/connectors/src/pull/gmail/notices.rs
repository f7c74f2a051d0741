//! Pub/Sub's posts: an envelope around the name of a mailbox. The number of a change that it brings is not read, since a sync that began
//! there would miss whatever came before.

use base64::Engine as _;
use base64::alphabet::{STANDARD, URL_SAFE};
use base64::engine::DecodePaddingMode;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::pull::mailbox::{Notice, Of, Tells, Unread};

const LENIENT: GeneralPurposeConfig = GeneralPurposeConfig::new()
    .with_decode_padding_mode(DecodePaddingMode::Indifferent)
    .with_decode_allow_trailing_bits(true);
const PLAIN: GeneralPurpose = GeneralPurpose::new(&STANDARD, LENIENT);
const FOR_ADDRESSES: GeneralPurpose = GeneralPurpose::new(&URL_SAFE, LENIENT);

#[derive(Deserialize)]
struct Envelope {
    message: Published,
    subscription: Option<String>,
}

#[derive(Deserialize)]
struct Published {
    #[serde(default)]
    data: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Told {
    email_address: String,
}

/// Reads a post.
pub(super) fn read(body: &[u8]) -> Result<Vec<Notice>, Unread> {
    let Envelope { message, subscription } = json(body, "it is no envelope of Pub/Sub")?;
    let data = decoded(&message.data).ok_or(Unread("its data is not base64"))?;
    let Told { email_address } = json(&data, "its data names no mailbox")?;
    let address = email_address.trim().to_lowercase();
    if address.is_empty() {
        return Err(Unread("its data names no mailbox"));
    }
    Ok(vec![Notice { of: Of::Account(address), client_state: None, via: subscription, tells: Tells::Changed }])
}

fn json<T: DeserializeOwned>(bytes: &[u8], otherwise: &'static str) -> Result<T, Unread> {
    serde_json::from_slice(bytes).map_err(|_| Unread(otherwise))
}

/// The bytes of base64 in either alphabet, padded or not.
pub(super) fn decoded(text: &str) -> Option<Vec<u8>> {
    FOR_ADDRESSES.decode(text).or_else(|_| PLAIN.decode(text)).ok()
}

#[cfg(test)]
mod tests {
    use base64::prelude::{BASE64_STANDARD, BASE64_URL_SAFE_NO_PAD};
    use serde_json::{Value, json};

    use super::*;

    fn envelope(data: &str) -> Value {
        json!({
            "message": { "data": data, "messageId": "207", "publishTime": "2026-11-18T10:00:00.749Z", "attributes": {} },
            "subscription": "projects/acme/subscriptions/mail", "deliveryAttempt": 1,
        })
    }

    #[test]
    fn a_post_names_a_mailbox_whatever_its_number_looks_like() {
        for told in [
            json!({ "emailAddress": "Ana.O'Hara+\u{fc}@Acme.example", "historyId": 1_234_567_890 }),
            json!({ "emailAddress": "ana.o'hara+\u{fc}@acme.example", "historyId": "1234567890" }),
            json!({ "emailAddress": " ana.o'hara+\u{fc}@acme.example " }),
        ] {
            for data in [BASE64_STANDARD.encode(told.to_string()), BASE64_URL_SAFE_NO_PAD.encode(told.to_string())] {
                let expected = Notice {
                    of: Of::Account("ana.o'hara+\u{fc}@acme.example".into()),
                    client_state: None,
                    via: Some("projects/acme/subscriptions/mail".into()),
                    tells: Tells::Changed,
                };
                assert_eq!(read(envelope(&data).to_string().as_bytes()), Ok(vec![expected]), "{told}");
            }
        }
    }

    #[test]
    fn what_is_no_post_of_pubsubs_says_why() {
        let data = |told: Value| envelope(&BASE64_STANDARD.encode(told.to_string()));
        for (body, why) in [
            (json!([]), "it is no envelope of Pub/Sub"),
            (json!({ "value": [] }), "it is no envelope of Pub/Sub"),
            (json!({ "message": { "data": 7 } }), "it is no envelope of Pub/Sub"),
            (json!({ "message": {} }), "its data names no mailbox"),
            (envelope("%%%"), "its data is not base64"),
            (envelope("aGVsbG8="), "its data names no mailbox"),
            (data(json!({ "historyId": "7" })), "its data names no mailbox"),
            (data(json!({ "emailAddress": " " })), "its data names no mailbox"),
            (data(json!({ "emailAddress": ["ana@acme.example"] })), "its data names no mailbox"),
        ] {
            assert_eq!(read(body.to_string().as_bytes()), Err(Unread(why)), "{body}");
        }
        assert_eq!(read(b"\xff\xfe"), Err(Unread("it is no envelope of Pub/Sub")));
    }
}
