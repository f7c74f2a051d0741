//! Crumbline's own server: orders that a test changes, consent that is given at once, and one refusal of its own.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

pub const TOKEN: &str = "crumbline-token";
const PAGE: usize = 2;

#[derive(Default)]
pub struct Bakery {
    /// By the number of the change that made the row what it is.
    rows: BTreeMap<u64, Value>,
    newest: u64,
    /// The next request to the API is told that the oven is too hot.
    pub is_hot: bool,
}

impl Bakery {
    pub fn put(&mut self, kind: &str, id: &str, mut row: Value) {
        self.rows.retain(|_, known| (&known["kind"], &known["id"]) != (&json!(kind), &json!(id)));
        self.newest += 1;
        (row["kind"], row["id"]) = (json!(kind), json!(id));
        self.rows.insert(self.newest, row);
    }

    /// Answers a request: status, a header and a body.
    fn answer(&mut self, line: &str, head: &str) -> (&'static str, String, Value) {
        let (path, query) = line.split_once('?').unwrap_or((line, ""));
        let parameter = |name: &str| query.split('&').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='));
        let number = |name: &str| parameter(name).and_then(|text| text.parse::<u64>().ok()).unwrap_or_default();
        let ok = |body: Value| ("200 OK", String::new(), body);
        match path {
            "/authorize" => {
                assert_eq!(parameter("oven"), Some("warm"), "the description's own parameter");
                let back = parameter("redirect_uri").unwrap_or_default().replace("%3A", ":").replace("%2F", "/");
                let state = parameter("state").unwrap_or_default();
                ("302 Found", format!("Location: {back}?code=c1&state={state}&bakery=b-7\r\n"), Value::Null)
            }
            "/token" => {
                assert!(head.contains("authorization: basic "), "the client proves itself as described");
                ok(json!({ "access_token": TOKEN, "refresh_token": "crumbline-refresh", "expires_in": 3600 }))
            }
            _ if !head.contains(&format!("authorization: bearer {TOKEN}")) => {
                ("401 Unauthorized", String::new(), Value::Null)
            }
            _ if std::mem::take(&mut self.is_hot) => {
                ("418 Teapot", String::new(), json!({ "oops": "OVEN_TOO_HOT", "cool_secs": 7 }))
            }
            "/me" => ok(json!({ "bakery": "b-7", "name": "Harrow Ridge Bakery" })),
            "/rows" => {
                let page = usize::try_from(number("page")).unwrap_or(1);
                let there: Vec<&Value> = self.rows.values().filter(|row| row["is_gone"] != true).collect();
                let rows: Vec<&&Value> = there.iter().skip((page - 1) * PAGE).take(PAGE).collect();
                let next = (page * PAGE < there.len()).then_some(page + 1);
                ok(json!({ "rows": rows, "next": next, "newest": self.newest }))
            }
            "/changes" => {
                let rows: Vec<&Value> = self.rows.range(number("since") + 1..).map(|(_, row)| row).collect();
                ok(json!({ "rows": rows, "next": null, "newest": self.newest }))
            }
            path => {
                let is_asked = |row: &&Value| {
                    let name =
                        format!("/rows/{}/{}", row["kind"].as_str().unwrap_or(""), row["id"].as_str().unwrap_or(""));
                    name == path && row["is_gone"] != true
                };
                match self.rows.values().find(is_asked) {
                    Some(row) => ok(row.clone()),
                    None => ("404 Not Found", String::new(), Value::Null),
                }
            }
        }
    }
}

/// Starts it; returns its address.
pub async fn start(bakery: Arc<Mutex<Bakery>>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(serve(stream, bakery.clone()));
        }
    });
    url
}

async fn serve(mut stream: TcpStream, bakery: Arc<Mutex<Bakery>>) {
    let mut bytes = Vec::new();
    let head = loop {
        if stream.read_buf(&mut bytes).await.unwrap_or_default() == 0 {
            return;
        }
        let Some(end) = bytes.windows(4).position(|part| part == b"\r\n\r\n") else { continue };
        let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
        let length =
            head.to_ascii_lowercase().lines().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok());
        if bytes.len() >= end + 4 + length.unwrap_or(0_usize) {
            break head;
        }
    };
    let line = head.split(' ').nth(1).unwrap_or_default();
    let (status, header, body) = bakery.lock().expect("the bakery").answer(line, &head.to_ascii_lowercase());
    let body = body.to_string();
    let answer = format!(
        "HTTP/1.1 {status}\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: {}\r\n{header}\r\n{body}",
        body.len()
    );
    let _ = stream.write_all(answer.as_bytes()).await;
    let _ = stream.shutdown().await;
}
