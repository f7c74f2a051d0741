//! A tenant fixes the language of its texts: what was remembered before gets it, what comes later has it, and searches find the forms of a word in it.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use domain::{Caller, TenantId};
use engine::ActError;
use engine::memory::{languages, remember};
use store::memory::{Filters, Mode};

use crate::memory::{Memory, found};

async fn langs(memory: &Memory) -> Vec<String> {
    let sql = "select langs::text[] from memory.tenants where tenant_id = $1";
    let tenant_id = memory.world.tenant_id.0;
    let mut langs: Vec<String> =
        sqlx::query_scalar(sql).bind(tenant_id).fetch_one(&mut *memory.world.conn().await).await.expect("languages");
    langs.sort();
    langs
}

#[tokio::test]
async fn a_fixed_language_is_that_of_all_texts_and_a_detected_one_comes_back() {
    let memory = Memory::new().await;
    let (env, caller) = (&memory.world.env, Caller::local("test", memory.world.tenant_id, true));
    // Too short to tell a language, so they are English.
    let records = (0..30).map(|nth| memory.record(&format!("h{nth}"), &format!("Häuser mit Nummer {nth}"))).collect();
    memory.remember(records).await;
    let long = "Die Rechnung wurde am Montag verschickt, aber bisher hat sie niemand bezahlt, und wir warten noch auf Antwort.";
    memory.remember(vec![memory.record("bill", long)]).await;
    assert_eq!(langs(&memory).await, ["english", "german", "simple"]);
    assert_eq!(memory.search("Haus", Mode::Keyword).await, [] as [&str; 0]);

    languages::set(env, &caller, " German ").await.expect("set");
    languages::keep(env).await.expect("labelled");
    assert_eq!(memory.search("Haus", Mode::Keyword).await.len(), 10);
    assert_eq!(memory.search("Häuser Nummer 7", Mode::Keyword).await[0], "h7");
    assert_eq!(langs(&memory).await, ["german", "simple"], "no word is looked for in English any more");
    let not_german = "select count(*) from public.document_chunks where lang <> 'german'::regconfig";
    assert_eq!(memory.number(not_german).await, 0);
    assert_eq!(memory.number("select count(*) from memory.tenants where relabel_after is not null").await, 0);
    let numbers = "select sum(n)::int8 from public.document_chunks";
    memory
        .remember(vec![memory.record("new", "The houses of the harbour are empty and nobody knows why that is so.")])
        .await;
    assert_eq!(memory.number(not_german).await, 0, "a language that is fixed is not detected");
    let before = memory.number(numbers).await;
    languages::set(env, &caller, "german").await.expect("set again");
    languages::keep(env).await.expect("nothing to do");
    assert_eq!(memory.number(numbers).await, before, "what has its language is left alone");

    languages::set(env, &caller, "auto").await.expect("set");
    languages::keep(env).await.expect("labelled");
    assert_eq!(memory.search("Haus", Mode::Keyword).await, [] as [&str; 0]);
    assert_eq!(memory.search("house", Mode::Keyword).await, ["new"], "its language was detected");
    assert_eq!(langs(&memory).await, ["english", "german", "simple"]);

    let unknown = languages::set(env, &caller, "klingon").await;
    assert!(matches!(&unknown, Err(ActError::Invalid(why)) if why.contains("german")), "{unknown:?}");
}

#[tokio::test]
async fn a_language_can_be_fixed_before_anything_is_remembered_and_for_one_tenant_alone() {
    let memory = Memory::new().await;
    let (env, caller) = (&memory.world.env, Caller::local("test", memory.world.tenant_id, true));
    let other = TenantId(memory.world.other_tenant("somebody else").await.0);
    languages::set(env, &Caller::local("test", other, false), "french").await.expect("set");
    languages::set(env, &caller, "german").await.expect("set");
    memory.remember(vec![memory.record("h", "Häuser")]).await;
    assert_eq!(memory.search("Haus", Mode::Keyword).await, ["h"]);
    languages::keep(env).await.expect("labelled");
    assert_eq!(found(&memory.world, &caller, "Haus", Mode::Keyword, Filters::default()).await, ["h"], "S17");
}

#[tokio::test]
async fn what_is_written_while_the_language_is_set_has_it() {
    let memory = Memory::new().await;
    let (env, caller) = (&memory.world.env, Caller::local("test", memory.world.tenant_id, true));
    memory.remember(vec![memory.record("first", "Häuser")]).await;
    let is_set = AtomicBool::new(false);
    // The batch is planned in English; before its transaction opens, German is set and given to everything that is there.
    let begin = || async {
        if !is_set.swap(true, Relaxed) {
            languages::set(env, &caller, "german").await.expect("set");
            languages::keep(env).await.expect("labelled");
        }
        Ok(env.db.begin().await?)
    };
    let records = vec![memory.record("second", "Häuser am Hafen")];
    let (tx, _) = Box::pin(remember(env, memory.world.tenant_id, records, begin)).await.expect("remembered");
    tx.commit().await.expect("committed");
    let mut names = memory.search("Haus", Mode::Keyword).await;
    names.sort();
    assert_eq!(names, ["first", "second"]);
}
