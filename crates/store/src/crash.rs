//! Named crash points: places where a test makes this process die, stop or fail, to see that nothing is lost or doubled.
//!
//! `TRIBUTARY_CRASH=<point>:<action>[:<n>]` acts on the n-th time (default the first) the point is reached; actions are
//! `abort` (as kill -9: no unwinding, no goodbye), `stop` (SIGSTOP to itself) and `error`. Without the variable a point
//! costs one load of a static.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::Error;

macro_rules! points {
    ($($(#[$doc:meta])* $variant:ident = $name:literal),* $(,)?) => {
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Point { $($(#[$doc])* $variant),* }

        impl Point {
            pub const ALL: &'static [Self] = &[$(Self::$variant),*];

            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $name),* }
            }
        }
    };
}

points! {
    /// Messages are claimed; nothing has run.
    ClaimAfter = "claim.after",
    /// The effect's transaction is open; the fence has not been asked.
    EffectBegun = "effect.begun",
    /// The message is deleted in the open transaction; nothing else is written.
    EffectFenced = "effect.fenced",
    /// Effect and deletion are written; nothing is committed.
    EffectBeforeCommit = "effect.before_commit",
    /// Effect and deletion are committed; the lane does not know yet.
    EffectAfterCommit = "effect.after_commit",
    /// The lane has returned; its outcome is not recorded.
    SettleBefore = "settle.before",
    /// The outcome is recorded.
    SettleAfter = "settle.after",
    /// A failed attempt is about to be written down.
    FailBefore = "fail.before",
    /// A dead letter is written; the runtime does not know yet.
    BuryAfter = "bury.after",
    /// An item is parked; the runtime does not know yet.
    ParkAfter = "park.after",
    /// Parked items are sent again, nothing committed.
    UnparkBeforeCommit = "unpark.before_commit",
    /// The heartbeat is about to extend the leases.
    ExtendBefore = "extend.before",
    /// A schedule's row is moved and its message sent, nothing committed.
    ScheduleBeforeCommit = "schedule.before_commit",
    /// A schedule has fired.
    ScheduleAfterCommit = "schedule.after_commit",
    /// Told to stop; work in hand is not handed back yet.
    DrainBegun = "drain.begun",
    /// A batch is compared, cut and embedded; no transaction is open.
    RememberPrepared = "remember.prepared",
    /// A batch is written into memory; the caller has added nothing and committed nothing.
    RememberWritten = "remember.written",
    /// A segment of postings is written, and what it replaces is removed; nothing is committed.
    PostingsBeforeCommit = "postings.before_commit",
    /// A segment of codes is written, and what it replaces is removed; nothing is committed.
    CodesBeforeCommit = "codes.before_commit",
    /// A bite of chunks has vectors of the model that its memory moves to; nothing is written.
    ReembedMade = "reembed.made",
    /// A bite is written with the place that the move has reached; nothing is committed.
    ReembedBeforeCommit = "reembed.before_commit",
    /// A bite is committed; the next one has not begun.
    ReembedAfterCommit = "reembed.after_commit",
    /// Every chunk has its vector and writers are kept away; searches have not switched.
    ReembedBeforeSwitch = "reembed.before_switch",
    /// Searches use the new model; the old vectors are there.
    ReembedSwitched = "reembed.switched",
    /// Some documents have their new label, or some vectors of the other model are gone; nothing is committed.
    ReembedTidied = "reembed.tidied",
    /// The built-in agent holds activities; nothing is processed.
    AgentClaimed = "agent.claimed",
    /// Results are written, nothing is committed.
    AgentBeforeCommit = "agent.before_commit",
    /// The files of an activity are documents beside the activity's own; nothing is committed.
    ActivityFilesWritten = "activity.files_written",
    /// A blob is named in the database; its bytes are not written.
    BlobRowWritten = "blob.row_written",
    /// A blob's bytes are written and synced; nothing refers to it yet.
    BlobBytesWritten = "blob.bytes_written",
    /// A group of events is taken from the waiting room; nothing is written.
    IntakeBeforeInsert = "intake.before_insert",
    /// A group of events is written; nothing is committed.
    IntakeBeforeCommit = "intake.before_commit",
    /// A group of events is committed; none of its senders has an answer.
    IntakeAfterCommit = "intake.after_commit",
    /// An event is durable and its sender is about to hear so.
    IntakeBeforeAnswer = "intake.before_answer",
    /// A page of a source is fetched; nothing is written.
    PullFetched = "pull.fetched",
    /// A page is written with its place; nothing is committed.
    PullBeforeCommit = "pull.before_commit",
    /// A page is committed; the next is not asked for.
    PullAfterCommit = "pull.after_commit",
    /// A page's files are in the blob store; nothing refers to them.
    MailFilesKept = "mail.files_kept",
    /// A page's letters are in memory; nothing says that they are dealt with, and nothing is committed.
    MailRemembered = "mail.remembered",
    /// A job's end is written, and with it the job that runs after it; nothing is committed.
    PullEnded = "pull.ended",
    /// A day of a mailbox is counted at its provider; nothing is compared.
    CheckCounted = "check.counted",
    /// The result of a day's comparison is written, and the sync that is to settle it; nothing is committed.
    CheckBeforeCommit = "check.before_commit",
    /// A day is committed; the next one has not begun.
    CheckAfterCommit = "check.after_commit",
    /// Notices of mailboxes are written, and the jobs that read it; nothing is committed.
    MailHeard = "mail.heard",
    /// Notices of mailboxes are committed; their provider has no answer.
    MailBeforeAnswer = "mail.before_answer",
    /// Jobs of mailboxes that waited are written; nothing is committed.
    MailStarted = "mail.started",
    /// The row of a mailbox's notices is claimed by the sync that reads it; nothing is committed.
    MailClaimed = "mail.claimed",
    /// The row of a mailbox's notices is gone with its sync's end, or has led to another sync; nothing is committed.
    MailRead = "mail.read",
    /// The secret of a subscription is stored; its provider has not been asked for it.
    MailSubscribing = "mail.subscribing",
    /// The provider has made or renewed a subscription; nothing is stored.
    MailSubscribed = "mail.subscribed",
    /// A subscription is written, and the sync that follows it; nothing is committed.
    MailSubscriptionWritten = "mail.subscription_written",
    /// The provider has removed a subscription; its source is still connected.
    MailUnsubscribed = "mail.unsubscribed",
    /// A file is about to be read; none of its pages is kept.
    FileOpened = "file.opened",
    /// Some pages of a file are written; nothing is committed.
    FilePagesWritten = "file.pages_written",
    /// Some pages of a file are kept; the next are not read.
    FilePagesKept = "file.pages_kept",
    /// All pages of a file are kept; its document does not have them.
    FileRead = "file.read",
    /// A document has the text of its file and its fields; nothing is committed.
    FileFinished = "file.finished",
    /// The right to refresh a token is ours; the provider has not been asked.
    TokenLeased = "token.leased",
    /// A new pair of tokens is in hand; nothing is stored.
    TokenReplied = "token.replied",
    /// A new pair is in the vault; the source still points to the old one.
    TokenInVault = "token.in_vault",
    /// Clients' facts are written; nothing is committed.
    ClientsBeforeCommit = "clients.before_commit",
    /// Records of clients are matched; nothing is committed.
    ClientsMatched = "clients.matched",
    /// A part of what is forgotten is gone; nothing is committed.
    ForgetBeforeCommit = "forget.before_commit",
    /// The objects of a forgotten tenant are removed; its rows are not, or what is left is the record of it.
    ForgetObjects = "forget.objects",
    /// The forgotten thing itself is gone; nothing is committed.
    ForgetLast = "forget.last",
    /// A new master key is in the file before the old one; nothing is sealed with it.
    RotateKeyWritten = "rotate.key_written",
    /// Some secrets are sealed with the new master key; nothing is committed.
    RotateBeforeCommit = "rotate.before_commit",
    /// Every secret is sealed with the new master key; the old one is still in the file.
    RotateResealed = "rotate.resealed",
    /// A migration has run, nothing is committed.
    MigrateBeforeCommit = "migrate.before_commit",
    /// Functions are replaced, nothing is committed.
    MigrateFunctions = "migrate.functions",
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Action {
    Abort,
    Stop,
    Error,
}

struct Armed {
    point: Point,
    action: Action,
    /// The number of times that the point is still passed unharmed.
    spare: AtomicU32,
}

static ARMED: OnceLock<Option<Armed>> = OnceLock::new();

/// Reads `TRIBUTARY_CRASH`; a value nobody can mean is an error at start, not a test that passes for nothing.
pub fn arm(setting: Option<&str>) -> Result<(), String> {
    let armed = setting.filter(|text| !text.is_empty()).map(parse).transpose()?;
    if let Some(armed) = &armed {
        tracing::warn!(point = armed.point.name(), action = ?armed.action, "a crash point is armed in this process");
    }
    let _ = ARMED.set(armed);
    Ok(())
}

/// Called at the named step. An error only where the test asked for one.
pub fn at(point: Point) -> Result<(), Error> {
    let Some(Some(armed)) = ARMED.get() else { return Ok(()) };
    if armed.point != point {
        return Ok(());
    }
    let spared = armed.spare.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1));
    match spared {
        Ok(1) => {}                      // this is the n-th time
        Ok(_) | Err(_) => return Ok(()), // too early, or it has acted already
    }
    match armed.action {
        Action::Abort => {
            // SIGKILL to ourselves: what a test of kill -9 means, without a core file and without unwinding.
            let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
            std::process::abort()
        }
        Action::Stop => {
            let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::STOP);
            // The signal takes a moment to reach every thread. This one must not go on to the next step meanwhile.
            std::thread::sleep(std::time::Duration::from_millis(100));
            Ok(())
        }
        Action::Error => Err(Error::CrashPoint(point.name())),
    }
}

fn parse(text: &str) -> Result<Armed, String> {
    let wrong = || {
        format!(
            "TRIBUTARY_CRASH={text:?} is not <point>:<abort|stop|error>[:<n>]; `tributary crash-points` lists the points"
        )
    };
    let mut parts = text.split(':');
    let name = parts.next().ok_or_else(wrong)?;
    let point = Point::ALL.iter().copied().find(|point| point.name() == name).ok_or_else(wrong)?;
    let action = match parts.next() {
        Some("abort") => Action::Abort,
        Some("stop") => Action::Stop,
        Some("error") => Action::Error,
        _ => return Err(wrong()),
    };
    let nth: u32 = parts.next().map_or(Ok(1), |n| n.parse().map_err(|_| wrong()))?;
    if nth == 0 || parts.next().is_some() {
        return Err(wrong());
    }
    Ok(Armed { point, action, spare: AtomicU32::new(nth) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_nobody_can_mean_are_refused() {
        assert!(parse("claim.after:abort").is_ok());
        assert_eq!(parse("settle.before:error:3").map(|armed| armed.spare.into_inner()), Ok(3));
        for nonsense in
            ["claim", "claim.after", "claim.after:explode", "claim.after:abort:0", "claim.after:abort:1:2", "x:abort"]
        {
            assert!(parse(nonsense).is_err(), "{nonsense:?} was accepted");
        }
    }
}
