//! The same with Gmail and Outlook: their fakes' own lists are what the line agrees with.

use chrono::{NaiveDate, TimeDelta, Utc};
use connectors::pull::Provider;
use domain::mail::check::CheckState;
use domain::{Caller, Clock, SourceId};
use engine::mail::check;
use store::mail::checks::Check;
use testkit::Sources;
use testkit::sources::{GMAIL, OUTLOOK};

struct Watched {
    t: Sources,
    caller: Caller,
    id: SourceId,
    days: [NaiveDate; 2],
}

impl Watched {
    async fn new(provider: Provider, fill: impl FnOnce(&Sources)) -> Self {
        let (database, fakes) = (testkit::cluster::cloned(), fakes::Fakes::start().await);
        // An hour later than its provider's: no letter has just come in. Its limits are for longer days.
        let clock = Clock::fixed(Utc::now() + TimeDelta::hours(1));
        let t = Sources::with(database, clock, fakes, &["--pull-rate-factor", "1000"]).await;
        fill(&t);
        let caller = t.world.operator().await;
        let id = t.connect(provider).await;
        let today = t.world.env.clock.now().date_naive();
        let watched = Self { t, caller, id, days: [today - TimeDelta::days(1), today] };
        watched.settle().await;
        watched
    }

    async fn settle(&self) {
        for _ in 0..20 {
            self.t.run().await;
            if self.t.count("select count(*) from mailbox_checks where asked_at is not null").await == 0 {
                return;
            }
            self.t.world.env.clock.advance(TimeDelta::seconds(6));
        }
        panic!("the days are never settled");
    }

    /// Both days, counted.
    async fn counted(&self) -> Vec<Check> {
        check::ask(&self.t.world.env, &self.caller, self.id, &self.days).await.expect("asked");
        self.settle().await;
        let mut days = check::days(&self.t.world.env, &self.caller, self.id, 90).await.expect("days");
        days.retain(|check| self.days.contains(&check.day));
        days
    }

    /// Counts, and expects these differences.
    async fn expect(&self, n_letters: usize, missing: &[String], when: &str) -> Vec<Check> {
        let days = self.counted().await;
        let sum: i32 = days.iter().map(|check| check.n_provider).sum();
        assert_eq!(usize::try_from(sum).expect("a number"), n_letters, "{when}: {days:?}");
        let named: Vec<String> = days.iter().flat_map(|check| check.missing.clone()).collect();
        assert_eq!(named, missing, "{when}: {days:?}");
        assert!(days.iter().all(|check| check.n_surplus == 0 && check.n_leaving == 0), "{when}: {days:?}");
        assert_eq!(days.iter().any(|check| check.state == CheckState::Differs), !missing.is_empty(), "{when}");
        days
    }

    /// Loses the document of a letter, sees it missing, and fetches it.
    async fn lose_and_fetch(&self, n_letters: usize) {
        let documents = self.t.documents(self.id).await;
        let letters: Vec<&String> = documents.iter().filter(|name| name.starts_with("message:")).collect();
        let lost = letters[letters.len() / 2].clone();
        let gone = sqlx::query("delete from source_documents where source_id = $1 and external_id = $2")
            .bind(self.id.0)
            .bind(&lost)
            .execute(&mut *self.t.world.conn().await)
            .await
            .expect("deleted");
        assert_eq!(gone.rows_affected(), 1);
        let days = self.expect(n_letters, std::slice::from_ref(&lost), "a row is lost").await;
        let red = days.iter().find(|check| check.state == CheckState::Differs).expect("a red day");
        check::fetch_missing(&self.t.world.env, &self.caller, self.id, red.day).await.expect("fetched");
        self.settle().await;
        assert_eq!(self.t.documents(self.id).await, documents, "the button brings it back");
        self.expect(n_letters, &[], "it was fetched").await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn gmails_own_count_is_met_whatever_happens() {
    let w = Watched::new(GMAIL, |t| t.fakes.gmail().fill(40)).await;
    let gmail = w.t.fakes.gmail();
    w.expect(40, &[], "at first").await;
    w.lose_and_fetch(40).await;
    let ids = gmail.readable_ids();
    gmail.trash(&ids[3]);
    gmail.mark_spam(&ids[7]);
    gmail.delete(&ids[11]);
    gmail.archive(&ids[15]);
    gmail.receive("Ann <ann@larkfield.example>", "New", "A letter that nobody was told of.");
    w.expect(38, &[], "before anybody asked for a sync").await;
    gmail.expire_history();
    gmail.untrash(&ids[3]);
    w.expect(39, &[], "its history is gone").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn outlooks_own_count_is_met_whatever_happens() {
    let w = Watched::new(OUTLOOK, |t| drop(t.fakes.outlook().fill(60, 4))).await;
    let outlook = w.t.fakes.outlook();
    w.expect(60, &[], "at first").await;
    w.lose_and_fetch(60).await;
    let documents = w.t.documents(w.id).await;
    let ids: Vec<&str> = documents.iter().filter_map(|name| name.strip_prefix("message:")).collect();
    outlook.move_to(ids[3], "deleteditems");
    outlook.move_to(ids[7], "archive");
    outlook.purge(ids[11]);
    outlook.receive("ann@larkfield.example", "New", "A letter that nobody was told of.");
    w.expect(59, &[], "before anybody asked for a sync").await;
    outlook.expire_cursors();
    outlook.move_to(ids[3], "inbox");
    w.expect(60, &[], "its cursors are gone").await;
}
