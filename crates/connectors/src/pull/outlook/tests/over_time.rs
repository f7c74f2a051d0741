//! Rounds over a mailbox that changes between them and meanwhile.

use std::time::Duration;

use fakes::{Manner, Outlook, RetryAfter};

use super::*;

#[tokio::test]
async fn a_full_pass_reads_every_folder_and_its_cursor_leads_to_what_changed() {
    let mut reader = Reader::of(Fakes::with_fixtures().await);
    let outlook = reader.fakes.outlook();
    outlook.fill(230, 9);
    reader.full().await.expect("a pass");
    reader.assert_equal();
    assert_eq!(reader.known.len(), 243);
    // Every unit of the limit is asked for before it is spent.
    assert_eq!(u64::from(reader.pace.units()), outlook.units());

    let pages = reader.n_pages;
    reader.delta().await.expect("a delta");
    assert_eq!(reader.n_pages - pages, 1, "the changes of all folders are asked for at once");

    let new = outlook.receive("ann@example.com", "A new one", "Hello");
    outlook.edit(&new, json!({ "subject": "A new one, edited" }));
    let moved = outlook.ids()[0].clone();
    let folder = outlook.add_folder("Projects", None);
    outlook.move_to(&moved, &folder);
    let ids: Vec<String> = reader.known.keys().cloned().collect();
    outlook.delete(&ids[10]);
    outlook.purge(&ids[11]);
    outlook.mark_read(&ids[12], true);
    let draft = outlook.draft("Not yet", "…");
    reader.delta().await.expect("a delta");
    reader.assert_equal();
    assert_eq!(reader.known[&new].0, "A new one, edited");
    outlook.send(&draft);
    outlook.move_to(&ids[10], "inbox");
    reader.delta().await.expect("a delta");
    reader.assert_equal();
    assert_eq!(reader.known[&draft].1, "Sent Items");
}

#[tokio::test]
async fn folders_that_are_new_renamed_moved_away_and_gone_are_noticed() {
    let mut reader = Reader::of(Fakes::with_fixtures().await);
    let outlook = reader.fakes.outlook();
    let above = outlook.add_folder("Customers", None);
    let inside = outlook.add_folder("Larkfield", Some(&above));
    let deep = outlook.add_folder("2026", Some(&inside));
    for number in 0..15 {
        outlook.add(&deep, json!({ "subject": format!("deep {number}") }));
    }
    reader.full().await.expect("a pass");
    reader.assert_equal();

    outlook.rename_folder(&deep, "2026, closed");
    let fresh = outlook.add_folder("Bayview", Some(&above));
    outlook.add(&fresh, json!({ "subject": "fresh" }));
    reader.delta().await.expect("a delta");
    reader.assert_equal();

    // Its messages keep their folder, and none of them changes: only the folder tells.
    outlook.delete_folder(&inside);
    reader.delta().await.expect("a delta");
    reader.assert_equal();
    assert!(reader.known.values().all(|(_, folder)| folder != "2026, closed"));
    outlook.move_folder(&inside, "inbox");
    reader.delta().await.expect("a delta");
    reader.assert_equal();

    // Of a folder that is gone for good nobody can be asked: everything is read again.
    outlook.purge_folder(&inside);
    let error = reader.delta().await.expect_err("a folder too few");
    assert!(matches!(error, PullError::CursorLost(_)), "{error}");
    reader.full().await.expect("a pass");
    reader.assert_equal();
    // But one that was deleted before it went away for good is not missed.
    outlook.delete_folder(&fresh);
    reader.delta().await.expect("a delta");
    outlook.purge_folder(&fresh);
    reader.delta().await.expect("a delta");
    reader.assert_equal();
}

#[tokio::test]
async fn a_message_that_left_its_folder_is_asked_for_before_it_is_gone() {
    let mut reader = Reader::of(Fakes::start().await);
    let outlook = reader.fakes.outlook();
    let other = outlook.add_folder("Other", None);
    let ids: Vec<String> = (0..30).map(|n| outlook.receive("a@example.com", &format!("m{n}"), "x")).collect();
    reader.full().await.expect("a pass");
    // There and back again: told as gone, and never as there.
    outlook.forget_returns(true);
    for id in &ids[..5] {
        outlook.move_to(id, &other);
        outlook.move_to(id, "inbox");
    }
    outlook.move_to(&ids[6], &other);
    outlook.move_to(&ids[7], "junkemail");
    outlook.purge(&ids[8]);
    reader.delta().await.expect("a delta");
    reader.assert_equal();
}

/// Graph does not find a message for a moment that is there. What that looked like is put right by the next round.
#[tokio::test]
async fn what_is_not_found_for_a_moment_is_asked_for_again() {
    let mut reader = Reader::of(Fakes::start().await);
    let outlook = reader.fakes.outlook();
    let other = outlook.add_folder("Other", None);
    let id = outlook.receive("a@example.com", "There and back", "x");
    let purged = outlook.receive("a@example.com", "Purged", "x");
    reader.full().await.expect("a pass");
    outlook.forget_returns(true);
    outlook.move_to(&id, &other);
    outlook.move_to(&id, "inbox");
    outlook.purge(&purged);
    outlook.hide(&id, 1);
    reader.delta().await.expect("a delta");
    assert!(reader.known.is_empty(), "what is told as gone and not found goes at once");
    reader.delta().await.expect("a delta");
    reader.assert_equal();
    assert_eq!(reader.known.len(), 1);
    let n_asked = |reader: &Reader| reader.fakes.ledger().len();
    let before = n_asked(&reader);
    reader.delta().await.expect("a delta");
    let with_purged = n_asked(&reader) - before;
    reader.delta().await.expect("a delta");
    let quiet = n_asked(&reader) - before - with_purged;
    assert!(quiet < with_purged, "it is asked for three times, not for ever: {quiet} requests after {with_purged}");
}

/// Only its folder can tell that a message is gone: one that was changed and is not found stays.
#[tokio::test]
async fn a_change_to_what_is_not_found_removes_nothing() {
    let mut reader = Reader::of(Fakes::start().await);
    let outlook = reader.fakes.outlook();
    let id = outlook.receive("a@example.com", "Offer", "x");
    reader.full().await.expect("a pass");
    outlook.tell_parts(true);
    outlook.edit(&id, json!({ "subject": "Offer, changed" }));
    outlook.hide(&id, 1);
    reader.delta().await.expect("a delta");
    assert_eq!(reader.known[&id].0, "Offer", "it is there all the time");
    reader.delta().await.expect("a delta");
    reader.assert_equal();
    outlook.edit(&id, json!({ "subject": "Offer, changed again" }));
    outlook.hide(&id, 2);
    for _ in 0..3 {
        assert_eq!(reader.known.len(), 1);
        reader.delta().await.expect("a delta");
    }
    reader.assert_equal();
    outlook.edit(&id, json!({ "subject": "Offer, withdrawn" }));
    outlook.purge(&id);
    reader.delta().await.expect("a delta");
    assert!(reader.known.is_empty(), "its folder tells that it is gone");
}

#[tokio::test]
async fn files_that_are_not_found_for_a_moment_are_read_in_the_next_round() {
    use domain::mail::{LeftOut, Note};
    let mut reader = Reader::of(Fakes::start().await);
    let outlook = reader.fakes.outlook();
    reader.full().await.expect("a pass");
    for is_listed in [false, true] {
        let file = json!({ "name": "offer.pdf", "contentType": "application/pdf", "contentBytes": "JVBERi0=" });
        let id = outlook.add("inbox", json!({ "subject": "Files", "attachments": [file] }));
        // The list of its files is not found; or it is, and the file is not.
        match is_listed {
            false => outlook.hide(&id, 1),
            true => reader.fakes.next("/outlook/v1.0/me/messages/", Manner::Status(404)),
        }
        let mut read = Vec::new();
        for _ in 0..2 {
            let mut place: Option<Value> = None;
            loop {
                let page =
                    reader.connector.delta(&reader.account(), &reader.cursor, place.as_ref()).await.expect("a page");
                read.extend(page.items.into_iter().filter_map(|item| item.letter));
                place = Some(page.next);
                if !page.more {
                    break;
                }
            }
            reader.cursor = place.expect("a cursor");
        }
        assert_eq!(read.len(), 2, "it is read again by itself");
        match is_listed {
            false => assert!(read[0].notes.contains(&Note::FilesUnread) && read[0].files.is_empty()),
            true => assert_eq!(read[0].files[0].left_out, Some(LeftOut::Unreadable)),
        }
        assert_eq!(read[1].files[0].content.as_ref().map(|bytes| bytes.len()), Some(5));
        assert!(!read[1].notes.contains(&Note::FilesUnread));
    }
}

#[tokio::test]
async fn a_lost_cursor_wants_everything_again_and_what_went_away_meanwhile_is_gone() {
    let mut reader = Reader::of(Fakes::start().await);
    let outlook = reader.fakes.outlook();
    outlook.fill(120, 5);
    reader.full().await.expect("a pass");
    let ids = outlook.ids();
    outlook.purge(&ids[3]);
    outlook.delete(&ids[4]);
    outlook.receive("a@example.com", "new", "x");
    outlook.expire_cursors();
    let error = reader.delta().await.expect_err("no place");
    assert!(matches!(error, PullError::CursorLost(_)), "{error}");
    reader.full().await.expect("a pass");
    reader.assert_equal();
}

/// Letters of the first page go, and then Graph forgets the place in their folder. Read again, the folder does not tell of them.
#[tokio::test]
async fn a_pass_that_lost_its_place_in_a_folder_counts_nothing_that_it_met() {
    let mut reader = Reader::of(Fakes::start().await);
    let outlook = reader.fakes.outlook();
    outlook.fill(160, 1);
    reader.full().await.expect("a pass");
    let newest = outlook.receive("a@example.com", "the newest", "x");
    reader.delta().await.expect("a delta");
    reader.once({
        let (outlook, newest) = (outlook.clone(), newest.clone());
        move || {
            outlook.purge(&newest);
            outlook.expire_cursors();
        }
    });
    let error = reader.full().await.expect_err("no place");
    assert!(matches!(error, PullError::CursorLost(_)), "{error}");
    assert!(reader.known.contains_key(&newest), "it was met before it went");
    reader.full().await.expect("a pass");
    reader.assert_equal();
}

/// The link of its changes tells of what left the folder meanwhile.
#[tokio::test]
async fn a_renamed_folder_whose_link_is_lost_is_read_once_more() {
    let mut reader = Reader::of(Fakes::start().await);
    let outlook = reader.fakes.outlook();
    let folder = outlook.fill(160, 3).pop().expect("a folder");
    (0..120).for_each(|n| drop(outlook.add(&folder, json!({ "subject": format!("letter {n}") }))));
    reader.full().await.expect("a pass");
    outlook.rename_folder(&folder, "Renamed");
    let mut place = None;
    for _ in 0..2 {
        let page = reader.connector.delta(&reader.account(), &reader.cursor, place.as_ref()).await.expect("a page");
        assert!(page.more);
        place = Some(page.next.clone());
        reader.remember(page);
    }
    reader.fakes.next(&format!("/outlook/v1.0/me/mailFolders('{folder}')"), Manner::Status(410));
    loop {
        let page = reader.connector.delta(&reader.account(), &reader.cursor, place.as_ref()).await.expect("a page");
        let (next, more) = (page.next.clone(), page.more);
        reader.remember(page);
        place = Some(next);
        if !more {
            break;
        }
    }
    assert!(reader.fakes.ledger().iter().any(|seen| seen.status == Some(410)));
    reader.assert_equal();
}

#[tokio::test]
async fn throttled_parts_of_a_batch_are_asked_for_again_and_a_long_wait_is_the_callers() {
    let mut reader = Reader::of(Fakes::start().await);
    let outlook = reader.fakes.outlook();
    outlook.fill(60, 4);
    outlook.throttle_parts(3, 0);
    reader.full().await.expect("a pass");
    reader.assert_equal();
    outlook.throttle_parts(1_000, 0);
    let error = reader.delta().await.expect_err("nothing is answered");
    assert!(matches!(error, PullError::RateLimited { .. }), "{error}");
    outlook.throttle_parts(1, 30);
    let error = reader.delta().await.expect_err("a long wait");
    let PullError::RateLimited { retry_after, .. } = error else { panic!("{error}") };
    assert_eq!(retry_after, Duration::from_secs(30));
    outlook.throttle_parts(0, 0);
    reader.delta().await.expect("a delta");
}

#[tokio::test]
async fn pages_that_are_too_much_are_asked_for_in_smaller_ones() {
    let mut reader = Reader::of(Fakes::start().await);
    let outlook = reader.fakes.outlook();
    outlook.fill(90, 1);
    outlook.set_page_max(Some(12));
    reader.full().await.expect("a pass");
    reader.assert_equal();
    outlook.set_page_max(Some(1));
    let error = Reader::of(reader.fakes.clone()).full().await.expect_err("never");
    assert_eq!(error.to_string(), "Outlook is not well (504)");
}

#[tokio::test]
async fn a_first_sync_takes_the_newest_and_says_so_and_changes_of_others_still_come() {
    let fakes = Fakes::start().await;
    let mut reader = Reader::with(fakes, "OUTLOOK_INITIAL_SYNC_MAX_MESSAGES", "60");
    let outlook = reader.fakes.outlook();
    outlook.fill(300, 3);
    reader.full().await.expect("a pass");
    assert_eq!(reader.known.len(), 60);
    assert_eq!(reader.notes, ["The newest 60 messages were taken; older ones come in when they change."]);
    assert!(reader.known.values().all(|(_, folder)| folder == "Inbox"));
    // Also in folders of which nothing was read.
    let left = outlook.truth().into_iter().find(|kept| kept.folder != "Inbox").expect("a message");
    outlook.edit(&left.id, json!({ "subject": "changed" }));
    outlook.receive("a@example.com", "new", "x");
    reader.delta().await.expect("a delta");
    assert_eq!(reader.known.len(), 62);
}

/// A folder that comes late in a first sync that is capped has no room. What came into it meanwhile is no old letter.
#[tokio::test]
async fn a_letter_that_comes_during_a_capped_first_sync_is_taken_wherever_it_lies() {
    let mut reader = Reader::with(Fakes::start().await, "OUTLOOK_INITIAL_SYNC_MAX_MESSAGES", "60");
    let outlook = reader.fakes.outlook();
    let folders = outlook.fill(300, 3);
    let first = reader.connector.full(&reader.account(), None, true).await.expect("a page");
    let new = outlook.add(&folders[2], json!({ "subject": "By a rule of the mailbox" }));
    let mut place = first.next.clone();
    reader.remember(first);
    loop {
        let page = reader.connector.full(&reader.account(), Some(&place), true).await.expect("a page");
        let more = page.more;
        place = page.next.clone();
        reader.remember(page);
        if !more {
            break;
        }
    }
    assert_eq!(reader.known.len(), 61);
    assert_eq!(reader.known[&new].0, "By a rule of the mailbox");
}

#[tokio::test]
async fn a_folder_that_was_renamed_and_is_gone_before_it_is_read_again_is_missed() {
    let mut reader = Reader::of(Fakes::start().await);
    let outlook = reader.fakes.outlook();
    let folder = outlook.add_folder("Customers", None);
    outlook.add(&folder, json!({ "subject": "known" }));
    reader.full().await.expect("a pass");
    outlook.rename_folder(&folder, "Customers, closed");
    // Its changes were asked for, and its letters are to be read again.
    let page = reader.connector.delta(&reader.account(), &reader.cursor, None).await.expect("a page");
    assert!(page.more);
    outlook.purge_folder(&folder);
    let error =
        reader.connector.delta(&reader.account(), &reader.cursor, Some(&page.next)).await.expect_err("no folder");
    assert!(matches!(error, PullError::CursorLost(_)), "{error}");
    reader.full().await.expect("a pass");
    reader.assert_equal();
}

/// A letter of a folder that was renamed goes after the folder's changes were asked for, and before the folder is read again.
#[tokio::test]
async fn a_letter_that_leaves_a_renamed_folder_during_the_round_is_gone() {
    for goes in [Outlook::purge, Outlook::delete] {
        let mut reader = Reader::of(Fakes::start().await);
        let outlook = reader.fakes.outlook();
        let folder = outlook.add_folder("Customers", None);
        let id = outlook.add(&folder, json!({ "subject": "known" }));
        outlook.add(&folder, json!({ "subject": "stays" }));
        reader.full().await.expect("a pass");
        outlook.rename_folder(&folder, "Customers, closed");
        reader.once(move || goes(&outlook, &id));
        reader.delta().await.expect("a delta");
        reader.delta().await.expect("a delta");
        reader.assert_equal();
        assert_eq!(reader.known.len(), 1);
    }
}

/// The same of a folder that is no longer read, also where Graph tells late of what left it.
#[tokio::test]
async fn a_letter_that_leaves_a_deleted_folder_around_the_round_is_gone() {
    for is_late in [false, true] {
        let mut reader = Reader::of(Fakes::start().await);
        let outlook = reader.fakes.outlook();
        let folder = outlook.add_folder("Customers", None);
        let ids: Vec<String> =
            (0..3).map(|n| outlook.add(&folder, json!({ "subject": format!("known {n}") }))).collect();
        reader.full().await.expect("a pass");
        reader.fakes.advance(Duration::from_secs(60));
        outlook.set_delta_lag(Duration::from_secs(if is_late { 10 } else { 0 }));
        outlook.delete_folder(&folder);
        outlook.delete(&ids[0]);
        reader.once({
            let (outlook, id) = (outlook.clone(), ids[1].clone());
            move || outlook.purge(&id)
        });
        reader.delta().await.expect("a delta");
        reader.fakes.advance(Duration::from_secs(60));
        reader.delta().await.expect("a delta");
        reader.assert_equal();
        outlook.move_folder(&folder, "inbox");
        reader.delta().await.expect("a delta");
        reader.assert_equal();
        assert_eq!(reader.known.len(), 1, "it is read again with what is left in it");
    }
}

/// A folder comes up during a round, and a letter that its old folder told as gone is found in it. Its changes are asked for from the next round on.
#[tokio::test]
async fn a_letter_that_goes_from_a_folder_that_just_came_up_is_gone() {
    for goes in [Outlook::purge, Outlook::delete, |outlook: &Outlook, id: &str| outlook.move_to(id, "junkemail")] {
        let mut reader = Reader::of(Fakes::start().await);
        let outlook = reader.fakes.outlook();
        let ids: Vec<String> = (0..2).map(|n| outlook.receive("a@example.com", &format!("letter {n}"), "x")).collect();
        reader.full().await.expect("a pass");
        ids.iter().for_each(|id| outlook.move_to(id, "junkemail"));
        reader.once({
            let (outlook, ids) = (outlook.clone(), ids.clone());
            move || {
                let folder = outlook.add_folder("No junk", None);
                ids.iter().for_each(|id| outlook.move_to(id, &folder));
            }
        });
        reader.delta().await.expect("a delta");
        reader.assert_equal();
        assert!(reader.known.values().all(|(_, folder)| folder == "No junk"));
        goes(&outlook, &ids[0]);
        reader.delta().await.expect("a delta");
        reader.assert_equal();
        assert_eq!(reader.known.len(), 1);
    }
}

/// That folder goes, too, before anybody has asked for its changes.
#[tokio::test]
async fn letters_of_a_folder_that_just_came_up_are_gone_with_it() {
    for goes in [Outlook::purge_folder, Outlook::delete_folder] {
        let mut reader = Reader::of(Fakes::start().await);
        let outlook = reader.fakes.outlook();
        let id = outlook.receive("a@example.com", "letter", "x");
        reader.full().await.expect("a pass");
        outlook.move_to(&id, "junkemail");
        reader.once({
            let outlook = outlook.clone();
            move || outlook.move_to(&id, &outlook.add_folder("No junk", None))
        });
        reader.delta().await.expect("a delta");
        reader.assert_equal();
        assert_eq!(reader.known.len(), 1);
        let (folder, _) = outlook.folders().into_iter().find(|(_, name)| name == "No junk").expect("a folder");
        goes(&outlook, &folder);
        reader.delta().await.expect("a delta");
        reader.assert_equal();
        assert!(reader.known.is_empty());
    }
}

#[tokio::test]
async fn empty_short_and_repeated_pages_end_where_they_should() {
    let mut reader = Reader::of(Fakes::start().await);
    let (outlook, fakes) = (reader.fakes.outlook(), reader.fakes.clone());
    outlook.fill(120, 1);
    let inbox = "/outlook/v1.0/me/mailFolders";
    fakes.next(inbox, Manner::EmptyPage);
    fakes.next(inbox, Manner::ShortPage);
    reader.full().await.expect("a pass");
    reader.assert_equal();
    fakes.always(inbox, Some(Manner::RepeatToken));
    let error = Reader::of(fakes.clone()).full().await.expect_err("a circle");
    assert_eq!(error.to_string(), "Outlook gave the same page again");
    fakes.behave();
    fakes.next("/outlook", Manner::RateLimited { retry_after: RetryAfter::Seconds(7) });
    let error = reader.delta().await.expect_err("a wait");
    assert_eq!(error.to_string(), "Outlook asked us to wait 7 s");
}

#[tokio::test]
async fn another_choice_of_places_brings_letters_in_and_takes_them_out() {
    let mut reader = Reader::of(Fakes::with_fixtures().await);
    let outlook = reader.fakes.outlook();
    let inside = outlook.add_folder("Thrown away", Some("deleteditems"));
    outlook.add(&inside, json!({ "subject": "old" }));
    reader.full().await.expect("a pass");
    reader.assert_equal();
    reader.places.extend([Place::Deleted, Place::Drafts]);
    reader.delta().await.expect("a delta");
    let all = outlook.truth().into_iter().filter(|kept| kept.place != "spam").count();
    assert_eq!(reader.known.len(), all);
    reader.places.truncate(READ.len());
    reader.delta().await.expect("a delta");
    reader.assert_equal();
}
