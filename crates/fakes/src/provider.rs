//! The fake providers and their accounts.

/// A fake provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Provider {
    Hubspot,
    GoogleDrive,
    Quickbooks,
}

impl Provider {
    pub const ALL: [Self; 3] = [Self::Hubspot, Self::GoogleDrive, Self::Quickbooks];

    /// Its name in paths.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Hubspot => "hubspot",
            Self::GoogleDrive => "google_drive",
            Self::Quickbooks => "quickbooks",
        }
    }

    pub(crate) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|provider| provider.as_str() == name)
    }

    /// The account that gives consent by default.
    pub fn default_account(self) -> &'static str {
        match self {
            Self::Hubspot | Self::Quickbooks => "harrowridge",
            Self::GoogleDrive => "office",
        }
    }

    /// The provider's own id of an account: HubSpot's portal, Google's permission id, QuickBooks' realm.
    pub fn account_id(self, account: &str) -> String {
        match (self, account == self.default_account()) {
            (Self::Hubspot, true) => "24317905".to_owned(),
            (Self::GoogleDrive, true) => "04719385526601938274".to_owned(), // the owner in the fixtures
            (Self::Quickbooks, true) => "9130357849201635".to_owned(),
            (Self::Hubspot, false) => (30_000_000 + hash(account) % 60_000_000).to_string(),
            (Self::GoogleDrive, false) => format!("1{:019}", hash(account) % 10_u64.pow(18)),
            (Self::Quickbooks, false) => format!("9{:015}", hash(account) % 10_u64.pow(15)),
        }
    }

    /// The e-mail address of the person who gave consent.
    pub fn email(self, account: &str) -> String {
        format!("{account}@harrowridge.example")
    }
}

/// FNV-1a: the same number in every run.
fn hash(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3))
}
