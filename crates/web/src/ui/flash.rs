//! Flashes say what the last action did. Only a code is in the address, so that nobody else can put words on our page.

use axum::http::StatusCode;
use axum::http::header::LOCATION;
use axum::response::{IntoResponse as _, Response};

/// Codes and their words, by page.
macro_rules! flashes {
    ($(#[$doc:meta])* $name:ident { $($variant:ident = $code:literal: $words:literal,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize)]
        pub(crate) enum $name {
            $(#[serde(rename = $code)] $variant,)*
            #[default]
            #[serde(other)]
            Nothing,
        }

        impl $name {
            pub fn in_words(self) -> &'static str {
                match self { $(Self::$variant => $words,)* Self::Nothing => "" }
            }

            /// Back to a page of ours, which says it.
            pub fn back(self, address: &str) -> axum::response::Response {
                let code = match self { $(Self::$variant => $code,)* Self::Nothing => "" };
                $crate::ui::flash::back(address, code)
            }
        }
    };
}
pub(super) use flashes;

pub(super) fn back(address: &str, code: &str) -> Response {
    (StatusCode::SEE_OTHER, [(LOCATION, with_code(address, code))]).into_response()
}

fn with_code(address: &str, code: &str) -> String {
    let (page, part) = address.split_at(address.find('#').unwrap_or(address.len()));
    let joint = if page.contains('?') { '&' } else { '?' };
    format!("{page}{joint}done={code}{part}")
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, from_value};

    use super::*;

    flashes! {
        Tried {
            Well = "well": "It went well.",
        }
    }

    #[test]
    fn only_our_own_codes_become_words() {
        let of = |code: &str| from_value::<Tried>(Value::from(code)).expect("a code").in_words();
        assert_eq!((of("well"), of("<b>pwned</b>"), of("")), ("It went well.", "", ""));
    }

    #[test]
    fn a_code_joins_what_the_address_has() {
        assert_eq!(with_code("/system/queues/upkeep", "skipped"), "/system/queues/upkeep?done=skipped");
        assert_eq!(
            with_code("/system/queues/upkeep?state=dead", "retried"),
            "/system/queues/upkeep?state=dead&done=retried"
        );
        assert_eq!(with_code("/mail#rules", "added"), "/mail?done=added#rules");
        assert_eq!(Tried::Well.back("/x").headers()["location"], "/x?done=well");
    }
}
