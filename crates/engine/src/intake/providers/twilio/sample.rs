//! Messages as Twilio sends them, signed.

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

use super::{AUTH_TOKEN, sign};
use crate::intake::providers::{LoadSpec, Message, Said, SampleSpec, Sending};

pub(super) const SAMPLE: SampleSpec = SampleSpec {
    says: Said { name: "Test", from: "+15005550006", subject: "", text: "A test message, signed as Twilio would." },
    make: sample,
};

pub(super) const LOAD: LoadSpec = LoadSpec { make: load, signature: Some((SIGNATURE, signature)) };

const SIGNATURE: &str = "x-twilio-signature";

fn signature(sending: &Sending, body: &[u8]) -> Option<String> {
    Some(sign(sending.secrets.proofs.get(AUTH_TOKEN)?, sending.url, body))
}

fn sample(sending: &Sending, said: &Said) -> Option<Message> {
    let sid = format!("SM{}", sending.id);
    let fields = [
        ("MessageSid", sid.as_str()),
        ("SmsSid", &sid),
        ("AccountSid", "ACtest"),
        ("From", said.from),
        ("To", "+15005550001"),
        ("Body", said.text),
        ("NumMedia", "0"),
        ("NumSegments", "1"),
    ];
    let pair = |(name, value): &(&str, &str)| format!("{name}={}", utf8_percent_encode(value, NON_ALPHANUMERIC));
    let body = fields.iter().map(pair).collect::<Vec<_>>().join("&");
    Some((
        vec![
            (SIGNATURE, signature(sending, body.as_bytes())?),
            ("content-type", "application/x-www-form-urlencoded".to_owned()),
        ],
        body,
    ))
}

/// An SMS with every field that Twilio sends.
fn load(sending: &Sending) -> Option<Message> {
    let id = sending.id;
    let body = format!(
        "ToCountry=US&ToState=&SmsMessageSid=SM{id}&NumMedia=0&ToCity=&FromZip=94103&SmsSid=SM{id}&FromState=CA&SmsStatus=received&FromCity=SAN+FRANCISCO\
         &Body=Can+we+move+tomorrow%27s+visit+to+three%3F+The+key+is+with+Bob.&FromCountry=US&To=%2B15005550001&ToZip=&NumSegments=1&MessageSid=SM{id}\
         &AccountSid=AC00000000000000000000000000000000&From=%2B14158675309&ApiVersion=2010-04-01"
    );
    let headers = vec![
        ("content-type", "application/x-www-form-urlencoded".to_owned()),
        ("accept", "application/json".to_owned()),
        (SIGNATURE, signature(sending, body.as_bytes())?),
    ];
    Some((headers, body))
}
