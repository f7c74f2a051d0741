//! Answers of providers with damage in random places.

use domain::JobKind;
use fakes::Manner;
use testkit::sources::{DRIVE, HUBSPOT, QUICKBOOKS};
use testkit::{Sources, is_slow};

use crate::pull_faults::run_for_hours;

/// F19: every sync ends or says why not, nothing panics, and once the provider is well again nothing is missing or too much.
#[tokio::test(flavor = "multi_thread")]
async fn whatever_damage_an_answer_has_a_person_is_told_and_the_next_full_sync_heals_it() {
    let rounds: u64 = if is_slow() { 100 } else { 8 };
    for (provider, paths) in [(HUBSPOT, "/hubspot/crm"), (QUICKBOOKS, "/quickbooks"), (DRIVE, "/drive/v3")] {
        let (clean, t) = (Sources::new().await, Sources::new().await);
        let known = clean.connect(provider).await;
        clean.run().await;
        let expected = clean.documents(known).await;
        assert!(!expected.is_empty());
        let id = t.connect(provider).await;
        t.run().await;
        let (mut failed, mut left_behind) = (0, 0);
        for seed in 0..rounds {
            for nth in 1..=3 {
                t.fakes.nth(paths, nth, Manner::Mutated(10 * seed + nth));
            }
            let job_id = t.sync_as(id, Some(JobKind::Full)).await;
            run_for_hours(&t, 6).await;
            t.fakes.behave();
            let job = t.jobs(id).await.into_iter().find(|job| job.id == job_id.0).expect("the job");
            assert!(job.status.is_over(), "F19, {provider}, seed {seed}: stuck: {job:?}");
            for told in job.error_details.as_array().into_iter().flatten() {
                let what = told["what"].as_str().unwrap_or_default();
                assert!(!what.is_empty() && !what.contains("panicked"), "F19, {provider}, seed {seed}: {told}");
                failed += 1;
            }
            left_behind += job.items_failed;
        }
        let quiet = "select count(*) from sync_failures where coalesce(reason, '') = ''";
        assert_eq!(t.count(quiet).await, 0, "F19: a record was left behind without a reason");
        t.sync_as(id, Some(JobKind::Full)).await;
        run_for_hours(&t, 2).await;
        assert_eq!(t.documents(id).await, expected, "F19, {provider}: not healed");
        println!("{provider}: {rounds} damaged syncs, {failed} failures told, {left_behind} records left behind");
    }
}
