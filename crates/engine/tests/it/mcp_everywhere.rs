//! Every provider is read through its MCP server as it is read by its own API.

use connectors::pull::ALL;
use domain::{SourceId, Transport};
use testkit::Sources;

#[tokio::test(flavor = "multi_thread")]
async fn every_provider_is_read_through_its_mcp_server() {
    let (over_rest, over_mcp) = (Sources::new().await, Sources::new().await);
    // A mailbox's MCP server tells letters without their labels, files and hours.
    for provider in ALL.iter().copied().filter(|provider| provider.mailbox.is_none()) {
        let rest = over_rest.connect(provider).await;
        let mcp = over_mcp.connect_over(provider, Transport::Mcp, None).await.expect("a source");
        for (t, id) in [(&over_rest, rest), (&over_mcp, mcp)] {
            t.run().await;
            assert_eq!(t.jobs(id).await[0].status.as_str(), "completed", "{:?}", t.jobs(id).await[0]);
        }
        let read = texts(&over_rest, rest).await;
        assert!(!read.is_empty());
        assert_eq!(texts(&over_mcp, mcp).await, read, "{provider} differs over MCP");
        let calls = format!("/mcp/{provider}/tools/call");
        assert!(over_mcp.fakes.requests(&calls) > 0, "{provider} was not read through MCP");

        // MCP tells of no changes: a second sync reads everything again and finds the same.
        let before = over_mcp.fakes.requests(&calls);
        over_mcp.sync(mcp).await;
        over_mcp.run().await;
        assert_eq!(texts(&over_mcp, mcp).await, read);
        assert!(over_mcp.fakes.requests(&calls) > before, "{provider} was not read again");
    }
}

async fn texts(t: &Sources, id: SourceId) -> Vec<(String, String, Option<String>, String)> {
    let sql = "select external_id, document_type, title, text from source_documents
               where source_id = $1 and deleted_at is null and document_type <> 'client' order by external_id";
    sqlx::query_as(sql).bind(id.0).fetch_all(&mut *t.world.conn().await).await.expect("documents")
}
