//! Each provider as a client sees it, over real connections.

mod drive;
mod gmail;
mod hubspot;
mod manners;
mod mcp;
mod oauth;
mod outlook;
mod pubsub;
mod quickbooks;

use std::sync::Once;
use std::time::Duration;

use reqwest::redirect::Policy;
use reqwest::{Client, RequestBuilder, Response, Url};
use serde_json::Value;

use crate::{Fakes, Provider};

/// A client of the fakes that holds a token.
struct Browser {
    fakes: Fakes,
    client: Client,
    token: String,
}

impl Browser {
    async fn of(provider: Provider, fakes: Fakes) -> Self {
        static PROVIDER: Once = Once::new();
        PROVIDER.call_once(|| rustls::crypto::ring::default_provider().install_default().expect("the first"));
        let client =
            Client::builder().redirect(Policy::none()).timeout(Duration::from_secs(5)).build().expect("a client");
        let token = fakes.issue(provider).access_token;
        Self { fakes, client, token }
    }

    fn get(&self, path: &str) -> RequestBuilder {
        self.client.get(format!("{}{path}", self.fakes.url())).bearer_auth(&self.token)
    }

    fn get_with(&self, path: &str, query: &[(&str, &str)]) -> RequestBuilder {
        let url = Url::parse_with_params(&format!("{}{path}", self.fakes.url()), query).expect("a url");
        self.client.get(url).bearer_auth(&self.token)
    }

    fn post(&self, path: &str) -> RequestBuilder {
        self.client.post(format!("{}{path}", self.fakes.url())).bearer_auth(&self.token)
    }

    async fn get_json(&self, path: &str) -> (u16, Value) {
        json(self.get(path).send().await.expect("an answer")).await
    }

    async fn post_json(&self, path: &str, body: Value) -> (u16, Value) {
        json(self.post(path).json(&body).send().await.expect("an answer")).await
    }
}

async fn json(response: Response) -> (u16, Value) {
    let status = response.status().as_u16();
    (status, response.json().await.expect("JSON"))
}

/// The text of each value at this pointer.
fn texts(rows: &[Value], pointer: &str) -> Vec<String> {
    let text = |row: &Value| row.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
    rows.iter().map(text).collect()
}
