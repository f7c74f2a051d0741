//! Whom sources are at, by the settings: how each provider is reached, and with which app of ours.

use std::collections::HashMap;
use std::sync::Arc;

use connectors::Http;
use connectors::pull::oauth::OauthApp;
use connectors::pull::{self, Connector, Endpoints};
use domain::{Provider, Transport};

use crate::Config;

pub struct Providers {
    apps: HashMap<Provider, OauthApp>,
    rest: HashMap<Provider, Arc<dyn Connector>>,
    mcp: HashMap<Provider, Arc<dyn Connector>>,
    use_fixtures: bool,
}

impl Providers {
    pub fn from_config(config: &Config, http: &Http) -> anyhow::Result<Self> {
        let (mut apps, mut rest, mut mcp) = (HashMap::new(), HashMap::new(), HashMap::new());
        for provider in Provider::ALL.iter().copied() {
            let endpoints = endpoints(config, provider);
            let (id, secret) = match provider {
                Provider::Hubspot => (&config.hubspot_client_id, &config.hubspot_client_secret),
                Provider::GoogleDrive => (&config.google_client_id, &config.google_client_secret),
                Provider::Quickbooks => (&config.quickbooks_client_id, &config.quickbooks_client_secret),
            };
            if let (Some(id), Some(secret)) = (id, secret) {
                apps.insert(provider, OauthApp::new(provider, &endpoints, id, secret.clone()));
            }
            if let Some(url) = &endpoints.mcp_url {
                mcp.insert(provider, pull::mcp(provider, url, http, config.drive_initial_sync_max_files)?);
            }
            rest.insert(provider, pull::rest(provider, &endpoints, http, config.drive_initial_sync_max_files));
        }
        Ok(Self { apps, rest, mcp, use_fixtures: config.integrations_use_fixtures })
    }

    /// Has a provider's own API read by this instead.
    pub fn with_connector(mut self, provider: Provider, connector: Arc<dyn Connector>) -> Self {
        self.rest.insert(provider, connector);
        self
    }

    /// Our app at the provider, if it is set up.
    pub fn app(&self, provider: Provider) -> Option<&OauthApp> {
        self.apps.get(&provider)
    }

    /// What reads a source. Sample data where the settings say so, whatever the source was connected with.
    pub fn connector(&self, provider: Provider, transport: Transport) -> Option<Arc<dyn Connector>> {
        match transport {
            _ if self.use_fixtures => Some(pull::fixtures(provider)),
            Transport::Fixtures => Some(pull::fixtures(provider)),
            Transport::Rest => self.rest.get(&provider).cloned(),
            Transport::Mcp => self.mcp.get(&provider).cloned(),
        }
    }

    pub fn uses_fixtures(&self) -> bool {
        self.use_fixtures
    }
}

fn endpoints(config: &Config, provider: Provider) -> Endpoints {
    match provider {
        Provider::Hubspot => Endpoints {
            api_url: config.hubspot_api_url.clone(),
            authorize_url: config.hubspot_authorize_url.clone(),
            token_url: config.hubspot_token_url.clone(),
            mcp_url: config.hubspot_mcp_url.clone(),
            version: Some(config.hubspot_api_version.clone()),
        },
        Provider::GoogleDrive => Endpoints {
            api_url: config.drive_api_url.clone(),
            authorize_url: config.google_authorize_url.clone(),
            token_url: config.google_token_url.clone(),
            mcp_url: None,
            version: None,
        },
        Provider::Quickbooks => Endpoints {
            api_url: config.quickbooks_api_url.clone(),
            authorize_url: config.quickbooks_authorize_url.clone(),
            token_url: config.quickbooks_token_url.clone(),
            mcp_url: None,
            version: None,
        },
    }
}
