//! The providers of this process, by the settings: how each is reached, and with which app of ours.

use std::collections::HashMap;
use std::sync::Arc;

use connectors::Http;
use connectors::pull::mailbox::Mailbox;
use connectors::pull::oauth::OauthApp;
use connectors::pull::{self, ALL, Connector, Provider};
use domain::Transport;

use crate::Config;

/// Every provider that this process knows.
pub struct Providers {
    known: Vec<Provider>,
    apps: HashMap<Provider, OauthApp>,
    rest: HashMap<Provider, Arc<dyn Connector>>,
    mcp: HashMap<Provider, Arc<dyn Connector>>,
    mailboxes: HashMap<Provider, Arc<dyn Mailbox>>,
    use_fixtures: bool,
}

/// A row, an address or a person names a provider that this program does not know.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{name:?} is none of {known}")]
pub struct UnknownProvider {
    pub name: String,
    known: String,
}

impl Providers {
    /// All providers of the program.
    pub fn from_config(config: &Config, http: &Http) -> anyhow::Result<Self> {
        Self::new(config, http, ALL)
    }

    /// These providers, in this order.
    pub fn new(config: &Config, http: &Http, known: &[Provider]) -> anyhow::Result<Self> {
        let settings = &config.providers;
        let (mut apps, mut rest, mut mcp) = (HashMap::new(), HashMap::new(), HashMap::new());
        let mut mailboxes = HashMap::new();
        for provider in known.iter().copied() {
            apps.extend(OauthApp::new(provider, settings).map(|app| (provider, app)));
            mcp.extend(pull::mcp(provider, settings, http)?.map(|connector| (provider, connector)));
            rest.insert(provider, (provider.rest)(http, settings));
            mailboxes.extend(provider.mailbox.as_ref().map(|mailbox| (provider, (mailbox.rest)(http, settings))));
        }
        Ok(Self { known: known.to_vec(), apps, rest, mcp, mailboxes, use_fixtures: config.integrations_use_fixtures })
    }

    /// Reads a provider's own API by this connector instead.
    pub fn with_connector(mut self, provider: Provider, connector: Arc<dyn Connector>) -> Self {
        self.rest.insert(provider, connector);
        self
    }

    /// All providers, in the order in which people see them.
    pub fn all(&self) -> &[Provider] {
        &self.known
    }

    /// The provider of this name, as rows and addresses spell it.
    pub fn named(&self, name: &str) -> Result<Provider, UnknownProvider> {
        let known = self.known.iter().copied().find(|provider| provider.name == name);
        known.ok_or_else(|| {
            let known: Vec<&str> = self.known.iter().map(|provider| provider.name).collect();
            UnknownProvider { name: name.to_owned(), known: known.join(", ") }
        })
    }

    /// A provider's name as people call it. A provider that this program does not know is called as its rows call it.
    pub fn label<'a>(&self, name: &'a str) -> &'a str {
        self.named(name).map_or(name, |provider| provider.label)
    }

    /// Our app at the provider, if it is set up.
    pub fn app(&self, provider: Provider) -> Option<&OauthApp> {
        self.apps.get(&provider)
    }

    /// The connector that reads a source. Sample data where the settings say so, however the source was connected.
    pub fn connector(&self, provider: Provider, transport: Transport) -> Option<Arc<dyn Connector>> {
        match transport {
            _ if self.use_fixtures => pull::fixtures(provider),
            Transport::Fixtures => pull::fixtures(provider),
            Transport::Rest => self.rest.get(&provider).cloned(),
            Transport::Mcp => self.mcp.get(&provider).cloned(),
        }
    }

    /// The further offers of a provider of mailboxes; none of any other one, and of sample data.
    pub fn mailbox(&self, provider: Provider) -> Option<Arc<dyn Mailbox>> {
        self.mailboxes.get(&provider).filter(|_| !self.use_fixtures).cloned()
    }

    pub fn uses_fixtures(&self) -> bool {
        self.use_fixtures
    }
}
