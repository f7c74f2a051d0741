//! A mailbox through Google's MCP server.

use super::super::super::listing::Listing;
use super::super::super::mcp::tests::says;
use super::*;

/// Two conversations on two pages, and one that vanishes while it is read.
fn threads(asked: &Asked) -> Reply {
    let head = |id: &str| json!({ "id": id, "messages": [{ "id": id, "snippet": "..." }] });
    let said = |id: &str| {
        json!({ "id": id, "subject": format!("Letter {id}"), "sender": "Ana <ana@acme.example>", "date": "2026-11-01",
            "plaintextBody": format!("Words of {id}.") })
    };
    let (tool, [id, page]) = asked.tool(["threadId", "pageToken"]);
    match (tool.as_str(), id.as_str(), page.as_str()) {
        ("search_threads", "", "") => {
            asked.text(json!({ "threads": [head("a"), head("gone")], "nextPageToken": "~2" }))
        }
        ("search_threads", "", "~2") => asked.text(json!({ "threads": [head("c")] })),
        ("get_thread", "gone", "") => asked.tool_error("Gmail API Error: 404"),
        ("get_thread", "a", "") => asked.text(json!({ "id": "a", "messages": [said("a"), said("b")] })),
        ("get_thread", id, "") => asked.text(json!({ "id": id, "messages": [said(id)] })),
        other => panic!("nobody may call {other:?}"),
    }
}

#[tokio::test]
async fn a_mailbox_is_read_by_the_tools_of_googles_server() {
    let (server, _) = says(threads).await;
    let mailbox: Listing<_> = server.mcp_of(&SPEC);
    assert_eq!(mailbox.document_types(), ["gmail.message"], "the files of letters are no records of their own");
    let pages = all(&mailbox, &Person::new(), false).await.expect("a pass");
    assert_eq!(all_ids(&pages), ["message:a", "message:b", "message:c"]);
    let letter = pages[0].items[1].letter.as_ref().expect("a letter");
    assert_eq!((letter.thread_id.as_deref(), letter.text.as_str()), (Some("a"), "Words of b."));
    let asked = ["message:c", "message:gone"].map(str::to_owned);
    let (items, failed) = mailbox.find(&Person::new().account(), &asked).await.expect("an answer");
    assert_eq!((ids(&items), failed), (vec!["message:c"], vec![]));
}
