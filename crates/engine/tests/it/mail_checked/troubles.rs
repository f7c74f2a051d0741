//! Obstacles to a count: each is said, passes, and costs nobody else anything.

use std::time::Duration;

use chrono::TimeDelta;
use connectors::pull::PullError;
use domain::mail::check::CheckState;
use engine::ActError;
use engine::mail::check;
use engine::pull::jobs;

use super::Checked;

#[tokio::test(flavor = "multi_thread")]
async fn a_provider_that_asks_us_to_wait_is_asked_later() {
    let b = Checked::with(&[("a", 1)]).await;
    let wait = PullError::RateLimited { who: "Pigeonpost", retry_after: Duration::from_secs(40) };
    b.loft(|loft| loft.refusals.push_back(wait));
    let before = b.loft(|loft| loft.n_counts);
    check::ask(&b.t.world.env, &b.caller, b.id, &[b.yesterday()]).await.expect("asked");
    b.t.run().await;
    b.t.world.env.clock.advance(TimeDelta::seconds(30));
    b.t.run().await;
    assert_eq!(b.loft(|loft| loft.n_counts), before + 1, "it was told when");
    b.t.world.env.clock.advance(TimeDelta::seconds(20));
    b.settle().await;
    assert_eq!(b.day(b.yesterday()).await.state, CheckState::Equal);
    assert_eq!(b.t.count("select count(*) from pgmq.a_mailbox_check").await, 0, "a wait costs no attempt");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_day_that_cannot_be_counted_says_why_and_keeps_what_was_known() {
    let b = Checked::with(&[("a", 1)]).await;
    let long_ago = b.today() - TimeDelta::days(20);
    let refusal = || PullError::Forbidden { who: "Pigeonpost", code: "NO_LADDER".into() };
    b.loft(|loft| loft.refusals.push_back(refusal()));
    check::ask(&b.t.world.env, &b.caller, b.id, &[long_ago, b.yesterday()]).await.expect("asked");
    b.settle().await;
    let (unknown, known) = (b.day(long_ago).await, b.day(b.yesterday()).await);
    assert_eq!(unknown.state, CheckState::Unknown);
    assert_eq!(unknown.note.as_deref(), Some("Pigeonpost refused what we asked for (NO_LADDER)"));
    assert_eq!((known.state, known.n_stored), (CheckState::Equal, 1), "{known:?}");
    assert!(b.findings().await.is_empty() && known.asked_at.is_none());

    // Three tries, and then another day.
    b.loft(|loft| (0..3).for_each(|_| loft.refusals.push_back(PullError::Passing("a hawk".into()))));
    check::ask(&b.t.world.env, &b.caller, b.id, &[long_ago]).await.expect("asked");
    for _ in 0..6 {
        b.t.run().await;
        b.t.world.env.clock.advance(TimeDelta::minutes(20));
    }
    assert_eq!(b.day(long_ago).await.note.as_deref(), Some("a hawk"));
    assert_eq!(b.t.count("select count(*) from pgmq.a_mailbox_check").await, 0, "nothing is given up for good");
    check::ask(&b.t.world.env, &b.caller, b.id, &[long_ago]).await.expect("asked");
    b.settle().await;
    assert_eq!(b.day(long_ago).await.state, CheckState::Equal);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mailbox_that_is_not_synced_and_days_that_are_not_kept_are_refused() {
    let b = Checked::with(&[("a", 1)]).await;
    let env = &b.t.world.env;
    for odd in [b.today() + TimeDelta::days(1), b.today() - TimeDelta::days(91)] {
        let refused = check::ask(env, &b.caller, b.id, &[odd]).await;
        assert!(matches!(refused, Err(ActError::Invalid(_))), "{odd}: {refused:?}");
    }
    let hubspot = b.t.connect(testkit::sources::HUBSPOT).await;
    let refused = check::ask(env, &b.caller, hubspot, &[]).await;
    assert!(matches!(&refused, Err(ActError::Conflict(why)) if why.contains("mailbox")), "{refused:?}");

    // Paused while its days wait: they are put aside, and it can be counted when it is resumed.
    check::ask(env, &b.caller, b.id, &[b.yesterday()]).await.expect("asked");
    assert!(jobs::pause_source(env, b.t.world.tenant_id, b.id).await.expect("paused"));
    b.settle().await;
    assert_eq!(b.day(b.yesterday()).await.note.as_deref(), Some("the source is paused: resume it first"));
    let refused = check::ask(env, &b.caller, b.id, &[]).await;
    assert!(matches!(refused, Err(ActError::Conflict(_))), "{refused:?}");
    assert!(jobs::resume_source(env, b.t.world.tenant_id, b.id).await.expect("resumed"));
    assert_eq!(b.count().await.state, CheckState::Equal);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mailbox_has_one_message_however_often_it_is_asked_for() {
    let b = Checked::with(&[("a", 1)]).await;
    for _ in 0..5 {
        check::ask(&b.t.world.env, &b.caller, b.id, &[]).await.expect("asked");
    }
    assert_eq!(b.t.count("select count(*) from pgmq.q_mailbox_check").await, 1);
    let before = b.loft(|loft| loft.n_counts);
    b.settle().await;
    assert_eq!(b.loft(|loft| loft.n_counts), before + 2, "yesterday and today, once each");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_schedule_has_every_mailbox_counted_once_a_day() {
    let b = Checked::with(&[("a", 1)]).await;
    let schedule =
        engine::lanes::SCHEDULES.iter().find(|schedule| schedule.name == "mail_checks").expect("the schedule");
    let tomorrow = super::midnight(b.now()) + TimeDelta::days(1);
    let mut n_days = Vec::new();
    for hour in 0..24 {
        b.t.world.env.clock.advance(tomorrow + TimeDelta::hours(hour) - b.now());
        (schedule.run)(&b.t.world.env).await.expect("it runs");
        let n = b.t.count("select count(*) from mailbox_checks where asked_at is not null").await;
        if n > 0 {
            n_days.push(n);
            assert!((2..=6).contains(&hour), "in the night: {hour}");
        }
        b.settle().await;
    }
    assert!(matches!(n_days.as_slice(), [2] | [8]), "{n_days:?}");
    assert!(b.days().await.iter().all(|check| check.state == CheckState::Equal), "{:?}", b.days().await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_day_that_differs_is_counted_again_until_it_is_equal_however_old_it_is() {
    let b = Checked::with(&[("a", 1), ("old", -24 * 20)]).await;
    let day = b.at(-24 * 20).date_naive();
    b.lose("old").await;
    check::ask(&b.t.world.env, &b.caller, b.id, &[day]).await.expect("asked");
    b.settle().await;
    assert_eq!(b.day(day).await.state, CheckState::Differs);
    // Nobody presses the button: everything is read again for another reason.
    b.t.sync_as(b.id, Some(domain::JobKind::Full)).await;
    b.settle().await;
    assert_eq!(b.day(day).await.state, CheckState::Equal);
    assert!(b.findings().await.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn days_are_kept_for_ninety_days_and_go_with_their_mailbox() {
    let b = Checked::with(&[("a", 1)]).await;
    let n = b.t.count("select count(*) from mailbox_checks").await;
    assert_eq!(n, 8);
    b.did("update mailbox_checks set day = day - 91 where day = (select max(day) from mailbox_checks)").await;
    let queues: Vec<_> = engine::lanes::ALL.iter().map(|lane| lane.queue().clone()).collect();
    let at = b.t.world.env.clock.sql();
    let swept = store::retention::enforce(&mut *b.t.world.conn().await, at, &queues, |_, _| ()).await;
    let swept = swept.into_iter().find(|swept| swept.table == "public.mailbox_checks").expect("a rule");
    assert_eq!((swept.gone, swept.error.is_some()), (1, false), "{swept:?}");
}
