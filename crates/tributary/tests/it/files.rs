//! Files from outside: whatever is handed in becomes text that is found with its page, or says in words why not; and no crash loses or doubles one.

use std::collections::HashMap;
use std::time::Duration;

use domain::{Clock, Scope, Secret};
use futures_util::{StreamExt as _, stream};
use reqwest::StatusCode;
use rustix::process::Signal;
use serde_json::{Value, json};
use store::crash::Point;
use testkit::{Cluster, World, pdf, wait_until};

use crate::app::{App, Folder, client, command, free_port, run};
use crate::intake::{MASTER_KEY, Opens, add_channel};

const SOON: Duration = Duration::from_secs(60);
const READ_WRITE: [Scope; 2] = [Scope::Read, Scope::Write];

/// An installation with workers.
pub struct Desk {
    pub world: World,
    folder: Folder,
    port: u16,
    key: Secret,
}

impl Desk {
    pub async fn new(world: World) -> Self {
        let key = world.caller(world.tenant_id, &READ_WRITE).await.1;
        Self { world, folder: Folder::new(), port: free_port(), key }
    }

    async fn up(&self, crash: Option<&str>) -> App {
        self.up_with(&crash.map(|crash| ("TRIBUTARY_CRASH", crash)).into_iter().collect::<Vec<_>>()).await
    }

    pub async fn up_with(&self, settings: &[(&str, &str)]) -> App {
        let mut up = command(&self.folder.0, self.port);
        up.env("DATABASE_URL", self.world.database.admin.uri().reveal()).env("MASTER_KEY", MASTER_KEY);
        up.envs(settings.iter().copied());
        App::start(up, &["up"], self.port).await
    }

    /// Hands a file in. None: the server is away.
    pub async fn hand_in(&self, name: &str, content: &[u8]) -> Option<(StatusCode, Value)> {
        let url = format!("http://127.0.0.1:{}/api/v1/documents", self.port);
        let request = client().post(url).bearer_auth(self.key.reveal()).header("x-file-name", name);
        let request = request.header("content-type", "application/octet-stream").body(content.to_vec());
        let answer = request.send().await.ok()?;
        let status = answer.status();
        Some((status, answer.json().await.ok()?))
    }

    /// An event with files comes by webhook. None: the server is away.
    async fn hear(&self, door: &Opens, content: &str, files: &[(&str, &[u8])]) -> Option<String> {
        let mut body =
            format!("--cut\r\nContent-Disposition: form-data; name=\"content\"\r\n\r\n{content}\r\n").into_bytes();
        for (name, bytes) in files {
            let head = format!(
                "--cut\r\nContent-Disposition: form-data; name=\"file\"; filename=\"{name}\"\r\nContent-Type: application/octet-stream\r\n\r\n"
            );
            body.extend([head.as_bytes(), bytes, b"\r\n"].concat());
        }
        body.extend(b"--cut--\r\n");
        let url = format!("http://127.0.0.1:{}/ingest/{}", self.port, door.ingestion_key.reveal());
        let request = client().post(url).bearer_auth(door.bearer.reveal());
        let answer =
            request.header("content-type", "multipart/form-data; boundary=cut").body(body).send().await.ok()?;
        assert_eq!(answer.status().as_u16(), 202);
        Some(answer.json::<Value>().await.ok()?["id"].as_str().expect("an id").to_owned())
    }

    async fn get(&self, path: &str) -> Option<reqwest::Response> {
        let request = client().get(format!("http://127.0.0.1:{}{path}", self.port)).bearer_auth(self.key.reveal());
        request.send().await.ok()
    }

    async fn ask(&self, path: &str) -> Value {
        match self.get(path).await {
            Some(answer) => answer.json().await.unwrap_or_default(),
            None => Value::Null,
        }
    }

    async fn page(&self, path: &str) -> String {
        self.get(path).await.expect("an answer").text().await.expect("a page")
    }

    /// The document once its file is read, or is not.
    pub async fn read(&self, id: &str) -> Value {
        let mut document = Value::Null;
        let is_over = wait_until(SOON, async || {
            document = self.ask(&format!("/api/v1/documents/{id}")).await;
            ["completed", "skipped", "failed"].iter().any(|status| document["status"] == *status)
        });
        assert!(is_over.await, "I5: {document}");
        document
    }

    /// A page of ours, or what it shows, as a browser with this key asks for it.
    async fn look(&self, path: &str, key: &Secret) -> reqwest::Response {
        let request = client().get(format!("http://127.0.0.1:{}{path}", self.port)).header("accept", "text/html");
        request.bearer_auth(key.reveal()).send().await.expect("an answer")
    }

    async fn found(&self, query: &str) -> Vec<Value> {
        self.found_where(&[("q", query)]).await
    }

    async fn found_where(&self, asked: &[(&str, &str)]) -> Vec<Value> {
        let url = reqwest::Url::parse_with_params("http://x/api/v1/search", asked).expect("an address");
        let answer = self.ask(&format!("{}?{}", url.path(), url.query().unwrap_or_default())).await;
        answer["hits"].as_array().cloned().unwrap_or_default()
    }
}

pub fn id_of((_, answer): &(StatusCode, Value)) -> String {
    answer["id"].as_str().unwrap_or_else(|| panic!("no id: {answer}")).to_owned()
}

/// S11: a name is never a path.
#[tokio::test(flavor = "multi_thread")]
async fn a_file_becomes_text_that_is_found_with_its_page_and_the_same_bytes_are_read_once() {
    let desk = Desk::new(World::now().await).await;
    let _app = desk.up(None).await;
    let pages: Vec<String> = (1..=12)
        .map(|page| match page {
            7 => "The pump in hall nine is serviced by Odell Trask every second Tuesday.".to_owned(),
            page => format!("Chapter {page} of the manual.\nNothing here but the number {page} hundred and {page}."),
        })
        .collect();
    let bytes = pdf(&pages.iter().map(String::as_str).collect::<Vec<_>>());
    let taken = desk.hand_in("../../etc/manual.pdf", &bytes).await.expect("an answer");
    assert_eq!((taken.0, &taken.1["status"]), (StatusCode::CREATED, &json!("pending")), "{taken:?}");
    let document = desk.read(&id_of(&taken)).await;
    assert_eq!((&document["status"], &document["title"]), (&json!("completed"), &json!("../../etc/manual.pdf")));
    let file = &document["file"];
    assert_eq!((&file["kind"], &file["pages"], &file["pages_read"]), (&json!("pdf"), &json!(12), &json!(12)), "{file}");
    let states: Vec<&Value> = file["steps"].as_array().expect("steps").iter().map(|step| &step["state"]).collect();
    assert_eq!(states, [&json!("done"); 3], "{file}");
    let hits = desk.found("who services the pump in hall nine").await;
    assert_eq!((&hits[0]["document_id"], &hits[0]["page"]), (&taken.1["id"], &json!(7)), "{hits:?}");
    let page = desk.ask(&format!("/api/v1/documents/{}/pages?after=6", id_of(&taken))).await;
    assert!(page["pages"][0]["text"].as_str().is_some_and(|text| text.contains("Odell Trask")), "{page}");

    let again = desk.hand_in("../../etc/manual.pdf", &bytes).await.expect("an answer");
    assert_eq!((again.0, &again.1["status"], &again.1["id"]), (StatusCode::OK, &json!("completed"), &taken.1["id"]));
    // The same bytes as another document: they are linked, not read again.
    let url = format!("http://127.0.0.1:{}/api/v1/documents?external_id=copy", desk.port);
    let other = client().post(url).bearer_auth(desk.key.reveal()).header("content-type", "application/pdf");
    let other = other.header("x-file-name", "copy.pdf").body(bytes).send().await.expect("an answer");
    let other = other.json::<Value>().await.expect("JSON");
    let copy = desk.read(other["id"].as_str().expect("an id")).await;
    assert_eq!((&copy["status"], &copy["text"]), (&json!("completed"), &document["text"]));
    let mut conn = desk.world.conn().await;
    let (files, pages): (i64, i64) =
        sqlx::query_as("select (select count(*) from files), (select count(*) from file_pages)")
            .fetch_one(&mut *conn)
            .await
            .expect("counts");
    assert_eq!((files, pages), (1, 12), "the same bytes were read twice");

    // Once no document has the bytes, nothing is left of what was read of them.
    for id in [&taken.1["id"], &other["id"]] {
        let url = format!("http://127.0.0.1:{}/api/v1/documents/{}", desk.port, id.as_str().expect("an id"));
        assert_eq!(
            client().delete(url).bearer_auth(desk.key.reveal()).send().await.expect("an answer").status().as_u16(),
            204
        );
    }
    let left: i64 = sqlx::query_scalar(
        "select (select count(*) from files) + (select count(*) from file_pages) + (select count(*) from document_steps)")
        .fetch_one(&mut *conn).await.expect("a count");
    assert_eq!(left, 0, "what was read of a deleted file is still there");
}

/// F19, S6: each has its outcome, in words, and the others are read.
#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_read_says_why_and_keeps_nobody_waiting() {
    let desk = Desk::new(World::now().await).await;
    let app = desk.up(None).await;
    let whole = pdf(&["A page that is whole."]);
    let encrypted = b"%PDF-1.4\n1 0 obj\n<< /Type /Catalog /Pages 2 0 R >>\nendobj\n2 0 obj\n<< /Type /Pages /Kids [] /Count 0 >>\nendobj\n\
        3 0 obj\n<< /Filter /Standard /V 1 /R 2 /O (12345678901234567890123456789012) /U (12345678901234567890123456789012) /P -4 >>\nendobj\n\
        trailer\n<< /Root 1 0 R /Encrypt 3 0 R /ID [(a) (a)] /Size 4 >>\n%%EOF";
    let cases: Vec<(&str, Vec<u8>, &str, &str)> = vec![
        ("invoice.pdf", b"MZ\x90\0\x03\0\0\0\x04\0\0\0\xff\xff canary".to_vec(), "skipped", "program"),
        ("nothing.pdf", Vec::new(), "skipped", "empty"),
        ("cut.pdf", whole[..whole.len() / 3].to_vec(), "failed", "damaged"),
        ("locked.pdf", encrypted.to_vec(), "skipped", "encrypted"),
        ("odd.bin", vec![0, 1, 2, 3, 0, 255, 254, 9, 0], "skipped", "unknown_kind"),
        ("latin.txt", b"Der gr\xf6\xdfte Saal hei\xdft Gr\xfcnewald.".to_vec(), "completed", ""),
        ("whole.pdf", whole, "completed", ""),
    ];
    let mut ids = HashMap::new();
    for (name, content, ..) in &cases {
        let taken = desk.hand_in(name, content).await.expect("an answer");
        assert_eq!(taken.0, StatusCode::CREATED, "{name}: {taken:?}");
        ids.insert(*name, id_of(&taken));
    }
    for (name, _, status, reason) in &cases {
        let document = desk.read(&ids[name]).await;
        let said = document["skip_reason"].as_str().unwrap_or_default();
        assert_eq!((document["status"].as_str(), said), (Some(*status), *reason), "{name}: {document}");
    }
    assert_eq!(desk.found("größte Saal").await[0]["document_id"], json!(ids["latin.txt"]));
    let listed = desk.ask("/api/v1/documents?status=skipped").await;
    assert_eq!(listed["documents"].as_array().map(Vec::len), Some(4), "{listed}");
    assert!(!app.printed().contains("canary"), "S13: what a file says is in the log");

    // A person asks once more: the outcome is the same, and nothing is doubled.
    let url = format!("http://127.0.0.1:{}/api/v1/documents/{}/read-again", desk.port, ids["whole.pdf"]);
    let again = client().post(url).bearer_auth(desk.key.reveal()).json(&json!({})).send().await.expect("an answer");
    assert_eq!(again.status().as_u16(), 202);
    assert_eq!(desk.read(&ids["whole.pdf"]).await["status"], "completed");
}

/// F15: the process that reads is killed; the file is read by another one.
#[tokio::test(flavor = "multi_thread")]
async fn a_reader_that_is_killed_or_silent_is_followed_by_another() {
    let desk = Desk::new(World::now().await).await;
    let script = desk.folder.0.join("reader");
    std::fs::create_dir_all(&desk.folder.0).expect("a folder");
    // Dies of SIGKILL the first time, then does what it should.
    let mark = desk.folder.0.join("was-here");
    let text = format!(
        "#!/bin/sh\nif [ ! -e {mark} ]; then : > {mark}; kill -9 $$; fi\nexec {binary} \"$@\"\n",
        mark = mark.display(),
        binary = crate::app::BINARY
    );
    std::fs::write(&script, text).expect("a script");
    std::fs::set_permissions(&script, std::os::unix::fs::PermissionsExt::from_mode(0o755)).expect("its mode");
    let mut up = command(&desk.folder.0, desk.port);
    up.env("DATABASE_URL", desk.world.database.admin.uri().reveal()).env("READER_PROGRAM", &script);
    let _app = App::start(up, &["up"], desk.port).await;
    let taken = desk.hand_in("a.pdf", &pdf(&["It was read in the end."])).await.expect("an answer");
    let document = desk.read(&id_of(&taken)).await;
    assert_eq!(document["status"], "completed", "{document}");
    assert!(mark.exists(), "the reader was never killed, so the test shows nothing");
}

/// F1, I1, I2: the program dies at every step of reading.
#[tokio::test(flavor = "multi_thread")]
async fn killed_at_every_step_of_reading_no_file_is_lost_and_no_page_is_doubled() {
    let cluster = Cluster::private().await;
    let points: Vec<Point> = Point::ALL.iter().copied().filter(|point| point.name().starts_with("file.")).collect();
    assert!(points.len() >= 4, "{points:?}");
    stream::iter(points).map(|point| kill_at(&cluster, point)).buffer_unordered(2).collect::<Vec<()>>().await;
}

async fn kill_at(cluster: &Cluster, point: Point) {
    let database = cluster.database(&format!("files_{}", point.name().replace('.', "_"))).await;
    let desk = Desk::new(World::with(database, Clock::System).await).await;
    let mut hurt = desk.up(Some(&format!("{}:abort:2", point.name()))).await;
    // More pages than one commit keeps, so that it dies between two of them.
    let words = ["amber", "birch", "copper", "dune", "ember", "fern", "granite"];
    let long: Vec<String> = (1..=450_usize)
        .map(|page| {
            let word = |nth: usize| words[(page * nth + page / 7) % words.len()];
            format!(
                "Entry {page} is about {} and {}.\nIt cost {} dollars, which {} people paid.\nSomebody asked for {} once more.",
                word(1),
                word(2),
                page * 17,
                page % 5 + 2,
                word(3)
            )
        })
        .collect();
    let long = pdf(&long.iter().map(String::as_str).collect::<Vec<_>>());
    let mut ledger = Vec::new();
    for nth in 0..4 {
        let short = pdf(&[&format!("Short file number {nth} is about the colour teal.")]);
        let file = if nth == 1 { &long } else { &short };
        if let Some(taken) = desk.hand_in(&format!("{nth}.pdf"), file).await {
            ledger.push((nth, id_of(&taken)));
        }
    }
    let died = hurt.ended_within(SOON).await;
    assert!(died.is_some(), "crash point {} was never reached: remove it, or reach it", point.name());
    assert!(!ledger.is_empty(), "nothing was acknowledged");
    sqlx::raw_sql("update pgmq.q_document_queue set vt = now(); update pgmq.q_recognise set vt = now()")
        .execute(&mut *desk.world.conn().await)
        .await
        .expect("the leases have passed");
    let up = desk.up(None).await;
    for (nth, id) in &ledger {
        let document = desk.read(id).await;
        let n_pages = if *nth == 1 { 450 } else { 1 };
        assert_eq!(
            (&document["status"], &document["file"]["pages_read"]),
            (&json!("completed"), &json!(n_pages)),
            "after {}: {}",
            point.name(),
            document["skip_reason"]
        );
    }
    let mut conn = desk.world.conn().await;
    let (documents, doubled, strays): (i64, i64, i64) = sqlx::query_as(
        "select (select count(*) from source_documents), (select count(*) from document_chunks c group by c.document_id, c.page, c.hash having count(*) > 1 limit 1),
             (select count(*) from document_chunks c where c.page is null)",
    )
    .fetch_one(&mut *conn)
    .await
    .map(|(documents, doubled, strays): (i64, Option<i64>, i64)| (documents, doubled.unwrap_or(0), strays))
    .expect("counts");
    assert!(
        documents >= ledger.len() as i64 && doubled == 0 && strays == 0,
        "I2 after {}: {documents} {doubled} {strays}",
        point.name()
    );
    println!("{}: {} files, 0 lost, 0 doubled", point.name(), ledger.len());
    up.signal(Signal::TERM);
}

/// A file of `fixtures/files`.
fn fixture(name: &str) -> Vec<u8> {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/files").join(name);
    std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_scan_and_a_recording_are_recognised_on_this_machine() {
    let desk = Desk::new(World::now().await).await;
    let _app = desk.up(None).await;
    let scan = desk.hand_in("scan.pdf", &fixture("scan.pdf")).await.expect("an answer");
    let call = desk.hand_in("call.wav", &fixture("speech/call.wav")).await.expect("an answer");
    // A text that comes after them is read before.
    let text = desk.hand_in("text.pdf", &pdf(&["Plain text."])).await.expect("an answer");
    assert_eq!(desk.read(&id_of(&text)).await["status"], "completed");
    let (scan, call) = (desk.read(&id_of(&scan)).await, desk.read(&id_of(&call)).await);
    assert_eq!((&scan["status"], &call["status"]), (&json!("completed"), &json!("completed")), "{scan} {call}");
    let words = |text: &str| text.to_lowercase().split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let (expected, found) = (fixture("scan.txt"), words(scan["text"].as_str().unwrap_or_default()));
    let expected = words(&String::from_utf8_lossy(&expected));
    let n_right = expected.iter().filter(|word| found.contains(word)).count();
    assert!(20 * n_right >= 19 * expected.len(), "{n_right} of {} words: {}", expected.len(), scan["text"]);
    let page = desk.ask(&format!("/api/v1/documents/{}/pages", scan["id"].as_str().expect("an id"))).await;
    assert_eq!(page["pages"][0]["read_by"], "ocr", "{page}");
    let read =
        scan["file"]["steps"].as_array().and_then(|steps| steps.iter().find(|step| step["step"] == "transcribe"));
    assert_eq!(read.map(|step| &step["tries"]), Some(&json!(1)), "both lanes were counted: {scan}");
    // The lines of a hit are marked on the scan.
    let hit = desk.found(&expected[..6].join(" ")).await.swap_remove(0);
    let place = format!(
        "/documents/{}?page=1&hit={}&words={}#mark",
        scan["id"].as_str().expect("an id"),
        hit["chunk_id"].as_str().expect("an id"),
        expected[1]
    );
    let shown = desk.look(&place, &desk.key).await.text().await.expect("a page");
    assert!(shown.contains("id=\"mark\"") && shown.contains("<rect "), "{place}: {shown}");
    let said = call["text"].as_str().unwrap_or_default().to_lowercase();
    assert!(said.contains("roof of the old warehouse") && said.contains("tuesday morning"), "{said}");
    assert_eq!((&call["file"]["kind"], &call["file"]["language"]), (&json!("audio"), &json!("en")), "{call}");
    assert_eq!(desk.found("whose roof is leaking").await[0]["document_id"], call["id"]);
}

/// S26: the sums decide, also against what a paper says of itself.
#[tokio::test(flavor = "multi_thread")]
async fn an_invoice_has_fields_that_are_found_and_corrected_and_exported() {
    let desk = Desk::new(World::now().await).await;
    let _app = desk.up(None).await;
    let invoice = "Invoice\n\nLarkfield Ltd\n\nInvoice number: INV-2041\nInvoice date: 3 March 2026\nDue date: 2 April 2026\n\n\
        Net amount: EUR 676.47\nVAT 19%: EUR 128.53\nTotal: EUR 805.00";
    let taken = desk.hand_in("larkfield.pdf", &pdf(&[invoice])).await.expect("an answer");
    let document = desk.read(&id_of(&taken)).await;
    let fields = document["file"]["fields"].as_array().cloned().unwrap_or_default();
    let field = |name: &str| {
        fields.iter().find(|field| field["name"] == name).cloned().unwrap_or_else(|| panic!("no {name}: {document}"))
    };
    assert_eq!(field("paper")["value"], "invoice");
    assert_eq!((&field("number")["value"], &field("number")["page"]), (&json!("INV-2041"), &json!(1)));
    assert_eq!((&field("total")["amount"], &field("total")["state"]), (&json!("805"), &json!("checked")), "{fields:?}");
    let url = format!("http://127.0.0.1:{}/api/v1/documents/{}/fields/due_on", desk.port, id_of(&taken));
    let said = client().put(&url).bearer_auth(desk.key.reveal()).json(&json!({ "value": "2026-05-09" })).send().await;
    assert_eq!(said.expect("an answer").status().as_u16(), 200);
    // Read again, what a person said stays.
    let again = client().post(format!("http://127.0.0.1:{}/api/v1/documents/{}/read-again", desk.port, id_of(&taken)));
    assert_eq!(
        again.bearer_auth(desk.key.reveal()).json(&json!({})).send().await.expect("an answer").status().as_u16(),
        202
    );
    let document = desk.read(&id_of(&taken)).await;
    let due = document["file"]["fields"]
        .as_array()
        .and_then(|fields| fields.iter().find(|field| field["name"] == "due_on"))
        .cloned();
    let due = due.unwrap_or_default();
    assert_eq!(
        (&due["value"], &due["state"], &due["date"]),
        (&json!("2026-05-09"), &json!("said"), &json!("2026-05-09"))
    );
    let is_told = wait_until(SOON, async || {
        desk.found("due date 2026-05-09").await.first().is_some_and(|hit| hit["document_id"] == document["id"])
    });
    assert!(is_told.await, "what a person said is not found");
    let listed = desk.ask("/api/v1/documents/fields?name=number").await;
    assert!(listed.to_string().contains("INV-2041"), "{listed}");
}

/// S6, S17: what a browser gets is a picture that was made here, and nobody else's.
#[tokio::test(flavor = "multi_thread")]
async fn a_page_is_shown_as_it_looks_and_the_place_of_a_field_is_marked() {
    let desk = Desk::new(World::now().await).await;
    let _app = desk.up(None).await;
    let invoice = "Invoice\n\nSold by: Larkfield Ltd\n\nInvoice number: INV-2041\nInvoice date: 3 March 2026\n\n\
        Net amount: EUR 676.47\nVAT 19%: EUR 128.53\nTotal: EUR 805.00";
    let bytes = pdf(&[invoice, "Terms: pay within 30 days."]);
    let id = id_of(&desk.hand_in("larkfield.pdf", &bytes).await.expect("an answer"));
    let notes = id_of(&desk.hand_in("notes.txt", b"Plain notes about larks.").await.expect("an answer"));
    let damaged = id_of(&desk.hand_in("cut.pdf", &bytes[..bytes.len() / 3]).await.expect("an answer"));
    for id in [&id, &notes, &damaged] {
        desk.read(id).await;
    }

    let page =
        desk.look(&format!("/documents/{id}?page=1&field=total.0"), &desk.key).await.text().await.expect("a page");
    assert!(
        page.contains(&format!(
            "src=\"/documents/{id}/pages/2/picture\" width=\"989\" height=\"1400\" loading=\"lazy\""
        )),
        "{page}"
    );
    assert!(page.contains("<mark id=\"mark\">") && page.contains("805.00</mark>"), "{page}");
    assert_eq!(page.matches("<rect ").count(), 1, "the line of the total is marked on the page: {page}");
    assert!(
        page.contains(&format!("/documents/{id}?page=1&#38;field=total.0#mark")),
        "no field leads to its place: {page}"
    );

    let reader = desk.world.caller(desk.world.tenant_id, &[Scope::Read]).await.1;
    let picture = format!("/documents/{id}/pages/1/picture");
    let mut seen = Vec::new();
    for key in [&desk.key, &reader] {
        let answer = desk.look(&picture, key).await;
        assert_eq!(answer.status().as_u16(), 200, "{picture}");
        let header = |name: &str| {
            answer.headers().get(name).and_then(|value| value.to_str().ok()).unwrap_or_default().to_owned()
        };
        assert_eq!(
            (header("content-type").as_str(), header("x-content-type-options").as_str()),
            ("image/jpeg", "nosniff")
        );
        assert_eq!(header("content-security-policy"), "default-src 'none'; sandbox");
        seen.push(answer.bytes().await.expect("bytes"));
    }
    assert!(seen[0].starts_with(b"\xff\xd8\xff") && seen[0] == seen[1]);
    let mut conn = desk.world.conn().await;
    let n_kept = "select count(*) from file_previews where picture is not null";
    assert_eq!(
        sqlx::query_scalar::<_, i64>(n_kept).fetch_one(&mut *conn).await.expect("a count"),
        1,
        "it was drawn twice"
    );

    let other = desk.world.other_tenant("somebody else").await;
    let stranger = desk.world.caller(other, &READ_WRITE).await.1;
    assert_eq!(desk.look(&picture, &stranger).await.status().as_u16(), 404, "S17: another tenant's page was shown");
    let nobody = client().get(format!("http://127.0.0.1:{}{picture}", desk.port)).send().await.expect("an answer");
    assert_eq!(nobody.status().as_u16(), 401);
    for missing in [
        format!("/documents/{id}/pages/0/picture"),
        format!("/documents/{id}/pages/3/picture"),
        format!("/documents/{id}/pages/-1/picture"),
        format!("/documents/{notes}/pages/1/picture"),
        format!("/documents/{damaged}/pages/1/picture"),
        format!("/documents/{}/pages/1/picture", desk.world.tenant_id.0),
    ] {
        assert_eq!(desk.look(&missing, &desk.key).await.status().as_u16(), 404, "{missing}");
    }
    let text = desk.look(&format!("/documents/{notes}"), &desk.key).await.text().await.expect("a page");
    assert!(text.contains("Plain notes about larks.") && !text.contains("<img"), "{text}");

    let found = async |name: &str, value: &str| desk.found_where(&[("q", "larkfield"), (name, value)]).await.len();
    assert_eq!((found("paper", "invoice").await, found("paper", "contract").await), (1, 0));
    assert_eq!((found("supplier", "larkfield").await, found("amount_min", "805.01").await), (1, 0));
    assert_eq!((found("amount_max", "805").await, found("paper_since", "2026-03-04").await), (1, 0));

    // What was drawn goes with its document.
    let url = format!("http://127.0.0.1:{}/api/v1/documents/{id}", desk.port);
    let deleted = client().delete(url).bearer_auth(desk.key.reveal()).send().await.expect("an answer");
    assert_eq!(deleted.status().as_u16(), 204);
    assert_eq!(sqlx::query_scalar::<_, i64>(n_kept).fetch_one(&mut *conn).await.expect("a count"), 0);
    assert_eq!(desk.look(&picture, &desk.key).await.status().as_u16(), 404);
}

/// Documents that share their bytes are asked for together: what was read of these is forgotten once.
#[tokio::test(flavor = "multi_thread")]
async fn reading_everything_again_counts_it_and_leaves_no_copy_out() {
    let desk = Desk::new(World::now().await).await;
    let sql = format!(
        "with s as (insert into connected_sources (id, tenant_id, provider, name) values (gen_random_uuid(), '{tenant}', 'drive', 'Papers') returning id, tenant_id),
             f as (insert into files (tenant_id, sha256, reader_version, reading_id, state, kind, n_pages)
                 select '{tenant}', lpad(to_hex(n), 64, '0'), 1, gen_random_uuid(), 'read', 'pdf', 2 from generate_series(1, 600) n),
             d as (insert into source_documents (id, tenant_id, source_id, external_id, document_type, text, blob_key, content_sha256, status)
                 select gen_random_uuid(), s.tenant_id, s.id, 'p' || n || '-' || copy, 'file', repeat('a', 4000), lpad(to_hex(n), 64, '0'), sha256('a'), 'completed'
                 from s, generate_series(1, 600) n, generate_series(1, case n when 7 then 3 else 1 end) copy returning tenant_id, id, external_id)
         insert into document_fields (tenant_id, document_id, name, value, state) select tenant_id, id, 'paper', 'invoice', 'read' from d where external_id < 'p2'",
        tenant = desk.world.tenant_id
    );
    let mut conn = desk.world.conn().await;
    sqlx::raw_sql(sqlx::AssertSqlSafe(sql)).execute(&mut *conn).await.expect("documents");
    let papers: i64 =
        sqlx::query_scalar("select count(*) from document_fields").fetch_one(&mut *conn).await.expect("a count");
    let ask = |args: &[&str]| {
        let mut asked = command(&desk.folder.0, desk.port);
        asked.env("DATABASE_URL", desk.world.database.admin.uri().reveal());
        asked.env("LLM", "anthropic").env("LLM_API_KEY", "canary-key").env("LLM_MODEL", "wise-1");
        asked.env("LLM_INPUT_PRICE_PER_MILLION", "10").env("LLM_OUTPUT_PRICE_PER_MILLION", "20");
        run(asked.args(args))
    };
    let redo = ["document", "redo", "--step", "extract", "--source", "Papers"];
    let (_, said, told) = ask(&redo);
    let words = format!(
        "602 files of 1,204 pages will be read again. wise-1 is asked for the fields of {papers} papers, which costs about $"
    );
    assert!(told.contains(&words) && told.contains("by their length and its price"), "{said}{told}");
    let paid = "insert into document_steps (tenant_id, document_id, step, state, done_by, cost_micros, ended_at)
        select tenant_id, document_id, 'extract', 'done', 'wise-1', 20000, now() from document_fields limit 5";
    sqlx::query(paid).execute(&mut *conn).await.expect("steps");
    let (_, said, told) = ask(&redo);
    let price = format!("about ${:.2}, as papers did so far", papers as f64 * 0.02);
    assert!(told.contains(&price) && !told.contains("canary"), "{price}: {said}{told}");

    let (output, said, told) = ask(&["document", "redo", "--step", "transcribe", "--yes"]);
    assert!(output.status.success() && said.contains("602 files will be read again"), "{said}{told}");
    let waiting: i64 =
        sqlx::query_scalar("select count(*) from pgmq.q_document_queue").fetch_one(&mut *conn).await.expect("a count");
    assert_eq!(waiting, 602);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_is_remembered_by_command_and_waited_for() {
    let desk = Desk::new(World::now().await).await;
    let _app = desk.up(None).await;
    let path = desk.folder.0.join("lease.pdf");
    std::fs::write(&path, pdf(&["The lease of bay 12 ends in June."])).expect("a file");
    let ask = |args: &[&str]| {
        run(command(&desk.folder.0, desk.port).env("DATABASE_URL", desk.world.database.admin.uri().reveal()).args(args))
    };
    let (output, said, told) = ask(&["remember", path.to_str().expect("a path"), "--wait"]);
    assert!(output.status.success(), "{said}{told}");
    assert!(said.starts_with("remembered") && told.contains("read, 1 page"), "{said}{told}");
    let (_, said, _) = ask(&["search", "when does the lease of bay 12 end"]);
    assert!(said.starts_with("1. lease.pdf"), "{said}");
    let (_, said, _) = ask(&["document", "list", "--status", "completed"]);
    assert!(said.contains("lease.pdf"), "{said}");
    let (output, said, told) = ask(&["document", "redo", "--step", "transcribe", "--yes"]);
    assert!(output.status.success() && told.contains("1 file of 1 page will be read again"), "{said}{told}");
}

/// S11.
#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_came_by_webhook_is_found_with_its_page_and_goes_with_its_event() {
    let desk = Desk::new(World::now().await).await;
    let (_, door) = add_channel(&desk.world, desk.world.tenant_id, None).await;
    let _app = desk.up(None).await;
    let policy =
        pdf(&["The cover of a policy.", "The crane in yard four is insured by Petrel Mutual until the end of May."]);
    let files: [(&str, &[u8]); 3] =
        [("../policy.pdf", &policy), ("copy.pdf", &policy), ("invoice.pdf", b"MZ\x90\0\x03\0\0\0\x04\0\0\0\xff\xff")];
    let event = desk.hear(&door, "The policy is attached.", &files).await.expect("an event");
    let mut hits = Vec::new();
    let is_found = wait_until(SOON, async || {
        hits = desk.found("who insures the crane in yard four").await;
        hits.first().is_some_and(|hit| hit["page"] == 2)
    });
    assert!(is_found.await, "I5: {hits:?}");
    let id = hits[0]["document_id"].as_str().expect("an id");
    let document = desk.read(id).await;
    assert_eq!((&document["document_type"], &document["file"]["kind"]), (&json!("file"), &json!("pdf")), "{document}");
    assert_eq!(document["metadata"]["activity_id"], json!(event), "{document}");

    // Both ways, and the one that cannot be read says so.
    let is_over = wait_until(SOON, async || desk.page(&format!("/activities/{event}")).await.contains("left unread"));
    assert!(is_over.await, "{}", desk.page(&format!("/activities/{event}")).await);
    let page = desk.page(&format!("/activities/{event}")).await;
    assert!(page.contains(&format!("/documents/{id}")), "{page}");
    let page = desk.page(&format!("/documents/{id}")).await;
    assert!(page.contains("Came with") && page.contains(&format!("/activities/{event}")), "{page}");
    let of_event = desk.ask("/api/v1/documents?type=activity.other").await;
    let parent =
        of_event["documents"][0]["id"].as_str().unwrap_or_else(|| panic!("no document: {of_event}")).to_owned();
    let page = desk.page(&format!("/documents/{parent}")).await;
    assert!(page.contains("Its files") && page.contains(&format!("/documents/{id}")), "{page}");

    let mut conn = desk.world.conn().await;
    let counts = "select (select count(*) from files), (select count(*) from file_pages), (select count(*) from source_documents where deleted_at is null)";
    let counted: (i64, i64, i64) = sqlx::query_as(counts).fetch_one(&mut *conn).await.expect("counts");
    assert_eq!(counted, (2, 2, 4), "the same bytes are read once");
    let url = format!("http://127.0.0.1:{}/api/v1/documents/{parent}", desk.port);
    let gone = client().delete(url).bearer_auth(desk.key.reveal()).send().await.expect("an answer");
    assert_eq!(gone.status().as_u16(), 204);
    let counted: (i64, i64, i64) = sqlx::query_as(counts).fetch_one(&mut *conn).await.expect("counts");
    assert_eq!(counted, (0, 0, 0), "something of the event's files is left");
    assert!(desk.found("who insures the crane in yard four").await.is_empty());
}

/// F1, I1, I2: each event that was acknowledged has its document and its file's, once.
#[tokio::test(flavor = "multi_thread")]
async fn killed_while_an_event_with_a_file_is_remembered_nothing_is_lost_or_doubled() {
    let cluster = Cluster::private().await;
    let points = [Point::RememberPrepared, Point::RememberWritten, Point::ActivityFilesWritten, Point::FileFinished];
    let killed = stream::iter(points).map(|point| kill_at_event(&cluster, point));
    killed.buffer_unordered(2).collect::<Vec<()>>().await;
}

async fn kill_at_event(cluster: &Cluster, point: Point) {
    let database = cluster.database(&format!("events_{}", point.name().replace('.', "_"))).await;
    let desk = Desk::new(World::with(database, Clock::System).await).await;
    let (_, door) = add_channel(&desk.world, desk.world.tenant_id, None).await;
    let mut hurt = desk.up(Some(&format!("{}:abort:2", point.name()))).await;
    let mut ledger = Vec::new();
    for nth in 0..4 {
        let file = pdf(&[&format!("File number {nth} is about the colour teal.")]);
        ledger.extend(desk.hear(&door, &format!("Event {nth}."), &[("a.pdf", &file)]).await);
    }
    assert!(hurt.ended_within(SOON).await.is_some(), "crash point {} was never reached", point.name());
    assert!(!ledger.is_empty(), "nothing was acknowledged");
    let mut conn = desk.world.conn().await;
    sqlx::raw_sql("update pgmq.q_document_queue set vt = now(); update pgmq.q_remember_activity set vt = now()")
        .execute(&mut *conn)
        .await
        .expect("the leases have passed");
    let _up = desk.up(None).await;
    let sql = "select (select count(*) from activities), (select count(*) from source_documents where document_type = 'activity.other'),
         (select count(*) from source_documents where document_type = 'file' and status = 'completed'),
         (select count(*) from source_documents), (select count(*) from file_pages)";
    let mut counted = (0, 0, 0, 0, 0);
    let is_whole = wait_until(SOON, async || {
        counted = sqlx::query_as(sql).fetch_one(&mut *conn).await.expect("counts");
        let (events, ..) = counted;
        events >= ledger.len() as i64 && counted == (events, events, events, 2 * events, events)
    });
    assert!(is_whole.await, "I1, I2 after {}: {counted:?} of {} acknowledged", point.name(), ledger.len());
    println!("{}: {} events with a file, 0 lost, 0 doubled", point.name(), ledger.len());
}
