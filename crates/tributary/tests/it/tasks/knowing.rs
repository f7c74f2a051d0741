//! Memory and clients: finding, asking, adding, correcting, and taking it back.

use serde_json::{Value, json};
use testkit::sources::{HUBSPOT, QUICKBOOKS};
use testkit::wait_until;

use super::walk::SOON;
use super::{Day, KNOWING, one};
use crate::app::Folder;

const OFFER: &str = "select count(*) from source_documents where concat(title, text) like '%Send Bo the offer%'";

impl Day {
    /// Two accounts that are read, and some people.
    async fn filled(&self) {
        for provider in [HUBSPOT, QUICKBOOKS] {
            self.house.t.connect(provider).await;
        }
        for (first, last, email) in [
            ("Ana", "Reis", "ana@home.example"),
            ("A.", "Reis", "a.reis@work.example"),
            ("Bo", "Quist", "bo@home.example"),
        ] {
            let person = json!({ "first_name": first, "last_name": last, "email": email });
            self.ask("POST", "/contacts", person).await;
        }
        self.counts(2, "select count(*) from sync_jobs where status = 'completed'").await;
        self.counts(8, "select count(distinct client_id) from client_intelligence where client_id = id").await;
        self.counts(0, "select count(*) from pgmq.q_client_facts").await;
    }

    async fn lease(&self) -> Value {
        let lease = json!({ "title": "Lisbon lease", "text": "The lease of the Lisbon office ends in June.", "external_id": "lease" });
        self.ask("POST", "/documents", lease).await
    }

    async fn finds(&self, words: &str, title: &str) -> bool {
        let found = self.get(&format!("/search?q={}", words.replace(' ', "+"))).await;
        found["hits"].as_array().into_iter().flatten().any(|hit| hit["title"] == title)
    }

    async fn client(&self, name: &str) -> Value {
        let clients = self.get("/clients").await;
        let id = one(&clients["clients"], "name", name)["id"].as_str().expect("an id").to_owned();
        self.get(&format!("/clients/{id}")).await
    }

    async fn n_clients(&self) -> i64 {
        self.get("/clients").await["n"].as_i64().expect("a number")
    }

    /// Waits until there are so many clients.
    async fn has_clients(&self, n: i64) {
        let is_so = wait_until(SOON, async || self.n_clients().await == n).await;
        assert!(is_so, "there are {} clients and not {n}", self.n_clients().await);
    }

    async fn person(&self, email: &str) -> Value {
        let contacts = self.get("/contacts").await;
        one(&contacts["contacts"], "email", email).clone()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_known_is_found_added_to_and_corrected() {
    let mut day = Day::new(KNOWING).await;
    day.filled().await;

    day.task("Narrow a search to a type and save it", async |day, walk| {
        walk.press("Search").await;
        walk.fill("What to look for", "stonebrook").await;
        walk.sees("Has “").await;
        walk.press("HubSpot deal").await;
        walk.press("Save this search").await;
        walk.press("Save").await;
        walk.sees("The search is saved").await;
        let saved = day.get("/searches").await["searches"][0].clone();
        assert_eq!((&saved["q"], &saved["filters"]["type"]), (&json!("stonebrook"), &json!("hubspot.deal")), "{saved}");
    })
    .await;

    day.task("Ask who owes us money", async |day, walk| {
        walk.press("Search").await;
        walk.press("Ask").await;
        walk.fill("Your question", "Who owes us money?").await;
        walk.enter().await;
        walk.sees("Stonebrook Excavating").await;
        walk.sees("8,280").await;
        let facts = day.client("Stonebrook Excavating").await["facts"].clone();
        assert!(facts.to_string().contains("8,280 USD"), "{facts}");
    })
    .await;

    let files = Folder::new();
    std::fs::create_dir_all(&files.0).expect("a folder");
    std::fs::write(files.0.join("till.md"), "# The till\nIt opens at nine, and Rui has the key.").expect("a file");
    day.task("Upload a file", async |day, walk| {
        walk.press("Add").await;
        walk.press("File").await;
        walk.choose_file("Files", &files.0.join("till.md")).await;
        walk.press_in("Add files", "Add").await;
        walk.sees("Search finds it now").await;
        assert!(day.finds("who has the key of the till", "till.md").await);
    })
    .await;

    day.task("Write a note about a client", async |day, walk| {
        walk.press("Clients").await;
        walk.press("Larkfield Landscaping").await;
        walk.press("Add a note").await;
        walk.fill("Title", "Call with Larkfield").await;
        walk.fill("Text", "They want the copper window by May.").await;
        walk.press("Add note").await;
        walk.sees("Added. Search finds it").await;
        let id = day.client("Larkfield Landscaping").await["id"].as_str().expect("an id").to_owned();
        let is_there =
            async || day.get(&format!("/clients/{id}/documents")).await.to_string().contains("Call with Larkfield");
        assert!(wait_until(SOON, is_there).await, "the note is not among the client's documents");
    })
    .await;

    day.task("Add a task about a person", async |day, walk| {
        walk.press("Add").await;
        walk.press("Task").await;
        walk.fill("Title", "Send Bo the offer").await;
        walk.fill("About this person", "Bo Quist").await;
        walk.press("Add task").await;
        walk.sees("Added. Search finds it").await;
        let task = "select count(*) from activities a join contacts c on c.id = a.contact_id
                    where a.type = 'task' and c.email = 'bo@home.example'";
        day.counts(1, task).await;
        day.counts(1, OFFER).await;
    })
    .await;

    day.lease().await;
    day.task("Delete a document", async |day, walk| {
        walk.press("Search").await;
        walk.fill("What to look for", "lisbon lease").await;
        walk.sees("Has “").await;
        walk.press("Lisbon lease").await;
        walk.press("Delete this document").await;
        walk.press("Delete it").await;
        walk.sees("it stays deleted").await;
        assert!(!day.finds("lisbon lease", "Lisbon lease").await);
        assert_eq!(day.lease().await["change"], "kept_out", "it came back when it was sent again");
    })
    .await;

    day.task("Let a deleted document in again", async |day, walk| {
        walk.press("Documents").await;
        walk.press("Deleted").await;
        walk.press("Let it in again").await;
        walk.sees("It may come in again").await;
        day.lease().await;
        assert!(day.finds("lisbon lease", "Lisbon lease").await);
    })
    .await;

    let copperline = "Copperline Plumbing & Heating";
    let industry = day.client(copperline).await["industry"].clone();
    day.task("Correct a client's industry", async |day, walk| {
        walk.press("Clients").await;
        walk.press(copperline).await;
        walk.fill("Fact", "Industry").await;
        walk.fill("Text", "Plumbing").await;
        walk.press("Save").await;
        walk.sees("no record overwrites it").await;
        assert_eq!(day.client(copperline).await["industry"], "Plumbing");
    })
    .await;

    day.task("Withdraw a correction", async |day, walk| {
        walk.press("Clients").await;
        walk.press(copperline).await;
        walk.press("Withdraw it").await;
        walk.sees("What records say stays").await;
        assert_eq!(day.client(copperline).await["industry"], industry);
    })
    .await;

    let n = day.n_clients().await;
    day.task("Merge two clients and undo it", async |day, walk| {
        walk.press("Clients").await;
        walk.press("Tamarack Builders").await;
        walk.fill("The other client's name or id", "Odell Trask").await;
        walk.press("Merge").await;
        walk.sees("They are one client now").await;
        day.has_clients(n - 1).await;
        walk.press("Undo").await;
        walk.sees("Everything is as it was before").await;
        day.has_clients(n).await;
    })
    .await;

    day.task("Split a record off a client", async |day, walk| {
        walk.press("Clients").await;
        walk.press("Stonebrook Excavating").await;
        walk.press_in("QuickBooks customer", "Not this client").await;
        walk.sees("a client of its own now").await;
        day.has_clients(n + 1).await;
    })
    .await;

    day.task("Correct a person's name", async |day, walk| {
        walk.press("Clients").await;
        walk.press("People").await;
        walk.press("Ana Reis").await;
        walk.press("Edit").await;
        walk.fill("Last name", "Lima").await;
        walk.press("Save").await;
        walk.sees("Ana Lima").await;
        assert_eq!(day.person("ana@home.example").await["last_name"], "Lima");
    })
    .await;

    day.task("Merge two people and undo it", async |day, walk| {
        walk.press("Clients").await;
        walk.press("People").await;
        walk.press("Ana Lima").await;
        walk.press("Merge with another person").await;
        walk.fill("The other person", "a.reis@work.example").await;
        walk.press("Merge").await;
        walk.sees("They are one person now").await;
        day.counts(2, "select count(*) from contacts").await;
        walk.press("Undo").await;
        walk.sees("This is the person who had been merged").await;
        day.counts(3, "select count(*) from contacts").await;
    })
    .await;

    day.task("Forget a person", async |day, walk| {
        walk.press("Clients").await;
        walk.press("People").await;
        walk.press("Bo Quist").await;
        walk.press("Forget this person").await;
        walk.press("Forget all of it").await;
        day.counts(0, "select count(*) from contacts where email = 'bo@home.example'").await;
        day.counts(0, "select count(*) from activities where type = 'task'").await;
        day.counts(0, OFFER).await;
    })
    .await;
    day.end().await;
}
