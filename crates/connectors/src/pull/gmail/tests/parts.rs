//! Pages that are read in parts, because they are too much for one time or their provider asks to wait.

use super::*;

/// F17.
#[tokio::test]
async fn what_changes_while_a_page_is_read_in_parts_is_read_again() {
    let (n_histories, n_late) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let server = Server::start(move |asked| {
        if is_message(asked) {
            return messages(asked, |id| match id {
                "late" if n_late.fetch_add(1, Ordering::SeqCst) == 0 => (429, refused("rateLimitExceeded")),
                id => (200, message(id, &["INBOX"])),
            });
        }
        let added = |n: usize| changed(&(101 + n).to_string(), "messagesAdded", &format!("m{n}"), &["INBOX"]);
        let mut history: Vec<Value> = (0..10).map(added).collect();
        history.push(changed("111", "messagesAdded", "late", &["INBOX"]));
        if n_histories.fetch_add(1, Ordering::SeqCst) > 0 {
            history.push(changed("112", "labelsRemoved", "m3", &["INBOX"]));
        }
        ok(json!({ "historyId": "112", "history": history }))
    })
    .await;
    let pages = since(&*server.connector(&SPEC), &Person::new(), &json!({ "history_id": "100" })).await.expect("pages");
    let mut expected: Vec<String> = (0..10).map(|n| format!("message:m{n}")).collect();
    expected.extend(["message:m3", "message:late"].map(str::to_owned));
    assert_eq!(all_ids(&pages), expected);
    assert_eq!(pages.last().map(|page| &page.next), Some(&json!({ "history_id": "112" })));
}
