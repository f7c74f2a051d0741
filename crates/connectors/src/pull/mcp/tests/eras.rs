//! The era of a server is found out, remembered, and found out again when it changes.

use super::*;

#[tokio::test]
async fn a_pass_over_a_legacy_server_goes_by_its_session() {
    let server = Server::start(|asked| legacy(asked).unwrap_or_else(|| crm(asked))).await;
    let mcp = server.mcp();
    let pages = all(&mcp, &Person::new(), true).await.expect("a pass");
    assert_eq!(all_ids(&pages), ["contact:51", "contact:52", "company:51"]);
    assert_eq!(mcp.lister.server.era(), Some(Era::Legacy));
    let begun = ["server/discover", "initialize", "notifications/initialized", "tools/list", "tools/call"];
    assert_eq!(server.methods()[..5], begun);
    for asked in server.asked().iter().filter(|asked| asked.method() == "tools/call") {
        assert!(asked.says("authorization: bearer canary-token-7f3a"), "{}", asked.head);
        assert!(asked.says("mcp-protocol-version: 2025-06-18"), "{}", asked.head);
    }
}

#[tokio::test]
async fn a_servers_era_is_found_out_once() {
    for (behaviour, era) in [(modern as fn(&Asked) -> Option<Reply>, Era::Modern), (legacy, Era::Legacy)] {
        let server = Server::start(move |asked| behaviour(asked).unwrap_or_else(|| crm(asked))).await;
        let mcp = server.mcp();
        for token in ["one", "two", "two"] {
            first_page(&mcp, token).await.expect("a page");
        }
        assert_eq!(mcp.lister.server.era(), Some(era));
        assert_eq!(server.count("tools/list"), 2, "another token is another connection");
        let (discovers, initializes) = if era == Era::Modern { (2, 0) } else { (1, 2) };
        assert_eq!((server.count("server/discover"), server.count("initialize")), (discovers, initializes));
    }
}

#[tokio::test]
async fn a_server_that_is_silent_to_a_modern_question_is_a_legacy_one() {
    let server = Server::start(|asked| match asked.method().as_str() {
        "server/discover" => Reply { bytes: Vec::new(), is_silent: true },
        _ => legacy(asked).unwrap_or_else(|| crm(asked)),
    })
    .await;
    let mcp = server.mcp();
    for token in ["one", "two"] {
        first_page(&mcp, token).await.expect("a page");
    }
    assert_eq!((mcp.lister.server.era(), server.count("server/discover")), (Some(Era::Legacy), 1));
}

#[tokio::test]
async fn a_modern_server_that_is_silent_once_is_not_given_up() {
    let server = Server::start(|asked| match asked.method().as_str() {
        "server/discover" => Reply { bytes: Vec::new(), is_silent: true },
        _ => modern(asked).unwrap_or_else(|| crm(asked)),
    })
    .await;
    let mcp = server.mcp();
    let refused = first_page(&mcp, "one").await.expect_err("no page");
    assert!(matches!(&refused, PullError::Passing(words) if words.ends_with("did not answer in time")), "{refused:?}");
    assert_eq!(mcp.lister.server.era(), None);
}

#[tokio::test]
async fn a_server_that_became_a_modern_one_is_asked_anew() {
    let (server, mcp) = says(crm).await;
    *mcp.lister.server.era.lock().expect("an era") = Some(Era::Legacy);
    first_page(&mcp, "one").await.expect("a page");
    assert_eq!(mcp.lister.server.era(), Some(Era::Modern));
    assert_eq!(server.methods(), ["initialize", "server/discover", "tools/list", "tools/call"]);
}

/// rmcp's own server answers so when it is told to speak older versions alone.
#[tokio::test]
async fn a_server_that_says_which_older_versions_it_knows_is_spoken_to_in_one() {
    let server = Server::start(|asked| match asked.method().as_str() {
        "server/discover" => {
            let data = json!({ "supported": ["2025-06-18", "2025-11-25"], "requested": "2026-07-28" });
            let error = json!({ "code": -32022, "message": "Unsupported protocol version", "data": data });
            let answer = json!({ "jsonrpc": "2.0", "id": asked.call()["id"], "error": error });
            raw_reply("400 Bad Request", "Content-Type: application/json\r\n", answer.to_string().as_bytes())
        }
        _ => legacy(asked).unwrap_or_else(|| crm(asked)),
    })
    .await;
    let mcp = server.mcp();
    let page = first_page(&mcp, "one").await.expect("a page");
    assert_eq!((ids(&page.items), mcp.lister.server.era()), (vec!["contact:51"], Some(Era::Legacy)));
}

#[tokio::test]
async fn a_server_that_became_an_older_one_is_found_out_at_the_next_try() {
    let server = Server::start(|asked| match asked.method().as_str() {
        "server/discover" => asked.error("400 Bad Request", -32000),
        _ => legacy(asked).unwrap_or_else(|| crm(asked)),
    })
    .await;
    let mcp = server.mcp();
    *mcp.lister.server.era.lock().expect("an era") = Some(Era::Modern);
    let refused = first_page(&mcp, "one").await.expect_err("no page");
    assert_eq!(short(&refused), "passing: HubSpot's MCP server failed (-32000)");
    first_page(&mcp, "one").await.expect("a page");
    assert_eq!(mcp.lister.server.era(), Some(Era::Legacy));
}
