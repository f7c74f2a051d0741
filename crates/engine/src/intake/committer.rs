//! The committer: sessions that make waiting events durable, a group per transaction. None ever waits for a group to fill. Rows keep
//! their ids, so a group whose commit got no answer is inserted again before any sender is answered: the unique keys wait for the doubtful
//! transaction, and it stays one row.
//!
//! `delivery` puts events into the room and waits for the answer. `store::activities::insert_group` inserts them (`activity_insert.sql`).

use std::sync::Arc;
use std::time::Duration;

use store::activities::{self, Stored};
use store::crash::{self, Point};
use store::{Connection, Db};

use super::Counters;
use super::room::{Connected, Room, Waiting};

/// A group takes milliseconds. After this long its session is given up.
const GROUP_LIMIT: Duration = Duration::from_secs(5);
const CONNECT_LIMIT: Duration = Duration::from_secs(1);
/// Between tries while the database is away.
const PAUSE: Duration = Duration::from_millis(50);
/// Between tries to connect while another session of the committer is connected and takes what waits.
const SPARE_PAUSE: Duration = Duration::from_secs(1);

/// Commits groups until dropped.
pub(super) async fn run(db: Db, room: Arc<Room>, counters: Arc<Counters>) {
    let mut session = Session { db, room: room.clone(), open: None };
    loop {
        session.connect().await;
        let mut group = room.take().await;
        counters.group_rows.record(group.events.len() as f64);
        let settled = session.settle(&mut group.events).await;
        let events = std::mem::take(&mut group.events);
        match settled {
            Ok(stored) => answer(events, stored, &counters),
            Err(error) => {
                tracing::warn!(error = ?error, "a group of {} events was refused; each is tried alone", events.len());
                for waiting in events {
                    let mut alone = vec![waiting];
                    match session.settle(&mut alone).await {
                        Ok(stored) => answer(alone, stored, &counters),
                        Err(error) => {
                            let refused = alone.pop().map(|waiting| waiting.answer);
                            let _ = refused.map(|answer| answer.send(Err(error)));
                        }
                    }
                }
            }
        }
    }
}

fn answer(group: Vec<Waiting>, stored: Vec<Stored>, counters: &Counters) {
    for (waiting, stored) in group.into_iter().zip(stored) {
        counters.wait_seconds.record(waiting.since.elapsed().as_secs_f64());
        let _ = waiting.answer.send(Ok(stored)); // a sender that left meanwhile sends it again, and hears the same
    }
}

struct Session {
    db: Db,
    room: Arc<Room>,
    open: Option<Open>,
}

/// A connection to the database, which the room counts.
struct Open {
    conn: Connection,
    _counted: Connected,
}

impl Session {
    /// Connects before there is work. Where that fails while another session is connected, it tries on and leaves the work to that one: a
    /// server may have no session to spare. Where none is connected, the group that is taken next has to wait for the database.
    async fn connect(&mut self) {
        while self.open.is_none() && self.open().await.is_err() && self.room.has_connected() {
            tokio::time::sleep(SPARE_PAUSE).await;
        }
    }

    async fn open(&mut self) -> store::Result<&mut Connection> {
        let open = match self.open.take() {
            Some(open) => open,
            None => {
                let conn = store::within(CONNECT_LIMIT, self.db.acquire()).await?;
                Open { conn, _counted: self.room.connected() }
            }
        };
        Ok(&mut self.open.insert(open).conn)
    }

    /// Makes a group durable, trying again while a sender waits for it. Events that were given up are taken out. An error: the database
    /// refused one of these rows.
    async fn settle(&mut self, group: &mut Vec<Waiting>) -> store::Result<Vec<Stored>> {
        loop {
            match store::within(GROUP_LIMIT, self.insert(group)).await {
                Ok(stored) => return Ok(stored),
                Err(error) => {
                    if let Some(open) = self.open.take() {
                        open.conn.discard();
                    }
                    if !error.is_passing() {
                        return Err(error);
                    }
                    tracing::debug!(error = ?error, "a group of {} events is not stored yet", group.len());
                    tokio::time::sleep(PAUSE).await;
                    group.retain(|waiting| !waiting.is_given_up());
                    if group.is_empty() {
                        return Ok(Vec::new());
                    }
                }
            }
        }
    }

    async fn insert(&mut self, group: &[Waiting]) -> store::Result<Vec<Stored>> {
        let db = self.db.clone();
        let conn = self.open().await?;
        crash::at(Point::IntakeBeforeInsert)?;
        let mut tx = db.begin_on(conn).await?;
        let rows: Vec<&activities::Arrival> = group.iter().map(|waiting| &waiting.arrival).collect();
        let stored = activities::insert_group(&mut tx, &rows).await?;
        // An event was deleted between the insert and the lookup of duplicates: try again.
        let stored: Vec<Stored> = stored.into_iter().collect::<Option<_>>().ok_or(store::Error::TimedOut)?;
        crash::at(Point::IntakeBeforeCommit)?;
        tx.commit().await?;
        crash::at(Point::IntakeAfterCommit)?;
        Ok(stored)
    }
}
