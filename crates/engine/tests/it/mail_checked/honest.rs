//! Letters on their way are no difference: neither those that come and go while they are counted, nor those that a sync is about to read.

use chrono::TimeDelta;
use domain::JobKind;
use domain::mail::Place;
use domain::mail::check::CheckState;
use engine::mail::check;

use super::{Checked, ids};

#[tokio::test(flavor = "multi_thread")]
async fn what_comes_and_goes_while_it_is_counted_is_no_difference() {
    let b = Checked::with(&[("a", 1), ("b", 2), ("c", 3)]).await;
    let (came, moved) = (b.at(20), b.at(21));
    b.loft(|loft| {
        loft.put("moved", moved); // the next delta tells of it
        loft.while_counting.push_back(Box::new(move |loft| {
            loft.put("came", came);
            loft.remove("b");
            loft.move_to("c", Place::Deleted);
        }));
    });
    let day = b.yesterday();
    check::ask(&b.t.world.env, &b.caller, b.id, &[day]).await.expect("asked");
    b.t.run().await;
    let reading = b.day(day).await;
    assert_eq!((reading.state, reading.n_missing, reading.n_waiting), (CheckState::Reading, 0, 1), "{reading:?}");
    b.settle().await;
    let settled = b.day(day).await;
    assert_eq!((settled.state, settled.n_provider, settled.n_stored), (CheckState::Equal, 3, 3), "{settled:?}");
    assert_eq!(b.documents().await, ids(&["a", "came", "moved"]));
    assert!(b.findings().await.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_difference_is_grey_until_a_sync_has_settled_it() {
    let b = Checked::with(&[("a", 1), ("b", 2)]).await;
    b.loft(|loft| {
        loft.is_mute = true;
        loft.put("c", b.at(3));
    });
    let day = b.yesterday();
    check::ask(&b.t.world.env, &b.caller, b.id, &[day]).await.expect("asked");
    for _ in 0..4 {
        b.t.run().await;
        let reading = b.day(day).await;
        assert!(matches!(reading.state, CheckState::Reading | CheckState::Equal), "{reading:?}");
        assert!(b.findings().await.is_empty());
        b.t.world.env.clock.advance(TimeDelta::seconds(6));
    }
    let reading = b.day(day).await;
    assert_eq!((reading.state, reading.n_waiting, reading.n_provider), (CheckState::Reading, 1, 3), "{reading:?}");
    b.loft(|loft| loft.is_mute = false);
    b.t.world.env.clock.advance(TimeDelta::minutes(20)); // the sync is tried again
    b.settle().await;
    assert_eq!(b.day(day).await.state, CheckState::Equal);
    assert_eq!(b.documents().await, ids(&["a", "b", "c"]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_letter_that_has_just_come_in_is_never_missing() {
    just_come_in(false).await;
    just_come_in(true).await;
}

/// Some providers count letters and do not say when they came in.
async fn just_come_in(is_terse: bool) {
    let b = Checked::prepared(&[("a", 1)], |loft| loft.is_terse = is_terse).await;
    // Its provider lists it, and its changes do not have it yet.
    b.loft(|loft| loft.put_silently("new", b.now() - TimeDelta::minutes(2)));
    let today = b.today();
    check::ask(&b.t.world.env, &b.caller, b.id, &[today]).await.expect("asked");
    b.settle().await;
    let day = b.day(today).await;
    assert_eq!((day.state, day.n_missing, day.n_waiting), (CheckState::Reading, 0, 1), "{day:?}");
    b.t.world.env.clock.advance(TimeDelta::minutes(30));
    check::ask(&b.t.world.env, &b.caller, b.id, &[today]).await.expect("asked");
    b.settle().await;
    let day = b.day(today).await;
    assert_eq!(
        (day.state, day.missing.clone()),
        (CheckState::Differs, ids(&["new"])),
        "half an hour is no haste: {day:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_letter_that_changed_its_day_is_on_the_other_one() {
    let b = Checked::with(&[("a", 1), ("b", 23)]).await;
    b.loft(|loft| loft.put_silently("b", b.at(25))); // today, an hour after midnight
    let yesterday = b.count().await;
    assert_eq!((yesterday.state, yesterday.n_provider), (CheckState::Equal, 1), "{yesterday:?}");
    check::ask(&b.t.world.env, &b.caller, b.id, &[b.today()]).await.expect("asked");
    b.settle().await;
    let today = b.day(b.today()).await;
    assert_eq!((today.state, today.n_stored), (CheckState::Equal, 1), "{today:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_day_is_a_day_in_utc_to_the_millisecond() {
    let b = Checked::prepared(&[("first", 0), ("next", 24)], |_| ()).await;
    let almost = b.at(24) - TimeDelta::milliseconds(1);
    b.loft(|loft| loft.put("last", almost));
    b.t.sync(b.id).await;
    let yesterday = b.count().await;
    assert_eq!((yesterday.state, yesterday.n_stored), (CheckState::Equal, 2), "{yesterday:?}");
    check::ask(&b.t.world.env, &b.caller, b.id, &[b.today()]).await.expect("asked");
    b.settle().await;
    assert_eq!(b.day(b.today()).await.n_stored, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_capped_first_sync_did_not_read_is_not_missing() {
    capped(false).await;
    capped(true).await;
}

async fn capped(is_terse: bool) {
    let letters = [("old", -48), ("early", 2), ("a", 10), ("b", 20)];
    let b = Checked::prepared(&letters, |loft| {
        let from = *loft.received("a");
        (loft.read_from, loft.is_terse) = (Some(from), is_terse);
    })
    .await;
    assert_eq!(b.documents().await, ids(&["a", "b"]));
    let before = b.day(b.today() - TimeDelta::days(3)).await;
    assert_eq!((before.state, before.n_provider, before.n_not_read), (CheckState::NotRead, 1, 1), "{before:?}");
    let day = b.day(b.yesterday()).await;
    assert_eq!((day.state, day.n_stored, day.n_not_read), (CheckState::Equal, 2, 1), "{day:?}");
    // What was read is compared as ever.
    b.lose("a").await;
    let day = b.count().await;
    assert_eq!((day.state, day.missing.clone()), (CheckState::Differs, ids(&["a"])), "{day:?}");

    // A full pass later on reads everything, and from then on everything counts.
    b.t.sync_as(b.id, Some(JobKind::Full)).await;
    b.settle().await;
    assert_eq!(b.documents().await, ids(&["a", "b", "early", "old"]));
    let before = b.day(b.today() - TimeDelta::days(3)).await;
    assert_eq!((before.state, before.n_stored), (CheckState::Equal, 1), "{before:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_letter_that_a_person_let_in_waits_for_its_sync() {
    let b = Checked::with(&[("a", 1), ("b", 2)]).await;
    b.lose("b").await;
    b.did("update processed_messages set skip_reason = 'newsletter' where message_id = 'b'").await;
    engine::mail::left_out::let_in(&b.t.world.env, &b.caller, b.id, "b").await.expect("let in");
    let day = b.count().await;
    assert_eq!((day.state, day.n_stored, day.n_skipped), (CheckState::Equal, 2, 0), "{day:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_day_is_counted_while_a_mailbox_changes_all_the_time() {
    let b = Checked::with(&[("a", 1)]).await;
    b.loft(|loft| {
        for n in 0..12 {
            let id = format!("new{n:02}");
            loft.while_counting.push_back(Box::new(move |loft| {
                let at = *loft.received("a") + TimeDelta::minutes(n);
                loft.put(&id, at);
            }));
        }
    });
    let day = b.count().await;
    assert!(matches!(day.state, CheckState::Equal | CheckState::Reading), "never red: {day:?}");
    b.loft(|loft| loft.while_counting.clear());
    assert_eq!(b.count().await.state, CheckState::Equal);
}
