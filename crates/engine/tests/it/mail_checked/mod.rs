//! "Nothing missed": what a provider counts beside what is stored. A difference turns a day red with the ids, and only one that is real does.

mod both;
mod honest;
mod provider;
mod troubles;

use std::sync::{Arc, Mutex};

use chrono::{DateTime, NaiveDate, NaiveTime, TimeDelta, Utc};
use connectors::pull::ALL;
use domain::mail::Place;
use domain::mail::check::CheckState;
use domain::{Caller, Clock, DocumentId, Secret, SourceId, Transport};
use engine::failures::Again;
use engine::mail::check::{self, words};
use engine::pull::{Providers, connect};
use engine::{documents, findings, health};
use store::mail::checks::Check;
use testkit::Sources;
use uuid::Uuid;

use self::provider::{Loft, PIGEONPOST};

/// A mailbox, its provider, and whoever looks at it.
struct Checked {
    t: Sources,
    loft: Arc<Mutex<Loft>>,
    caller: Caller,
    id: SourceId,
}

impl Checked {
    /// A mailbox with these letters, each received so many hours after midnight of yesterday, read once.
    async fn with(letters: &[(&str, i64)]) -> Self {
        Self::prepared(letters, |_| ()).await
    }

    async fn prepared(letters: &[(&str, i64)], prepare: impl FnOnce(&mut Loft)) -> Self {
        // At noon: yesterday is over, and today has begun.
        let noon: DateTime<Utc> = Utc::now().date_naive().and_time(NaiveTime::MIN).and_utc() + TimeDelta::hours(36);
        let (database, fakes) = (testkit::cluster::cloned(), fakes::Fakes::start().await);
        let mut t = Sources::with(database, Clock::fixed(noon), fakes, &[]).await;
        let name = Uuid::now_v7().to_string();
        let loft = provider::loft(&name);
        let mut config = (*t.world.env.config).clone();
        config.providers.set("PIGEONPOST_LOFT", name);
        let known = [ALL, &[PIGEONPOST]].concat();
        t.world.env.providers = Arc::new(Providers::new(&config, &t.world.env.http, &known).expect("providers"));
        let caller = t.world.operator().await;
        {
            let mut loft = loft.lock().expect("the loft");
            for (letter, hours) in letters {
                loft.put(letter, midnight(noon) - TimeDelta::days(1) + TimeDelta::hours(*hours));
            }
            prepare(&mut loft);
        }
        let (env, tenant) = (&t.world.env, t.world.tenant_id);
        let key = Secret::new("ring-1");
        let id = connect::with_key(env, tenant, PIGEONPOST, &key, None, Transport::Rest).await.expect("a source");
        let mailbox = Self { t, loft, caller, id };
        mailbox.settle().await;
        mailbox
    }

    fn now(&self) -> DateTime<Utc> {
        self.t.world.env.clock.now()
    }

    fn today(&self) -> NaiveDate {
        self.now().date_naive()
    }

    fn yesterday(&self) -> NaiveDate {
        self.today() - TimeDelta::days(1)
    }

    /// So many hours after midnight of yesterday.
    fn at(&self, hours: i64) -> DateTime<Utc> {
        midnight(self.now()) - TimeDelta::days(1) + TimeDelta::hours(hours)
    }

    fn loft<T>(&self, change: impl FnOnce(&mut Loft) -> T) -> T {
        change(&mut self.loft.lock().expect("the loft"))
    }

    /// Runs everything until no day is waited for: what waits for a sync looks again in the meantime.
    async fn settle(&self) {
        for _ in 0..20 {
            self.t.run().await;
            if self.t.count("select count(*) from mailbox_checks where asked_at is not null").await == 0 {
                return;
            }
            self.t.world.env.clock.advance(TimeDelta::seconds(6));
        }
        panic!("the days are never settled: {:?}", self.days().await);
    }

    /// Has yesterday counted, and returns how it ended.
    async fn count(&self) -> Check {
        let day = self.yesterday();
        check::ask(&self.t.world.env, &self.caller, self.id, &[day]).await.expect("asked");
        self.settle().await;
        self.day(day).await
    }

    async fn days(&self) -> Vec<Check> {
        check::days(&self.t.world.env, &self.caller, self.id, 90).await.expect("days")
    }

    async fn day(&self, day: NaiveDate) -> Check {
        self.days().await.into_iter().find(|check| check.day == day).expect("a day")
    }

    async fn fetch(&self, day: NaiveDate) -> Again {
        check::fetch_missing(&self.t.world.env, &self.caller, self.id, day).await.expect("fetched")
    }

    /// A row is lost, as nothing of ours would ever lose it.
    async fn lose(&self, letter: &str) {
        let lost = sqlx::query("delete from source_documents where source_id = $1 and external_id = $2")
            .bind(self.id.0)
            .bind(format!("message:{letter}"))
            .execute(&mut *self.t.world.conn().await)
            .await
            .expect("deleted");
        assert_eq!(lost.rows_affected(), 1, "{letter}");
    }

    async fn did(&self, sql: &str) {
        let done = sqlx::query(sqlx::AssertSqlSafe(sql.to_owned())).execute(&mut *self.t.world.conn().await).await;
        assert_eq!(done.expect("done").rows_affected(), 1, "{sql}");
    }

    async fn findings(&self) -> Vec<String> {
        let found = health::overview(&self.t.world.env, &self.caller).await.expect("an overview").findings;
        found.into_iter().filter(|finding| finding.kind == "mail_differs").map(|finding| finding.what).collect()
    }

    async fn documents(&self) -> Vec<String> {
        self.t.documents(self.id).await
    }
}

fn midnight(at: DateTime<Utc>) -> DateTime<Utc> {
    at.date_naive().and_time(NaiveTime::MIN).and_utc()
}

fn ids(letters: &[&str]) -> Vec<String> {
    letters.iter().map(|letter| format!("message:{letter}")).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_letter_that_the_provider_counts_is_in_one_number_and_the_day_is_green() {
    let b = Checked::with(&[("a", 1), ("b", 2), ("c", 3), ("d", 4), ("e", 5), ("junk", 6), ("late", 25)]).await;
    assert_eq!(b.days().await.len(), 8, "a full pass has its last days counted");
    assert!(b.days().await.iter().all(|check| check.state == CheckState::Equal), "{:?}", b.days().await);

    // One is left out by a rule, one by a person, one cannot be read, and one lies where nothing is read.
    b.lose("b").await;
    b.did("update processed_messages set skip_reason = 'newsletter' where message_id = 'b'").await;
    let c: Uuid = sqlx::query_scalar("select id from source_documents where external_id = 'message:c'")
        .fetch_one(&mut *b.t.world.conn().await)
        .await
        .expect("an id");
    documents::delete(&b.t.world.env, &b.caller, DocumentId(c)).await.expect("deleted");
    b.loft(|loft| {
        loft.put("wet", b.at(7));
        loft.damage("wet");
        loft.move_to("junk", Place::Spam);
    });
    b.t.sync(b.id).await;
    b.t.run().await;

    let day = b.count().await;
    assert_eq!(day.state, CheckState::Equal, "{day:?}");
    assert_eq!((day.n_provider, day.n_stored, day.n_kept_out, day.n_failed), (6, 3, 1, 1), "{day:?}");
    assert_eq!((day.skipped.get("newsletter"), day.n_skipped), (Some(&1), 1));
    assert_eq!(
        words::account(&day),
        "6 messages: 3 stored, 1 left out (newsletter 1), 1 kept out by a person, 1 could not be read"
    );
    assert!(b.findings().await.is_empty());
    let line = words::Line::of("Pigeonpost", &b.days().await);
    assert_eq!(line.tone, words::Tone::Equal, "{}", line.what);
    let (what, end) = (line.what, ": each of the 7 messages that Pigeonpost counts is accounted for");
    assert!(what.starts_with("Nothing was missed on 8 days from ") && what.ends_with(end), "{what}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_row_removed_by_hand_turns_the_day_red_with_its_id_and_the_button_brings_it_back() {
    let b = Checked::with(&[("a", 1), ("b", 2), ("c", 3), ("d", 4)]).await;
    b.lose("b").await;
    let day = b.count().await;
    assert_eq!((day.state, day.n_missing, day.n_surplus), (CheckState::Differs, 1, 0), "{day:?}");
    assert_eq!((day.missing.clone(), day.n_stored, day.n_provider), (ids(&["b"]), 3, 4));
    assert_eq!(b.findings().await, ["1 message that Pigeonpost has is missing here, on 1 day"]);
    // Counted again, it differs still, and is told all the while.
    check::ask(&b.t.world.env, &b.caller, b.id, &[b.yesterday()]).await.expect("asked");
    b.t.run().await;
    assert_eq!(b.day(b.yesterday()).await.state, CheckState::Differs);
    assert_eq!(b.findings().await.len(), 1);
    b.settle().await;

    // By the finding's button.
    let n = findings::retry(&b.t.world.env, &b.caller, "mail_differs").await.expect("retried");
    assert_eq!(n, 1);
    b.settle().await;
    assert_eq!(b.documents().await, ids(&["a", "b", "c", "d"]));
    let day = b.day(b.yesterday()).await;
    assert_eq!((day.state, day.n_stored), (CheckState::Equal, 4), "{day:?}");
    assert!(b.findings().await.is_empty());
    assert!(matches!(b.fetch(b.yesterday()).await, Again::Unknown), "nothing differs any more");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_letter_that_is_gone_at_the_provider_turns_the_day_red_and_the_button_removes_it() {
    let b = Checked::with(&[("a", 1), ("b", 2), ("c", 3)]).await;
    b.loft(|loft| loft.remove_silently("c"));
    let day = b.count().await;
    assert_eq!((day.state, day.surplus.clone(), day.n_missing), (CheckState::Differs, ids(&["c"]), 0), "{day:?}");
    assert_eq!(words::account(&day), "2 messages: 2 stored; 1 more here");
    assert_eq!(b.findings().await, ["1 message is here that Pigeonpost no longer has, on 1 day"]);
    assert!(matches!(b.fetch(b.yesterday()).await, Again::Started { n: 1, left_out: 0, .. }));
    b.settle().await;
    assert_eq!(b.documents().await, ids(&["a", "b"]));
    assert_eq!(b.day(b.yesterday()).await.state, CheckState::Equal);
}

#[tokio::test(flavor = "multi_thread")]
async fn letters_that_no_delta_tells_of_are_named_up_to_a_thousand_and_counted_to_the_last() {
    let b = Checked::with(&[("a", 1)]).await;
    b.loft(|loft| (0..1_203).for_each(|n| loft.put_silently(&format!("lost{n:05}"), b.at(3))));
    let day = b.count().await;
    assert_eq!((day.state, day.n_missing, day.missing.len()), (CheckState::Differs, 1_203, 1_000), "{:?}", day.state);
    assert!(matches!(b.fetch(b.yesterday()).await, Again::Started { n: 500, left_out: 703, .. }));
    b.settle().await;
    assert_eq!(b.day(b.yesterday()).await.n_missing, 703);
}
