//! The description of a provider: all that the rest of the program knows of it. Each provider's folder holds one such value, and
//! [`super::ALL`] lists them. Configuration, OAuth, MCP, sample data, pages, commands and the words for people read it, so that a new
//! provider is a folder and a line in that list.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use serde_json::Value;

use super::complaint::{Complaint, Meaning};
use super::mailbox::MailboxSpec;
use super::mcp::Tool;
use super::oauth::GrantError;
use super::settings::{Setting, Settings};
use super::{ClientFacts, Connector, Failed, Item, Limit, RawItem, Told};
use crate::Http;
use crate::guide::{Advice, Group, Mark, Step, by_code, oauth};

/// A provider is known by its description.
pub type Provider = &'static ProviderSpec;

/// Finds a refusal in the body of an answer with a good status.
pub type FindComplaint = fn(&[u8]) -> Option<Complaint>;

/// A blank in the arguments of a tool, and its value.
pub type Blank = (&'static str, fn() -> Value);

/// Everything about one provider.
pub struct ProviderSpec {
    /// Stored in rows and part of addresses: lower case, never renamed.
    pub name: &'static str,
    /// Its name for people.
    pub label: &'static str,
    /// The content that a source of it brings, for a person, such as "Documents and sheets".
    pub brings: &'static str,
    /// Every setting, in the order in which `tributary config` prints them.
    pub settings: &'static [&'static Setting],
    /// The way to connect an account on the provider's own pages. None: by a key alone.
    pub oauth: Option<Oauth>,
    /// The way to connect an account by a key that a person makes at the provider. None: the provider has no such keys.
    pub key: Option<Key>,
    /// Every limit on requests.
    pub limits: &'static [&'static Limit],
    /// The types of its documents. A full pass reads all records of these types.
    pub document_types: &'static [&'static str],
    /// Its kinds of record, in the order in which a full pass over MCP or sample data lists them.
    pub kinds: &'static [Kind],
    /// Reads one record of the provider's JSON; the text is the [`Kind::object`].
    pub raw: fn(&str, Value) -> Result<RawItem, Failed>,
    /// Makes of a record what memory takes.
    pub item: fn(RawItem) -> Item,
    /// Whether a listed record is of a kind that is not read, and so is not missed either.
    pub is_passed_over: fn(&Value) -> bool,
    /// The address of a record on the provider's own pages, by its payload. None: the payload does not tell it.
    pub link: fn(&Value) -> Option<String>,
    /// The largest number of records in one look-up, over MCP and sample data.
    pub find_max: usize,
    /// The cap on a first sync, where there is one.
    pub first_sync: Option<FirstSync>,
    /// Whether deltas tell of everything. If not, a full pass is due once a week: it finds records that were purged or merged.
    pub has_complete_deltas: bool,
    /// Whether the provider refuses a used-up quota of a month in the same words as that of a minute. The longer one is known by waits
    /// that do not help.
    pub hides_long_quota: bool,
    /// The facts that records state about clients, by document type; types that are not listed say nothing.
    pub clients: &'static [(&'static str, Says)],
    /// The words for its codes.
    pub labels: Labels,
    /// The fields of an address among those facts, in the order of a letter. Empty if it states none.
    pub address_fields: &'static [&'static str],
    /// Reads the answer to a request that failed, by its status and body.
    pub complaint: fn(u16, &[u8]) -> Complaint,
    /// Finds a refusal in the body of an answer with a good status, where the provider hides some there.
    pub hidden_complaint: Option<FindComplaint>,
    /// The way to read it through an MCP server. None: no server's tools are mapped.
    pub mcp: Option<Mcp>,
    /// The further offers of a mailbox. None: it is none.
    pub mailbox: Option<MailboxSpec>,
    /// Makes the connector that reads the provider's own API.
    pub rest: fn(&Http, &Settings) -> Arc<dyn Connector>,
    /// The words and the mark for a person who connects an account.
    pub guide: Guide,
}

/// The way to a connected account, for people.
pub struct Guide {
    pub group: Group,
    pub mark: Mark,
    /// Other words by which people look for it.
    pub also: &'static str,
    /// The steps that create our app at the provider, in order. Empty: there is no such app.
    pub steps: &'static [Step],
    /// The steps that make a key at the provider, in order. Empty: it has no keys.
    pub key_steps: &'static [Step],
    /// The words for refusals that the provider's parsers give, and that a person can do something about. Each is among the refusals.
    pub codes: &'static [&'static str],
    /// Explains the provider's own words. They go before [`oauth::REFUSALS`] and [`oauth::MEANINGS`].
    pub refusals: &'static [Advice],
}

/// The way to connect accounts by OAuth, including the provider's departures from it.
pub struct Oauth {
    pub client_id: &'static Setting,
    pub client_secret: &'static Setting,
    pub authorize_url: &'static Setting,
    pub token_url: &'static Setting,
    /// The least that our reading needs.
    pub scopes: &'static [&'static str],
    /// Added to the address where a person consents.
    pub authorize_query: &'static [(&'static str, &'static str)],
    pub client_proof: ClientProof,
    /// The parameter by which a person comes back with the name of the account, where the provider tells it there and nowhere else.
    pub account_parameter: Option<&'static str>,
    /// Reads a refusal that has no error code of OAuth's, by its status and JSON.
    pub refusal: fn(u16, &Value) -> Option<GrantError>,
    /// The steps that create our app at the provider, as the end of a sentence that begins with "To that end".
    pub setup: &'static str,
}

/// The part of a token request that carries the client's id and secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientProof {
    Form,
    BasicAuth,
}

/// A key that a person makes at the provider.
pub struct Key {
    /// The owner of the key at the provider, such as "a private app".
    pub of: &'static str,
    /// The place where a person finds it, and the permissions that it needs.
    pub hint: &'static str,
    /// Its first characters.
    pub placeholder: &'static str,
}

/// One kind of record.
pub struct Kind {
    /// External ids begin with it, as in `contact:51`.
    pub object: &'static str,
    /// The method that lists its records. A method's name has the provider in front.
    pub list: &'static str,
    /// The method that fetches records by id.
    pub get: &'static str,
    /// The largest number of records in one call of `get`.
    pub batch: usize,
    pub sample: Option<Sample>,
}

/// Sample data of one kind: answers of the provider's own API, page by page.
pub struct Sample {
    /// A JSON array of answers.
    pub pages: &'static str,
    /// A JSON pointer to the records in each answer.
    pub records: &'static str,
    /// Adds to a record what the provider tells by another request.
    pub complete: Option<fn(&mut Value)>,
}

/// A cap on a first sync.
pub struct FirstSync {
    pub max: &'static Setting,
    /// The things that are counted, such as "files".
    pub things: &'static str,
}

/// The facts that the records of a type state about clients.
#[derive(Clone, Copy)]
pub enum Says {
    /// Each record is a client. The facts come from it and from every related record; see [`super::client_facts`].
    IsClient(fn(Told<'_>, &[Told<'_>]) -> Option<ClientFacts>),
    /// Each record is rolled up into the clients that it mentions.
    IsOfClients,
}

/// The words in which people read a provider's codes.
pub struct Labels {
    /// One record of each document type.
    pub types: &'static [(&'static str, &'static str)],
    /// The facts that its records state, by name.
    pub facts: &'static [(&'static str, &'static str)],
    /// The value of a fact or field that the provider spells as a code. None: the value is its own word.
    pub value: fn(&str, &str) -> Option<String>,
}

/// `FACILITIES_SERVICES` as people write it. None: it is no code in capitals.
pub fn capitals_in_words(code: &str) -> Option<String> {
    let is_code = code.bytes().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'_');
    if !is_code || !code.bytes().any(|b| b.is_ascii_uppercase()) || (!code.contains('_') && code.len() < 4) {
        return None;
    }
    let words = code.to_ascii_lowercase().replace('_', " ");
    let mut letters = words.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect())
}

/// The way to read a provider through an MCP server.
pub struct Mcp {
    /// The server, as people call it.
    pub server: &'static str,
    /// Names the server's address. No server is asked unless it is set.
    pub url: &'static Setting,
    /// The only tools that are ever called. Each of them reads.
    pub tools: &'static [Tool],
    /// Blanks of the provider's own in the tools' arguments, beside those of `Tool::arguments`.
    pub blanks: &'static [Blank],
    /// The limits of the API behind the server, which is asked once for each call.
    pub limits: &'static [&'static Limit],
}

impl ProviderSpec {
    /// Whether sample data ships with the program.
    pub fn has_samples(&self) -> bool {
        self.kinds.iter().any(|kind| kind.sample.is_some())
    }

    /// Explains a refusal and what to do about it, by the code that a person meets. None: nobody has a word for it.
    pub fn explain(&self, code: &str) -> Option<&'static Advice> {
        by_code(self.guide.refusals, code).or_else(|| by_code(&oauth::REFUSALS, code))
    }

    /// The same for an answer of its API: there is always something to say.
    pub fn explain_complaint(&self, meaning: Meaning, code: Option<&str>) -> &'static Advice {
        let [wait, token, trouble, lasting] = &oauth::MEANINGS;
        code.and_then(|code| by_code(self.guide.refusals, code)).unwrap_or(match meaning {
            Meaning::Wait => wait,
            Meaning::Token => token,
            Meaning::Trouble => trouble,
            Meaning::Lasting => lasting,
        })
    }
}

impl fmt::Debug for ProviderSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

/// The name, as rows and addresses spell it.
impl fmt::Display for ProviderSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name)
    }
}

impl PartialEq for ProviderSpec {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for ProviderSpec {}

impl Hash for ProviderSpec {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::super::ALL;
    use super::super::complaint::Meaning;
    use crate::guide::{Gives, absent, faults_of, oauth};

    #[test]
    fn every_provider_says_how_it_is_connected_and_explains_its_refusals() {
        let mut marks: HashSet<&str> = absent::ALL.iter().map(|absent| absent.mark.0).collect();
        assert_eq!(marks.len(), absent::ALL.len(), "two marks are the same");
        for provider in ALL {
            let guide = &provider.guide;
            let steps = [guide.steps, guide.key_steps].concat();
            let faults = faults_of(guide.mark, &steps, guide.refusals);
            assert!(faults.is_empty(), "{provider}: {faults:?}");
            assert!(marks.insert(guide.mark.0), "{provider} has another's mark");
            assert!(!guide.also.is_empty() && !guide.codes.is_empty(), "{provider}");
            assert_eq!(guide.steps.is_empty(), provider.oauth.is_none(), "{provider}: the steps to an app");
            assert_eq!(guide.key_steps.is_empty(), provider.key.is_none(), "{provider}: the steps to a key");
            if provider.oauth.is_some() {
                for gives in [Gives::RedirectUrl, Gives::Scopes, Gives::Settings] {
                    assert_eq!(
                        guide.steps.iter().filter(|step| step.gives == gives).count(),
                        1,
                        "{provider}: {gives:?}"
                    );
                }
            }
            for code in guide.codes {
                assert!(guide.refusals.iter().any(|advice| advice.says == *code), "{provider} does not explain {code}");
            }
            for meaning in Meaning::ALL {
                let advice = provider.explain_complaint(meaning, None);
                assert!(oauth::MEANINGS.contains(advice), "{provider}: {meaning:?}");
            }
        }
    }

    /// The parsers give the status's meaning for every answer, and a code of the provider's where it has one.
    #[test]
    fn every_answer_that_a_parser_reads_has_an_explanation() {
        for provider in ALL {
            for status in 400..=599 {
                let complaint = (provider.complaint)(status, b"{}");
                let advice = provider.explain_complaint(complaint.meaning, complaint.code.as_deref());
                assert!(!advice.todo.is_empty(), "{provider} {status}");
            }
        }
    }

    #[test]
    fn codes_in_capitals_become_words_and_names_do_not() {
        for (code, words) in [
            ("FACILITIES_SERVICES", Some("Facilities services")),
            ("CONSTRUCTION", Some("Construction")),
            ("IBM", None),
            ("Retail", None),
            ("", None),
            ("2026", None),
        ] {
            assert_eq!(super::capitals_in_words(code).as_deref(), words, "{code}");
        }
    }

    #[test]
    fn every_description_is_complete_and_none_takes_anothers_names() {
        let (mut names, mut types, mut limits, mut methods) = Default::default();
        fn all_new<'a>(known: &mut HashSet<&'a str>, more: impl IntoIterator<Item = &'a str>) {
            for name in more {
                assert!(known.insert(name), "{name} is there twice");
            }
        }
        for provider in ALL {
            all_new(&mut names, [provider.name]);
            all_new(&mut types, provider.document_types.iter().copied());
            let labelled: Vec<&str> = provider.labels.types.iter().map(|(document_type, _)| *document_type).collect();
            assert_eq!(labelled, provider.document_types, "{provider}: every type has a word for people");
            all_new(&mut limits, provider.limits.iter().map(|limit| limit.name));
            all_new(&mut methods, provider.kinds.iter().flat_map(|kind| [kind.list, kind.get]));
            assert!(provider.oauth.is_some() || provider.key.is_some(), "{provider} can be connected");
            assert!(provider.name.bytes().all(|b| b.is_ascii_lowercase() || b == b'_'), "{provider}");
            for (document_type, _) in provider.clients {
                assert!(provider.document_types.contains(document_type), "{provider} has {document_type}");
            }
            let oauth = provider.oauth.iter();
            let used =
                oauth.flat_map(|oauth| [oauth.client_id, oauth.client_secret, oauth.authorize_url, oauth.token_url]);
            let used =
                used.chain(provider.mcp.iter().map(|mcp| mcp.url)).chain(provider.first_sync.iter().map(|cap| cap.max));
            for setting in used {
                assert!(
                    provider.settings.iter().any(|known| known.env == setting.env),
                    "{provider} lists {}",
                    setting.env
                );
            }
        }
    }
}
