//! The line that says that nothing was missed: green after the storm, red after a row was removed by hand, and green again once the letter was
//! fetched.

use std::collections::BTreeSet;
use std::time::Duration;

use chrono::{NaiveDate, TimeDelta};
use domain::Caller;
use domain::mail::check::CheckState;
use engine::failures::Again;
use engine::mail::check;
use rand::RngExt as _;
use rand::rngs::StdRng;
use store::mail::checks::Check;

use super::Storm;

/// A day is counted again when a sync has come to its end.
const COUNTED: Duration = Duration::from_secs(200);

impl Storm {
    pub async fn prove(&mut self, dice: &mut StdRng, seed: u64) {
        let truth = self.mailbox.truth();
        let days: BTreeSet<NaiveDate> = truth.values().map(|kept| kept.received_at.date_naive()).collect();
        let counted = self.counted(&days).await;
        let red: Vec<&Check> = counted.iter().filter(|check| check.state != CheckState::Equal).collect();
        assert!(red.is_empty(), "seed {seed}: days that differ after the storm: {red:?}");
        let n_counted: i32 = counted.iter().map(|check| check.n_provider).sum();
        assert_eq!(usize::try_from(n_counted), Ok(truth.len()), "seed {seed}: each letter is counted on one day");
        let n_left_out = truth.values().filter(|kept| kept.left_out.is_some()).count();
        assert_eq!(counted.iter().map(|check| check.n_skipped).sum::<i32>(), i32::try_from(n_left_out).unwrap_or(-1));

        // A letter of days ago: one that has just come in is never missing.
        let old = self.t.fakes.now() - TimeDelta::days(1);
        let known: Vec<_> =
            truth.iter().filter(|(_, kept)| kept.left_out.is_none() && kept.received_at < old).collect();
        let (id, kept) = known[dice.random_range(0..known.len())];
        let (external_id, day) = (format!("message:{id}"), kept.received_at.date_naive());
        let lost = sqlx::query("delete from source_documents where source_id = $1 and external_id = $2")
            .bind(self.id.0)
            .bind(&external_id)
            .execute(&mut *self.t.world.conn().await)
            .await
            .expect("deleted");
        assert_eq!(lost.rows_affected(), 1, "seed {seed}: {external_id}");
        let counted = self.counted(&days).await;
        for check in &counted {
            let expected: &[String] = if check.day == day { std::slice::from_ref(&external_id) } else { &[] };
            assert_eq!((check.missing.as_slice(), check.surplus.len()), (expected, 0), "seed {seed}: {check:?}");
            let is_red = check.state == CheckState::Differs;
            assert_eq!(is_red, check.day == day, "seed {seed}: the wrong day is red: {check:?}");
        }

        let again = check::fetch_missing(&self.t.world.env, &self.caller(), self.id, day).await.expect("an answer");
        assert!(matches!(again, Again::Started { n: 1, .. } | Again::Running { .. }), "seed {seed}");
        self.agrees(seed, "after the missing letter was fetched").await;
        let is_green = self.until(COUNTED, async |storm: &Self| storm.is_equal(day).await).await;
        assert!(is_green, "seed {seed}: {day} stays red: {:?}", self.days().await);
    }

    /// Has these days counted, and returns how they ended.
    async fn counted(&mut self, days: &BTreeSet<NaiveDate>) -> Vec<Check> {
        let asked: Vec<NaiveDate> = days.iter().copied().collect();
        check::ask(&self.t.world.env, &self.caller(), self.id, &asked).await.expect("asked");
        let ended = "select count(*) from mailbox_checks where asked_at is not null";
        let are_counted = self.until(COUNTED, async |storm: &Self| storm.t.count(ended).await == 0).await;
        let checks = self.days().await;
        assert!(are_counted, "I5: the days are never counted: {checks:?}");
        checks.into_iter().filter(|check| days.contains(&check.day)).collect()
    }

    async fn days(&self) -> Vec<Check> {
        check::days(&self.t.world.env, &self.caller(), self.id, check::KEPT_DAYS).await.expect("days")
    }

    async fn is_equal(&self, day: NaiveDate) -> bool {
        let checks = self.days().await;
        checks.iter().any(|check| check.day == day && check.asked_at.is_none() && check.state == CheckState::Equal)
    }

    fn caller(&self) -> Caller {
        Caller::local("test", self.t.world.tenant_id, true)
    }
}
