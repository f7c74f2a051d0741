//! A database that was restored: whatever was given out before the restore must not count here.
//!
//! Receipts, claims, versions of tokens and segments of search are numbers that only grow. After the restore they would be given out again, and a process that still holds one
//! from before the restore could write with it. So all of them are put far beyond: further than the lost time can have brought them, and by the clock, so
//! that the same backup can be restored several times.

use sqlx::{AssertSqlSafe, Connection as _};

use crate::migrate::quote;
use crate::{ConnectTo, Result};

/// Further than any queue gets within the time that is lost.
const AHEAD: i64 = 1_000_000_000;
/// The same for claims of one activity and tokens of one source.
const AHEAD_OF_ONE: i32 = 10_000;
/// 2020-01-01, from which the numbers of claims count seconds: they have 32 bits.
const SINCE: i64 = 1_577_836_800;
/// The clock as a number of 64 bits. Nothing is given out more often than once a microsecond.
const MICROSECONDS: &str = "(extract(epoch from now()) * 1000000)::bigint";

/// Opens a session with the administrator's rights, and puts the numbers of these lanes' messages, of claims and of tokens beyond those that were given
/// out. Queues of other programs in the same database stay as they are.
pub async fn renew(admin: &ConnectTo, lanes: &[&str]) -> Result<()> {
    let mut sql = String::from("begin;");
    for lane in lanes {
        let queue = format!("pgmq.{}", quote(&format!("q_{lane}")));
        let name = queue.replace('\'', "''");
        // Every message gets a new number, so no receipt of before fits one.
        sql += &format!(
            "select setval(s.name::regclass, greatest(nextval(s.name::regclass) + {AHEAD}, {MICROSECONDS}))
             from pg_get_serial_sequence('{name}', 'msg_id') s (name);
             update {queue} set msg_id = default;"
        );
    }
    // A process that outlives the restore may hold segments of search with these numbers.
    for table in ["memory.codes", "memory.segments"] {
        sql += &format!(
            "select setval(s.name::regclass, greatest(nextval(s.name::regclass) + {AHEAD}, {MICROSECONDS}))
             from pg_get_serial_sequence('{table}', 'id') s (name);"
        );
    }
    sql += &format!(
        "set local role tributary_owner;
         update public.activities
         set lock_epoch = greatest(lock_epoch + {AHEAD_OF_ONE}, (extract(epoch from now()) - {SINCE})::int)
         where processing_status <> 'completed';
         delete from tributary.retired_keys; -- the key that is in front now seals, whatever was rotated before
         update public.connected_sources set token_version = greatest(token_version + {AHEAD_OF_ONE}, {MICROSECONDS});
         commit"
    );
    let mut conn = admin.connect("tributary restore").await?;
    sqlx::raw_sql(AssertSqlSafe(sql)).execute(&mut conn).await?;
    Ok(conn.close().await?)
}
