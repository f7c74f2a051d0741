//! The parts that Google's services share: our app there, and the form of Google's refusals.

mod complaint;

pub(super) use self::complaint::complaint;
use super::settings::Setting;
use super::spec::{ClientProof, Oauth};

pub(super) static CLIENT_ID: Setting = Setting::text("GOOGLE_CLIENT_ID", None, "The id of your OAuth client at Google");
pub(super) static CLIENT_SECRET: Setting = Setting::secret("GOOGLE_CLIENT_SECRET", "Its secret");
pub(super) static AUTHORIZE_URL: Setting =
    Setting::url("GOOGLE_AUTHORIZE_URL", Some("https://accounts.google.com/o/oauth2/v2/auth"), "Where people allow it");
pub(super) static TOKEN_URL: Setting =
    Setting::url("GOOGLE_TOKEN_URL", Some("https://oauth2.googleapis.com/token"), "Where its tokens come from");

/// The way to connect an account of a service with these scopes.
pub(super) const fn oauth(scopes: &'static [&'static str], setup: &'static str) -> Oauth {
    Oauth {
        client_id: &CLIENT_ID,
        client_secret: &CLIENT_SECRET,
        authorize_url: &AUTHORIZE_URL,
        token_url: &TOKEN_URL,
        scopes,
        // Without both, Google gives a refresh token the first time only.
        authorize_query: &[("access_type", "offline"), ("prompt", "consent")],
        client_proof: ClientProof::Form,
        account_parameter: None,
        refusal: |_, _| None,
        setup,
    }
}
