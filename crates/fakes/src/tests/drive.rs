use serde_json::{Value, json};

use super::{Browser, texts};
use crate::{DRIVE, Fakes, Manner, RetryAfter};

const FILES: &str = "/drive/v3/files";

async fn start() -> Browser {
    Browser::of(DRIVE, Fakes::with_fixtures().await).await
}

impl Browser {
    async fn drive(&self, path: &str, query: &[(&str, &str)]) -> (u16, Value) {
        super::json(self.get_with(&format!("/drive/v3/{path}"), query).send().await.expect("an answer")).await
    }

    async fn export(&self, id: &str, kind: &str) -> (u16, String) {
        let request = self.get_with(&format!("{FILES}/{id}/export"), &[("mimeType", kind)]);
        let response = request.send().await.expect("an answer");
        (response.status().as_u16(), response.text().await.expect("text"))
    }
}

fn rows<'a>(body: &'a Value, key: &str) -> &'a [Value] {
    body[key].as_array().map(Vec::as_slice).unwrap_or_default()
}

#[tokio::test]
async fn listings_follow_their_filter_to_the_end() {
    let browser = start().await;
    let q = "(mimeType = 'application/vnd.google-apps.document' or mimeType = 'application/vnd.google-apps.spreadsheet') \
             and trashed = false and '1Fq0kZr8TnHarrowRidgeShared7bLw2Xy' in parents";
    let (mut names, mut token, mut n_pages) = (Vec::new(), None, 0);
    loop {
        let mut query = vec![("q", q), ("pageSize", "4"), ("orderBy", "modifiedTime desc")];
        query.push(("fields", "nextPageToken,files(id,name,modifiedTime)"));
        let known: Option<String> = token.take();
        query.extend(known.as_deref().map(|token| ("pageToken", token)));
        if n_pages == 1 {
            browser.fakes.next(FILES, Manner::EmptyPage);
        }
        let (status, body) = browser.drive("files", &query).await;
        assert_eq!(status, 200, "{body}");
        assert!(body.get("kind").is_none());
        names.extend(texts(rows(&body, "files"), "/name"));
        n_pages += 1;
        match body["nextPageToken"].as_str() {
            Some(next) => token = Some(next.to_owned()),
            None => break,
        }
    }
    assert_eq!((names.len(), n_pages), (6, 3));
    assert_eq!(names[0], "Rental fleet utilisation 2026");
    let (_, body) = browser.drive("files", &[]).await;
    assert_eq!(rows(&body, "files").len(), 8);
    assert_eq!(rows(&body, "files")[0].as_object().map(serde_json::Map::len), Some(4));
    let (status, body) = browser.drive("files", &[("pageToken", "~!!~nonsense")]).await;
    assert_eq!((status, &body["error"]["errors"][0]["reason"]), (400, &json!("invalid")));
    assert_eq!(browser.drive("files", &[("q", "name ~ 'x'")]).await.0, 400);
}

#[tokio::test]
async fn changes_collapse_and_end_with_a_new_start() {
    let browser = start().await;
    let drive = browser.fakes.drive();
    let (_, body) = browser.drive("changes/startPageToken", &[]).await;
    let start = body["startPageToken"].as_str().expect("a token").to_owned();
    let doc = drive.put_doc("Minutes", "one");
    let gone = drive.put_doc("Gone", "soon");
    drive.set_text(&doc, "two");
    drive.rename(&doc, "Minutes of the meeting");
    drive.remove(&gone);
    drive.trash("1bK3tDeliveryAndPickupChecklistZr51HcYw8uNf", true);
    let (_, first) = browser.drive("changes", &[("pageToken", &start), ("pageSize", "2")]).await;
    let changes = rows(&first, "changes");
    assert_eq!(texts(changes, "/fileId"), [doc.clone(), gone.clone()]);
    assert_eq!((&changes[0]["removed"], &changes[1]["removed"]), (&json!(false), &json!(true)));
    assert_eq!(changes[0]["file"]["name"], "Minutes of the meeting");
    assert!(changes[1].get("file").is_none() && first.get("newStartPageToken").is_none());
    let next = first["nextPageToken"].as_str().expect("a token");
    let fields = "newStartPageToken,nextPageToken,changes(fileId,removed,file(id,trashed))";
    let (_, last) = browser.drive("changes", &[("pageToken", next), ("fields", fields)]).await;
    assert_eq!(rows(&last, "changes")[0]["file"]["trashed"], true);
    let start = last["newStartPageToken"].as_str().expect("a token");
    let (_, none) = browser.drive("changes", &[("pageToken", start)]).await;
    assert_eq!((rows(&none, "changes").len(), &none["newStartPageToken"]), (0, &json!(start)));
    let (status, body) = browser.drive("changes", &[("pageToken", "99999")]).await;
    assert_eq!((status, &body["error"]["errors"][0]["location"]), (400, &json!("pageToken")));
    assert_eq!(drive.count(), 9);
}

#[tokio::test]
async fn files_export_as_what_they_are() {
    let browser = start().await;
    let agreement = "1aD7mStonebrookServiceAgreement27QxV0pRkW9eL";
    let (status, text) = browser.export(agreement, "text/markdown").await;
    assert_eq!((status, text.lines().next()), (200, Some("# Stonebrook fleet service agreement 2027 (draft)")));
    assert_eq!(browser.export(agreement, "text/csv").await.0, 400);
    let (_, csv) = browser.export("1eS6xRentalFleetUtilisation2026FyPb38MiUa1cZ", "text/csv").await;
    assert!(csv.starts_with("Machine,"));
    let plain = browser.fakes.drive().put_file(json!({"name": "a.txt", "mimeType": "text/plain"}), "plain");
    assert_eq!(browser.export(&plain, "text/plain").await.0, 403);
    let response = browser.get(&format!("{FILES}/{plain}?alt=media")).send().await.expect("an answer");
    assert_eq!(response.text().await.expect("text"), "plain");
    let big = browser.fakes.drive().put_doc("Big", &"x".repeat(10 * 1024 * 1024 + 1));
    assert!(browser.export(&big, "text/plain").await.1.contains("exportSizeLimitExceeded"));
    let (_, file) = browser.drive(&format!("files/{plain}"), &[("fields", "name,version")]).await;
    assert_eq!(file, json!({"name": "a.txt", "version": "1"}));
    assert_eq!(browser.drive("files/none", &[]).await.0, 404);
}

#[tokio::test]
async fn limits_and_refusals_are_googles() {
    let browser = start().await;
    let reason = |body: &Value| body["error"]["errors"][0]["reason"].as_str().unwrap_or_default().to_owned();
    browser.fakes.next(FILES, Manner::RateLimitedAs403);
    browser.fakes.next(FILES, Manner::RateLimited { retry_after: RetryAfter::Seconds(1) });
    browser.fakes.next(FILES, Manner::Status(503));
    let mut seen = Vec::new();
    for _ in 0..3 {
        let (status, body) = browser.drive("files", &[]).await;
        seen.push((status, reason(&body)));
    }
    let expected = [(403, "userRateLimitExceeded"), (429, "rateLimitExceeded"), (503, "backendError")];
    assert_eq!(seen, expected.map(|(status, reason)| (status, reason.to_owned())));
    let (_, body) = browser.drive("about", &[("fields", "user")]).await;
    assert_eq!(body["user"]["emailAddress"], "office@harrowridge.example");
    assert_eq!(body["user"]["permissionId"], browser.fakes.account_id(DRIVE));
    assert_eq!(browser.drive("about", &[]).await.0, 400);
    browser.fakes.expire_access(DRIVE);
    let (status, body) = browser.drive("files", &[]).await;
    assert_eq!((status, reason(&body).as_str()), (401, "authError"));
}

#[tokio::test]
async fn page_tokens_are_repeated_and_lost() {
    let browser = start().await;
    browser.fakes.always("/drive", Some(Manner::RepeatToken));
    let token = browser.drive("files", &[("pageSize", "100")]).await.1["nextPageToken"].clone();
    let token = token.as_str().expect("a token");
    let (_, body) = browser.drive("files", &[("pageToken", token)]).await;
    assert_eq!((body["nextPageToken"].as_str(), rows(&body, "files").len()), (Some(token), 8));
    let (_, body) = browser.drive("changes", &[("pageToken", "3")]).await;
    assert_eq!(body["nextPageToken"], "3");
    browser.fakes.always("/drive", Some(Manner::LostToken));
    assert_eq!(browser.drive("changes", &[("pageToken", "3")]).await.0, 400);
    assert_eq!(browser.drive("files", &[]).await.0, 200);
}
