//! Crumbline: a provider of bakeries' orders that exists in this test alone. Its description, connector and mapper stand outside every
//! crate of the program.

use std::sync::Arc;
use std::time::Duration;

use connectors::Http;
use connectors::guide::{Advice, Gives, Group, Mark, Step};
use connectors::pull::clients::{ClientFacts, Facts, Told};
use connectors::pull::complaint::{self, Complaint, Meaning};
use connectors::pull::record::{self, Fields};
use connectors::pull::records::{Records, sorted};
use connectors::pull::spec::{ClientProof, Guide, Key, Kind, Labels, Oauth, Sample, Says};
use connectors::pull::{
    Account, Api, ApiAnswer, Connector, Failed, Found, Identity, Item, Limit, Page, Provider, ProviderSpec, PullError,
    RawItem, Refused, Setting, Settings, last, more, read_place,
};
use futures_util::future::BoxFuture;
use serde::Deserialize;
use serde_json::{Value, json};

pub const CRUMBLINE: Provider = &SPEC;

static LIMIT: Limit = Limit { name: "crumbline", units: 400, per_secs: 10 };

static CLIENT_ID: Setting = Setting::text("CRUMBLINE_CLIENT_ID", None, "The id of your app at Crumbline");
static CLIENT_SECRET: Setting = Setting::secret("CRUMBLINE_CLIENT_SECRET", "Its secret");
static API_URL: Setting = Setting::url("CRUMBLINE_API_URL", None, "Crumbline's API");
static AUTHORIZE_URL: Setting = Setting::url("CRUMBLINE_AUTHORIZE_URL", None, "Where people allow it");
static TOKEN_URL: Setting = Setting::url("CRUMBLINE_TOKEN_URL", None, "Where its tokens come from");

static SPEC: ProviderSpec = ProviderSpec {
    name: "crumbline",
    label: "Crumbline",
    brings: "Guests and orders",
    settings: &[&CLIENT_ID, &CLIENT_SECRET, &API_URL, &AUTHORIZE_URL, &TOKEN_URL],
    oauth: Some(Oauth {
        client_id: &CLIENT_ID,
        client_secret: &CLIENT_SECRET,
        authorize_url: &AUTHORIZE_URL,
        token_url: &TOKEN_URL,
        scopes: &["orders.read"],
        authorize_query: &[("oven", "warm")],
        client_proof: ClientProof::BasicAuth,
        account_parameter: Some("bakery"),
        refusal: |_, _| None,
        setup: "ask Crumbline for an app",
    }),
    key: Some(Key { of: "a till", hint: "It is printed under the till.", placeholder: "till-…" }),
    limits: &[&LIMIT],
    document_types: &["crumbline.guest", "crumbline.order"],
    kinds: &[Kind {
        object: "order",
        list: "crumbline.orders.list",
        get: "crumbline.orders.get",
        batch: 10,
        sample: Some(Sample {
            pages: r#"[{ "rows": [{ "id": "1", "kind": "order", "guest": "1", "text": "Sample rolls" }] }]"#,
            records: "/rows",
            complete: None,
        }),
    }],
    raw,
    item,
    is_passed_over: |_| false,
    link: |_| None,
    find_max: 10,
    first_sync: None,
    has_complete_deltas: false,
    hides_long_quota: false,
    clients: &[("crumbline.guest", Says::IsClient(guest)), ("crumbline.order", Says::IsOfClients)],
    labels: Labels {
        types: &[("crumbline.guest", "Crumbline guest"), ("crumbline.order", "Crumbline order")],
        facts: &[],
        value: |_, _| None,
    },
    address_fields: &[],
    complaint,
    hidden_complaint: None,
    mcp: None,
    mailbox: None,
    rest: |http: &Http, settings: &Settings| {
        Arc::new(Crumbline { api: Api::new(http, settings.text(&API_URL), &SPEC) })
    },
    guide: Guide {
        group: Group::Other,
        mark: Mark(r#"<circle class="soft" cx="12" cy="12" r="8"/>"#),
        also: "bread bakery",
        steps: &[Step {
            title: "Ask for an app",
            text: "Write to Crumbline, and paste this address into the letter.",
            gives: Gives::RedirectUrl,
        }],
        key_steps: &[Step {
            title: "Look under the till",
            text: "The key is printed there. It begins with `till-`.",
            gives: Gives::Nothing,
        }],
        codes: &["OVEN_TOO_HOT"],
        refusals: &[Advice {
            says: "OVEN_TOO_HOT",
            means: "The oven has to cool down first.",
            todo: "Do nothing: it is asked again when the oven is cool.",
        }],
    },
};

/// Crumbline says `{"oops": "OVEN_TOO_HOT", "cool_secs": 7}` with status 418 where others say 429.
fn complaint(status: u16, body: &[u8]) -> Complaint {
    let said = complaint::json(body);
    let meaning = if status == 418 { Meaning::Wait } else { Meaning::of_status(status) };
    let wait = Duration::from_secs(said.get("cool_secs").and_then(Value::as_u64).unwrap_or(60));
    Complaint { meaning, code: complaint::word_at(&said, "/oops"), wait, told_at: None }
}

/// Reads `{"id", "kind", "text", "guest"?, "is_gone"?}`.
fn raw(_: &str, row: Value) -> Result<RawItem, Failed> {
    let kind = row.get("kind").and_then(Value::as_str).unwrap_or("order").to_owned();
    read(&kind, &row).map_err(|reason| record::failed(&kind, row.get("id"), reason, row.clone()))
}

fn read(kind: &str, row: &Value) -> Result<RawItem, String> {
    let fields: &Fields = record::object(row)?;
    let id = record::id(fields, "id")?;
    let external_id = format!("{kind}:{id}");
    let document_type = if kind == "guest" { "crumbline.guest" } else { "crumbline.order" };
    if fields.get("is_gone").and_then(Value::as_bool) == Some(true) {
        return Ok(record::tombstone(external_id, document_type, None));
    }
    let mut payload = Fields::new();
    record::put(&mut payload, "id", Some(id));
    record::put(&mut payload, "text", record::text(fields, "text")?);
    record::put(&mut payload, "guest", record::text(fields, "guest")?);
    Ok(RawItem {
        external_id,
        document_type,
        payload: Value::Object(payload),
        source_created_at: None,
        source_updated_at: None,
        is_deleted: false,
    })
}

fn item(raw: RawItem) -> Item {
    let mentions = match record::said(&raw.payload, "/guest") {
        Some(guest) => vec![format!("guest:{guest}")],
        None => vec![raw.external_id.clone()],
    };
    if raw.is_deleted {
        return record::buried(raw, mentions);
    }
    let text = record::said(&raw.payload, "/text").unwrap_or_default();
    Item { title: Some(text.clone()), text, raw, mentions, letter: None, file: None }
}

fn guest(own: Told<'_>, related: &[Told<'_>]) -> Option<ClientFacts> {
    let mut facts = Facts::new(record::said(own.payload, "/text")?);
    let orders = related.iter().filter(|told| told.document_type == "crumbline.order");
    let ids: Vec<&str> = orders.map(|told| told.external_id).collect();
    facts.key("orders", Some(ids.len()).filter(|n| *n > 0), &ids);
    Some(facts.0)
}

struct Crumbline {
    api: Api,
}

/// A page of rows, the number of the next page, and the number of the newest change.
#[derive(Deserialize)]
struct Rows {
    rows: Records,
    next: Option<u64>,
    newest: u64,
}

impl Rows {
    fn found(&self) -> Found {
        sorted(self.rows.read("order", |row| Some(raw("order", row))), item)
    }
}

impl Crumbline {
    async fn rows(&self, account: &Account<'_>, path: &str, query: (&str, u64)) -> Result<Rows, PullError> {
        let number = query.1.to_string();
        let answer: ApiAnswer<Rows> = self.api.get(account, &[&LIMIT], path, &[(query.0, &number)]).await?;
        Ok(answer.body)
    }
}

impl Connector for Crumbline {
    fn document_types(&self) -> &'static [&'static str] {
        SPEC.document_types
    }

    fn cursor<'a>(&'a self, account: &'a Account<'a>) -> BoxFuture<'a, Result<Option<Value>, PullError>> {
        Box::pin(async move { Ok(Some(json!(self.rows(account, "/rows", ("page", 1)).await?.newest))) })
    }

    fn full<'a>(
        &'a self,
        account: &'a Account<'a>,
        place: Option<&'a Value>,
        _is_first: bool,
    ) -> BoxFuture<'a, Result<Page, PullError>> {
        Box::pin(async move {
            let page = place.map(read_place).transpose()?.unwrap_or(1);
            let rows = self.rows(account, "/rows", ("page", page)).await?;
            let (items, failed) = rows.found();
            Ok(match rows.next {
                Some(next) => more(items, failed, json!(next)),
                None => last(items, failed, Value::Null),
            })
        })
    }

    fn delta<'a>(
        &'a self,
        account: &'a Account<'a>,
        cursor: &'a Value,
        _place: Option<&'a Value>,
    ) -> BoxFuture<'a, Result<Page, PullError>> {
        Box::pin(async move {
            let rows = self.rows(account, "/changes", ("since", read_place(cursor)?)).await?;
            let (items, failed) = rows.found();
            Ok(last(items, failed, json!(rows.newest)))
        })
    }

    fn find<'a>(
        &'a self,
        account: &'a Account<'a>,
        external_ids: &'a [String],
    ) -> BoxFuture<'a, Result<Found, PullError>> {
        Box::pin(async move {
            let (mut items, mut failed) = (Vec::new(), Vec::new());
            for name in external_ids {
                let path = format!("/rows/{}", name.replace(':', "/"));
                match self.api.get::<Value>(account, &[&LIMIT], &path, &[]).await {
                    Ok(row) => match raw("order", row.body) {
                        Ok(raw) => items.push(item(raw)),
                        Err(behind) => failed.push(behind),
                    },
                    Err(Refused::Lasting { status: 404, .. }) => {}
                    Err(refused) => return Err(refused.into()),
                }
            }
            Ok((items, failed))
        })
    }

    fn identify<'a>(&'a self, account: &'a Account<'a>) -> BoxFuture<'a, Result<Identity, PullError>> {
        Box::pin(async move {
            let me: ApiAnswer<Value> = self.api.get(account, &[&LIMIT], "/me", &[]).await?;
            let said = |key: &str| record::said(&me.body, &format!("/{key}")).unwrap_or_default();
            Ok(Identity { account: said("bakery"), name: said("name") })
        })
    }
}
