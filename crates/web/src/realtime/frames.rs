//! Phoenix messages in the formats of realtime-js: an object in version 1.0.0 of its serializer, an array in 2.0.0.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Version {
    One,
    Two,
}

/// A message of either side. The refs belong to the client: they are returned unchanged.
#[derive(Debug, Deserialize, Serialize, PartialEq)]
pub(super) struct Message<P> {
    #[serde(default)]
    pub join_ref: Value,
    #[serde(default)]
    pub r#ref: Value,
    pub topic: String,
    pub event: String,
    #[serde(default)]
    pub payload: P,
}

/// A changed row, and the topic's subscriptions that it is for.
#[derive(Serialize)]
pub(super) struct Change<'a> {
    pub ids: &'a [u32],
    pub data: &'a RawValue,
}

impl Version {
    /// Chooses the version by the URL's `vsn`. Clients without it mean the first.
    pub fn find(vsn: Option<&str>) -> Option<Self> {
        match vsn.unwrap_or("1.0.0") {
            "1.0.0" => Some(Self::One),
            "2.0.0" => Some(Self::Two),
            _ => None,
        }
    }

    pub fn read(self, text: &str) -> Option<Message<Value>> {
        match self {
            // serde would accept an array for a struct too.
            Self::One => serde_json::from_str(text).ok().filter(|_| text.trim_start().starts_with('{')),
            Self::Two => {
                let (join_ref, r#ref, topic, event, payload) = serde_json::from_str(text).ok()?;
                Some(Message { join_ref, r#ref, topic, event, payload })
            }
        }
    }

    pub fn write<P: Serialize>(self, message: &Message<P>) -> String {
        let Message { join_ref, r#ref, topic, event, payload } = message;
        let written = match self {
            Self::One => serde_json::to_string(message),
            Self::Two => serde_json::to_string(&(join_ref, r#ref, topic, event, payload)),
        };
        written.unwrap_or_default() // our own names and values can always be written as JSON
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn both_versions_say_the_same() {
        let said = |join_ref: Value, r#ref: Value, event: &str, payload: Value| Message {
            join_ref,
            r#ref,
            topic: "realtime:acts".into(),
            event: event.into(),
            payload,
        };
        let join = said(json!("6"), json!("7"), "phx_join", json!({ "config": {} }));
        let two = r#"["6","7","realtime:acts","phx_join",{"config":{}}]"#;
        let one = r#"{"join_ref":"6","ref":"7","topic":"realtime:acts","event":"phx_join","payload":{"config":{}}}"#;
        assert_eq!(
            (Version::Two.read(two), Version::One.read(one)),
            (Some(join), Some(said(json!("6"), json!("7"), "phx_join", json!({ "config": {} }))))
        );
        let beat =
            Version::One.read(r#"{"topic":"phoenix","event":"heartbeat","payload":{},"ref":"3"}"#).expect("a message");
        assert_eq!((beat.join_ref, beat.r#ref), (Value::Null, json!("3")));
        let told = said(Value::Null, Value::Null, "system", json!({}));
        assert_eq!(Version::Two.write(&told), r#"[null,null,"realtime:acts","system",{}]"#);
        assert_eq!(
            Version::One.write(&told),
            r#"{"join_ref":null,"ref":null,"topic":"realtime:acts","event":"system","payload":{}}"#
        );
    }

    #[test]
    fn what_is_no_message_is_not_read() {
        for bad in
            ["", "7", "[]", "{}", "[null,null,7,\"x\",{}]", "[1,2,\"t\",\"e\"]", "{\"topic\":\"t\"}", "[[[[", "null"]
        {
            assert!(Version::One.read(bad).is_none() && Version::Two.read(bad).is_none(), "{bad}");
        }
        assert_eq!(
            (Version::find(None), Version::find(Some("2.0.0")), Version::find(Some("3.0.0"))),
            (Some(Version::One), Some(Version::Two), None)
        );
    }
}
