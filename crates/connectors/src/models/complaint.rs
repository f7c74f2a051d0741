//! Error bodies. The services have five shapes: `{"error": {"message", "type", "code"}}`, `{"error": "…"}`, `{"error": "…", "error_type"}`,
//! `{"message", "code"?}` and `{"detail": "…"}`. Their sentences may quote a key or a text: they are compared here and go nowhere.

use domain::Secret;
use reqwest::StatusCode;
use serde_json::Value;

/// An error body, as far as it can be read.
#[derive(Default)]
pub(super) struct Complaint {
    /// Its codes, the most exact first.
    codes: Vec<String>,
    /// Its sentence, in lower case.
    words: String,
}

/// Codes of an account without money.
const UNPAID: [&str; 4] =
    ["insufficient_quota", "billing_hard_limit_reached", "billing_not_active", "credit_balance_too_low"];

/// Codes of a request, or one of its texts, that is too large.
const TOO_LARGE: [&str; 4] =
    ["max_tokens_per_request", "context_length_exceeded", "string_above_max_length", "exceed_context_size_error"];

/// The same in the sentences of services that have no codes.
const SAID_TOO_LARGE: [&str; 13] = [
    "maximum input length",
    "maximum context length",
    "context length",
    "context window",
    "too long",
    "too large",
    "too many tokens",
    "max allowed tokens",
    "tokens per request",
    "token limit",
    "batch size limit",
    "maximum allowed batch size",
    "number of texts must be at most",
];

impl Complaint {
    pub fn new(body: &[u8]) -> Self {
        let Ok(body) = serde_json::from_slice::<Value>(body) else { return Self::default() };
        let error = &body["error"];
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let codes = [&error["code"], &error["type"], &body["error_type"], &body["code"]];
        let words = [&error["message"], error, &body["detail"], &body["message"]];
        Self {
            codes: codes.into_iter().filter_map(text).collect(),
            words: words.into_iter().find_map(text).unwrap_or_default().to_lowercase(),
        }
    }

    /// Returns the service's code if it is a plain word, and no part of the key.
    pub fn code(&self, key: Option<&Secret>) -> Option<&str> {
        let is_word = |word: &&String| {
            (1..=60).contains(&word.len()) && word.bytes().all(|b| b.is_ascii_alphabetic() || b == b'_')
        };
        let is_secret = |word: &&String| key.is_some_and(|key| key.reveal().contains(word.as_str()));
        self.codes.iter().filter(is_word).find(|word| !is_secret(word)).map(String::as_str)
    }

    /// Whether the account has no money left. Unlike a rate limit, no wait of ours ends that.
    pub fn is_unpaid(&self, status: StatusCode) -> bool {
        let has_code = self.codes.iter().any(|code| UNPAID.contains(&code.as_str()));
        status == StatusCode::PAYMENT_REQUIRED || (status.is_client_error() && has_code)
    }

    /// Whether the request or one of its texts is larger than the service or its model takes.
    pub fn is_too_large(&self, status: StatusCode) -> bool {
        let is_said = || {
            self.codes.iter().any(|code| TOO_LARGE.contains(&code.as_str()))
                || SAID_TOO_LARGE.iter().any(|words| self.words.contains(words))
        };
        match status {
            StatusCode::PAYLOAD_TOO_LARGE => true,
            StatusCode::BAD_REQUEST | StatusCode::UNPROCESSABLE_ENTITY | StatusCode::INTERNAL_SERVER_ERROR => is_said(),
            // A request that is larger than what a minute allows never gets its turn.
            StatusCode::TOO_MANY_REQUESTS => self.words.contains("request too large"),
            _ => false,
        }
    }
}

/// Whether a name that a service gave can be shown: the characters of models' names, and not many of them.
pub(crate) fn is_plain(name: &str) -> bool {
    (1..=80).contains(&name.len()) && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_./:".contains(&b))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_complaint_is_understood_in_every_shape() {
        for (status, body, code, is_unpaid, is_too_large) in [
            (
                400,
                r#"{"error":{"message":"Requested 306153 tokens, max 300000 tokens per request","type":"max_tokens_per_request","param":null,"code":"max_tokens_per_request"}}"#,
                Some("max_tokens_per_request"),
                false,
                true,
            ),
            (
                400,
                r#"{"error":{"message":"Invalid 'input[0]': maximum input length is 8192 tokens.","type":"invalid_request_error","code":null}}"#,
                Some("invalid_request_error"),
                false,
                true,
            ),
            (
                429,
                r#"{"error":{"type":"insufficient_quota","code":"insufficient_quota"}}"#,
                Some("insufficient_quota"),
                true,
                false,
            ),
            (
                429,
                r#"{"error":{"type":"tokens","code":"rate_limit_exceeded","message":"Rate limit reached"}}"#,
                Some("rate_limit_exceeded"),
                false,
                false,
            ),
            (
                429,
                r#"{"error":{"type":"tokens","message":"Request too large for x: Limit 40000, Requested 50000"}}"#,
                Some("tokens"),
                false,
                true,
            ),
            (400, r#"{"detail":"The example at index 0 in your batch has too many tokens"}"#, None, false, true),
            (400, r#"{"detail":"Model voyage-9 is not supported"}"#, None, false, false),
            (
                400,
                r#"{"message":"invalid request: total number of texts must be at most 96 - received 97"}"#,
                None,
                false,
                true,
            ),
            (400, r#"{"error":"the input length exceeds the context length"}"#, None, false, true),
            (
                413,
                r#"{"error":"batch size 40 > maximum allowed batch size 32","error_type":"Validation"}"#,
                Some("Validation"),
                false,
                true,
            ),
            (424, r#"{"error":"inference failed","error_type":"Backend"}"#, Some("Backend"), false, false),
            (
                500,
                r#"{"error":{"code":500,"message":"input is too large to process","type":"server_error"}}"#,
                Some("server_error"),
                false,
                true,
            ),
            (402, "", None, true, false),
            (400, "<html>too large</html>", None, false, false),
            (404, r#"{"error":{"code":"sk-canary","type":"canary"}}"#, None, false, false),
        ] {
            let (complaint, status) =
                (Complaint::new(body.as_bytes()), StatusCode::from_u16(status).expect("a status"));
            assert_eq!(complaint.code(Some(&Secret::new("sk-canary"))), code, "{body}");
            assert_eq!(
                (complaint.is_unpaid(status), complaint.is_too_large(status)),
                (is_unpaid, is_too_large),
                "{body}"
            );
        }
    }

    #[test]
    fn only_the_name_of_a_model_is_shown() {
        assert!(is_plain("BAAI/bge-m3") && is_plain("embeddinggemma:300m"));
        assert!(!is_plain("") && !is_plain("Ann called.") && !is_plain(&"x".repeat(81)));
    }
}
