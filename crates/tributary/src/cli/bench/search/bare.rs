//! The plain way to the same: one statement over a plain table with an index for vectors and one for words, without HTTP, tenants or rights.

use std::sync::Arc;
use std::time::{Duration, Instant};

use domain::TenantId;
use engine::Env;
use engine::bench::Case;
use tokio::task::JoinSet;

use super::ask::Times;
use super::{ASKING, Question, exact};

/// Copies a tenant's chunks to a plain table, and asks every question there by one statement.
pub(super) async fn measure(env: &Env, tenant_id: TenantId, questions: &Arc<[Question]>) -> anyhow::Result<Times> {
    eprintln!("measuring a bare statement over the same chunks");
    let dim = env.embedders.configured().model().dim;
    let mut owner = store::bench::owner(&env.db).await?;
    store::bench::make_bare(&mut owner, tenant_id, &exact::table(env)?, dim).await?;
    let times = ask(env, questions).await?;
    store::bench::drop_bare(&mut owner).await?;
    Ok(Times::of(times))
}

/// Every question once, by two callers with a session each. Each of them asks everything before, to warm up.
async fn ask(env: &Env, questions: &Arc<[Question]>) -> anyhow::Result<Vec<Duration>> {
    let mut tasks = JoinSet::new();
    for first in 0..ASKING {
        let (mut session, questions) = (store::bench::bare_session(&env.db).await?, questions.clone());
        tasks.spawn(async move {
            let mut times = Vec::new();
            for is_timed in [false, true] {
                for question in questions.iter().skip(first).step_by(ASKING) {
                    let asked = Instant::now();
                    store::bench::bare_search(&mut session, &question.text, &question.vector).await?;
                    times.extend(is_timed.then(|| asked.elapsed()));
                }
            }
            anyhow::Ok(times)
        });
    }
    let mut times = Vec::new();
    while let Some(done) = tasks.join_next().await {
        times.extend(done??);
    }
    Ok(times)
}

/// The bare statement beside our hybrid searches of the same chunks.
pub(super) fn case(ours: &Case, bare: &Times) -> Case {
    Case {
        case: "bare pgvector and GIN in one statement, one tenant with all of it".into(),
        ours: ours.p50_ms,
        limit: bare.p50(),
        ratio: ours.p50_ms / bare.p50(),
        unit: "ms (p50)",
        p50_ms: bare.p50(),
        p99_ms: bare.p99(),
        note: "times are the bare statement's, its vector given; ours is a hybrid search over HTTP; a ratio of 1 is as fast".into(),
    }
}
