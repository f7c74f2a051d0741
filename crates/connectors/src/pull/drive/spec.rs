//! Google Drive, described.

use std::sync::Arc;

use serde_json::Value;

use super::{AT_ONCE, Drive, guide, map, tools};
use crate::Http;
use crate::pull::google::{self, AUTHORIZE_URL, CLIENT_ID, CLIENT_SECRET, TOKEN_URL};
use crate::pull::http::Api;
use crate::pull::settings::{Setting, Settings};
use crate::pull::spec::{FirstSync, Kind, Labels, Mcp, ProviderSpec, Sample};
use crate::pull::{Connector, Limit};

/// Drive counts in units. The cost of a method is not published, and the older allowance is in requests, so a request is one unit.
pub(super) static REQUESTS: Limit = Limit { name: "google_drive", units: 12_000, per_secs: 60 };

static API_URL: Setting =
    Setting::url("DRIVE_API_URL", Some("https://www.googleapis.com/drive/v3"), "Google Drive's API");
static MCP_URL: Setting = Setting::url(
    "DRIVE_MCP_URL",
    None,
    "An MCP server with the tools of Google's own for Drive, for sources that are read through it. None unless named",
);
static FIRST_SYNC_MAX: Setting = Setting::count(
    "DRIVE_INITIAL_SYNC_MAX_FILES",
    "200",
    "Most files that the first sync of a Drive takes, the newest first",
);

pub static SPEC: ProviderSpec = ProviderSpec {
    name: "google_drive",
    label: "Google Drive",
    brings: "Documents, sheets and files",
    settings: &[&CLIENT_ID, &CLIENT_SECRET, &API_URL, &AUTHORIZE_URL, &TOKEN_URL, &MCP_URL, &FIRST_SYNC_MAX],
    oauth: Some(google::oauth(
        &["https://www.googleapis.com/auth/drive.readonly"],
        "in the Google Cloud console, enable the Drive API and make an OAuth client of the type Web application",
    )),
    key: None,
    limits: &[&REQUESTS],
    document_types: &[map::DOC, map::SHEET, map::FILE],
    kinds: &[Kind {
        object: "file",
        list: "drive.files.list",
        get: "drive.files.get",
        batch: 1,
        sample: Some(Sample {
            pages: include_str!("../../../../../fixtures/google_drive/files.json"),
            records: "/files",
            complete: Some(add_text),
        }),
    }],
    raw: map::raw,
    item: map::item,
    is_passed_over,
    link: |file| file.get("webViewLink").and_then(Value::as_str).map(str::to_owned),
    // Every file comes with its text, of up to 10 MB.
    find_max: AT_ONCE,
    first_sync: Some(FirstSync { max: &FIRST_SYNC_MAX, things: "files" }),
    // And a full pass would bring in the files that the cap on the first sync left out.
    has_complete_deltas: true,
    hides_long_quota: false,
    clients: &[],
    labels: Labels {
        types: &[(map::DOC, "Google document"), (map::SHEET, "Google sheet"), (map::FILE, "Google Drive file")],
        facts: &[],
        value: |_, _| None,
    },
    address_fields: &[],
    complaint: google::complaint,
    hidden_complaint: None,
    mcp: Some(Mcp {
        server: "Google Drive's MCP server",
        url: &MCP_URL,
        tools: tools::TOOLS,
        blanks: &[],
        limits: &[&REQUESTS],
    }),
    mailbox: None,
    rest,
    guide: guide::GUIDE,
};

/// A file in the bin, or of a type that is not read where no bytes are fetched: in sample data, and through an MCP server.
fn is_passed_over(file: &Value) -> bool {
    let mime_type = file.get("mimeType").and_then(Value::as_str);
    let is_in_bin = file.get("trashed").and_then(Value::as_bool) == Some(true);
    is_in_bin || mime_type.is_some_and(|kind| map::document_type(kind).is_none_or(|kind| kind == map::FILE))
}

/// The text that an export would give: every document says the same, a sheet only its name.
fn add_text(file: &mut Value) {
    let name = file.get("name").and_then(Value::as_str).unwrap_or_default();
    let text = match file.get("mimeType").and_then(Value::as_str) {
        Some(map::SHEET_MIME) => format!("Sheet\n\"{}\"\n", name.replace('"', "\"\"")),
        _ => include_str!("../../../../../fixtures/google_drive/gdoc-export-sample.txt").to_owned(),
    };
    file["text"] = Value::String(text);
}

fn rest(http: &Http, settings: &Settings) -> Arc<dyn Connector> {
    let api = Api::new(http, settings.text(&API_URL), &SPEC);
    Arc::new(Drive::new(api, settings.count(&FIRST_SYNC_MAX)))
}
