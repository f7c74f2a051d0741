//! The story of the mailboxes, told beside the other one: letters come in, a subscription dies, a folder moves, a provider forgets where we were,
//! and the count at the provider agrees with ours all the same. One round takes about two minutes.

use std::time::{Duration, Instant};

use domain::shown::plural;
use domain::{JobKind, SourceStatus};
use engine::mail::check::words::Tone;

use super::mailboxes::subject;
use super::post::{self, GMAIL, MARISOL, NORA, OUTLOOK, PRICES, PRIYA, Post};
use super::stage::Stage;
use super::story::played;

const MAILBOXES: [&str; 2] = [GMAIL, OUTLOOK];
/// Between two chapters, to look around.
const PAUSE: Duration = Duration::from_secs(8);
/// Longer than a worker's death and the schedule of subscriptions together.
const PATIENCE: Duration = Duration::from_secs(90);

/// The letters that this round brought, to be thrown away at its end.
struct Brought {
    gmail: String,
    outlook: String,
}

pub async fn tell(stage: &Stage, post: &Post) -> anyhow::Result<()> {
    played(stage, subscribed(stage).await);
    for round in 1.. {
        let gmail = played(stage, arrived(stage, post, round).await);
        pause().await;
        played(stage, answered(stage, post, round).await);
        pause().await;
        played(stage, left_out(stage, post, round).await);
        pause().await;
        played(stage, counted(stage, post).await);
        pause().await;
        let outlook = played(stage, unheard(stage, post, round).await);
        pause().await;
        played(stage, moved(stage, post, round).await);
        pause().await;
        for mailbox in MAILBOXES {
            played(stage, forgotten(stage, post, mailbox, round).await);
            pause().await;
        }
        if let (Some(gmail), Some(outlook)) = (gmail, outlook) {
            played(stage, thrown_away(stage, post, Brought { gmail, outlook }).await);
            pause().await;
        }
        played(stage, counted(stage, post).await);
        pause().await;
    }
    Ok(())
}

async fn pause() {
    tokio::time::sleep(PAUSE).await;
}

/// They ask their providers soon after they were connected.
async fn subscribed(stage: &Stage) -> anyhow::Result<()> {
    for mailbox in MAILBOXES {
        let label = stage.env.providers.label(mailbox);
        let words = match stage.heard_within(mailbox, PATIENCE).await? {
            true => format!(
                "{label} tells us of each change of its mailbox from now on, and a letter comes in every few seconds"
            ),
            false => format!("{label} cannot reach us, so its mailbox is asked for news every minute"),
        };
        stage.say(&words, &stage.page(mailbox)?);
    }
    Ok(())
}

/// Returns the letter's id at Gmail.
async fn arrived(stage: &Stage, post: &Post, round: usize) -> anyhow::Result<String> {
    let about = format!("Snow pusher for winter {}", 2_026 + round);
    let text = "Three months with the snow pusher, from the first of December. Our yard floods, so please deliver to the upper gate. \
                The rates that we agreed on are attached.";
    let (name, kind, content) = PRICES;
    let id = {
        let _held = post.held().await;
        stage.fakes.gmail().receive_with(&post::from(NORA), &about, text, &[(name, kind, content.as_bytes())])
    };
    let begun = Instant::now();
    let found = stage.letter_when(GMAIL, &about, PATIENCE, |_| true).await?;
    match found {
        Some(letter) => {
            let words = format!(
                "Nora Vickery's letter \"{}\" came in at Gmail with a price list, and is found {:.1} s later",
                subject(&letter),
                begun.elapsed().as_secs_f64()
            );
            stage.say(&words, &format!("/mail/{}", letter.id));
        }
        None => stage.say("Nora Vickery's letter is still on its way", "/mail"),
    }
    Ok(id)
}

async fn answered(stage: &Stage, post: &Post, round: usize) -> anyhow::Result<()> {
    let about = format!("Hydraulic breaker, site {round}");
    {
        let _held = post.held().await;
        let texts = [
            "The breaker of the 14-ton loses pressure after ten minutes. Do you have another?",
            "One with new seals leaves our yard at noon. Please keep the old chisel.",
            "It is on the machine and works. We keep the chisel in the container.",
        ];
        post.talk_at_outlook(MARISOL, &about, texts);
    }
    let until = Instant::now() + PATIENCE;
    let letters = loop {
        let letters = stage.letters(OUTLOOK, &about).await?;
        if letters.len() >= 3 || Instant::now() > until {
            break letters;
        }
        pause_briefly().await;
    };
    let n = i64::try_from(letters.len()).unwrap_or(i64::MAX);
    let page = letters.first().map_or("/mail".to_owned(), |letter| format!("/mail/{}/thread", letter.id));
    let words = format!(
        "Marisol Penhale asked, the office answered and she thanked them at Outlook: {} in one conversation",
        plural(n, "letter", "letters")
    );
    stage.say(&words, &page);
    Ok(())
}

/// A rule that the program ships.
async fn left_out(stage: &Stage, post: &Post, round: usize) -> anyhow::Result<()> {
    let before = stage.n_left_out(GMAIL).await?;
    {
        let _held = post.held().await;
        post.newsletter(round);
    }
    let until = Instant::now() + PATIENCE;
    let after = loop {
        let after = stage.n_left_out(GMAIL).await?;
        if after > before || Instant::now() > until {
            break after;
        }
        pause_briefly().await;
    };
    let words = match after > before {
        true => format!("A newsletter came in at Gmail, and a rule left it out ({after} so far); one press lets it in"),
        false => "A newsletter came in at Gmail; no rule has left it out".to_owned(),
    };
    stage.say(&words, &stage.page(GMAIL)?);
    Ok(())
}

/// "Nothing missed". No letter comes in meanwhile, so that the line is green and not on its way to it.
async fn counted(stage: &Stage, post: &Post) -> anyhow::Result<()> {
    let _held = post.held().await;
    for mailbox in MAILBOXES {
        let id = stage.sync(mailbox, None).await?;
        stage.ended(id, PATIENCE).await?;
        let mut health = stage.health(mailbox, PATIENCE).await?;
        if health.tone == Tone::Waiting {
            // A count that was under way met a letter that was not read yet.
            health = stage.health(mailbox, PATIENCE).await?;
        }
        let colour = match health.tone {
            Tone::Equal => "green",
            Tone::Waiting => "grey",
            Tone::Differs => "red",
        };
        stage.say(&format!("{} ({colour})", health.what), &stage.page(mailbox)?);
    }
    Ok(())
}

/// Outlook ends its subscription. Returns the id of a letter of which nobody told.
async fn unheard(stage: &Stage, post: &Post, round: usize) -> anyhow::Result<String> {
    let page = stage.page(OUTLOOK)?;
    stage.fakes.outlook().remove_subscriptions();
    let begun = Instant::now();
    while stage.is_heard(OUTLOOK).await? && begun.elapsed() < PATIENCE {
        pause_briefly().await;
    }
    let about = format!("Lift inspection, campus {round}");
    let id = {
        let _held = post.held().await;
        let text =
            "The inspector comes on the 12th at nine. He wants the load test of all three aerial lifts on paper.";
        post.to_outlook(PRIYA, &about, text, None)
    };
    stage.say(
        "Outlook ended its subscription: nobody tells us of new mail there, and it is asked for every minute",
        &page,
    );
    let is_heard = stage.heard_within(OUTLOOK, PATIENCE).await?;
    let letter = stage.letter_when(OUTLOOK, &about, PATIENCE, |_| true).await?;
    let secs = begun.elapsed().as_secs();
    let is_active = stage.source(OUTLOOK).await?.status == SourceStatus::Active;
    match (is_heard && is_active, letter) {
        (true, Some(letter)) => {
            let words = format!(
                "The subscription was made anew; \"{}\", of which nobody told, is here {secs} s later all the same",
                subject(&letter)
            );
            stage.say(&words, &page);
        }
        _ => stage.say("Outlook has no subscription yet; its mailbox is asked for news every minute", &page),
    }
    Ok(id)
}

async fn moved(stage: &Stage, post: &Post, round: usize) -> anyhow::Result<()> {
    let outlook = stage.fakes.outlook();
    let about = format!("Fleet agreement {}, signed", 2_026 + round);
    let (before, after) = (format!("Contracts {round}"), format!("Contracts {round}, signed"));
    let (id, folder) = {
        let _held = post.held().await;
        let text = "Signed by both of us. Response within 8 hours, as we said, and one mechanic who knows the fleet.";
        (post.to_outlook(MARISOL, &about, text, None), outlook.add_folder(&before, None))
    };
    let Some(first) = stage.letter_when(OUTLOOK, &about, PATIENCE, |_| true).await? else {
        stage.say("The signed agreement is still on its way", "/mail");
        return Ok(());
    };
    outlook.move_to(&id, &folder);
    // Nobody tells of a folder: the next sync sees it.
    outlook.rename_folder(&folder, &after);
    outlook.move_folder(&folder, "archive");
    let job = stage.sync(OUTLOOK, None).await?;
    stage.ended(job, PATIENCE).await?;
    let is_there = |folders: &[String]| folders.contains(&after);
    let last = stage.letter_when(OUTLOOK, &about, PATIENCE, |letter| is_there(&letter.head.folders)).await?;
    let words = match last {
        Some(last) if last.id == first.id => format!(
            "\"{}\" was filed in a folder at Outlook, which was renamed and moved: it is the same document, now in \"{after}\"",
            subject(&last)
        ),
        Some(_) => format!("\"{about}\" was filed in a folder at Outlook, and is another document now"),
        None => format!("\"{about}\" was filed in a folder at Outlook; that is not known here yet"),
    };
    stage.say(&words, &format!("/mail/{}", first.id));
    Ok(())
}

/// A provider no longer knows the place up to which we have read.
async fn forgotten(stage: &Stage, post: &Post, mailbox: &str, round: usize) -> anyhow::Result<()> {
    let _held = post.held().await;
    stage.quiet(mailbox, PATIENCE).await?;
    let about = format!("Key of the yard, {round}");
    let text = "The second key hangs in the office, behind the calendar.";
    match mailbox {
        GMAIL => {
            stage.fakes.gmail().expire_history();
            stage.fakes.gmail().receive(&post::from(NORA), &about, text);
        }
        _ => {
            stage.fakes.outlook().expire_cursors();
            post.to_outlook(NORA, &about, text, None);
        }
    }
    let id = stage.sync(mailbox, None).await?;
    let job = stage.ended(id, PATIENCE).await?;
    stage.letter_when(mailbox, &about, PATIENCE, |_| true).await?;
    let (label, copies) = (stage.env.providers.label(mailbox), stage.letters(mailbox, &about).await?.len());
    let how = match job.kind {
        JobKind::Full => {
            format!("everything was compared, {} new and {} as they were", job.n_created, job.n_unchanged)
        }
        _ => "another sync has compared everything".to_owned(),
    };
    let words = format!(
        "{label} forgot up to where we had read: {how}; the letter that came in meanwhile is here {}",
        if copies == 1 { "once".to_owned() } else { format!("{copies} times") }
    );
    stage.say(&words, &stage.page(mailbox)?);
    Ok(())
}

async fn thrown_away(stage: &Stage, post: &Post, brought: Brought) -> anyhow::Result<()> {
    let _held = post.held().await;
    let mut before = 0;
    for mailbox in MAILBOXES {
        stage.quiet(mailbox, PATIENCE).await?;
        before += stage.held(mailbox, mailbox).await?;
    }
    stage.fakes.gmail().trash(&brought.gmail);
    stage.fakes.outlook().purge(&brought.outlook);
    for mailbox in MAILBOXES {
        let id = stage.sync(mailbox, None).await?;
        stage.ended(id, PATIENCE).await?;
    }
    let mut after = 0;
    for mailbox in MAILBOXES {
        stage.quiet(mailbox, PATIENCE).await?;
        after += stage.held(mailbox, mailbox).await?;
    }
    let words = format!(
        "A letter went into Gmail's bin, and one at Outlook was deleted for good: {} gone here, files included",
        plural(before - after, "document is", "documents are")
    );
    stage.say(&words, "/mail");
    Ok(())
}

async fn pause_briefly() {
    tokio::time::sleep(Duration::from_millis(200)).await;
}
