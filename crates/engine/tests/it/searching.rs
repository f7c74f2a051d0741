//! The answer of a search beyond the order of its hits: that nothing fits, copies, exact parts, filters, facets and pages.

use std::collections::HashSet;

use chrono::{DateTime, TimeDelta, Utc};
use domain::papers::PaperKind;
use domain::{Caller, DocumentType, Record, Scope, TenantId};
use engine::ActError;
use engine::memory::recall::{self, Query, SearchAnswer};
use engine::searches::{self, Asked};
use store::memory::{Filters, Mode, PaperFilters, Sort};
use uuid::Uuid;

use crate::memory::Memory;

async fn ask(memory: &Memory, query: &Query) -> SearchAnswer {
    let caller = Caller::local("test", memory.world.tenant_id, true);
    Box::pin(recall::search(&memory.world.env, &caller, query)).await.expect("an answer")
}

fn query(text: &str) -> Query {
    Query { text: text.into(), k: 10, ..Query::default() }
}

fn names(answer: &SearchAnswer) -> Vec<&str> {
    answer.hits.iter().map(|hit| hit.external_id.as_str()).collect()
}

fn day(day: i64) -> DateTime<Utc> {
    DateTime::UNIX_EPOCH + TimeDelta::days(20_000 + day)
}

#[tokio::test]
async fn nonsense_fits_nothing_and_the_closest_are_told_apart() {
    let memory = Memory::new().await;
    memory
        .remember(vec![
            memory.record("lease", "The lease of the Lisbon office ends in June; notice is due in March."),
            memory.record("parcel", "The parcel arrived broken and the customer wants her money back. INV-2041."),
            memory.record("heating", "The heating of the office is serviced every October by the landlord."),
        ])
        .await;
    for mode in [Mode::Hybrid, Mode::Keyword] {
        let answer = ask(&memory, &Query { mode, ..query("when does the Lisbon lease end") }).await;
        assert_eq!((names(&answer)[0], answer.is_nothing_fitting, answer.closest.len()), ("lease", false, 0), "{mode}");
        let answer = ask(&memory, &Query { mode, ..query("zebra migration across the Serengeti customer") }).await;
        assert!(answer.is_nothing_fitting && answer.hits.is_empty(), "{mode}: {:?}", names(&answer));
        assert_eq!(answer.next, None);
    }
    let closest = ask(&memory, &query("zebra migration across the Serengeti")).await.closest;
    assert!(!closest.is_empty() && closest.iter().all(|hit| !hit.why.is_empty()), "the closest are there");
    let exact = ask(&memory, &query("zebra serengeti giraffe elephant INV-2041")).await;
    assert_eq!(names(&exact)[0], "parcel", "a number that is found always fits");
    let quoted = ask(&memory, &query("\"money is back\"")).await;
    assert!(quoted.is_nothing_fitting && !quoted.closest.is_empty(), "a quotation that is nowhere fits nothing");
    let elsewhere = Filters { r#type: Some("file".into()), ..Filters::default() };
    let nowhere = ask(&memory, &Query { filters: elsewhere, ..query("Lisbon lease") }).await;
    assert!(nowhere.is_nothing_fitting && nowhere.closest.is_empty());
}

#[tokio::test]
async fn the_same_text_is_one_hit_and_the_page_is_full_all_the_same() {
    let memory = Memory::new().await;
    let reminder = "Reminder: the copper delivery of this month is late again, please call the harbour office at once.";
    let mut records: Vec<Record> = (0..30)
        .map(|nth| Record {
            source_created_at: Some(day(nth)),
            ..memory.record(
                &format!("copy{nth}"),
                &if nth % 2 == 0 { reminder.to_owned() } else { reminder.to_uppercase() },
            )
        })
        .collect();
    for nth in 0..12 {
        let text =
            format!("Delivery number {nth} of copper to customer {} was late by {nth} days and {nth} hours.", nth * 7);
        records.push(memory.record(&format!("other{nth}"), &text));
    }
    memory.remember(records).await;
    let answer = ask(&memory, &query("the copper delivery of this month is late again")).await;
    assert_eq!(answer.hits.len(), 10, "{:?}", names(&answer));
    let copied: Vec<_> = answer.hits.iter().filter(|hit| hit.external_id.starts_with("copy")).collect();
    assert_eq!(copied.len(), 1, "{:?}", names(&answer));
    assert_eq!((copied[0].external_id.as_str(), copied[0].others.len()), ("copy29", 29), "the newest stands for all");
    assert!(copied[0].others.is_sorted_by(|a, b| a.at >= b.at));
}

#[tokio::test]
async fn a_later_page_has_no_copies_of_what_an_earlier_one_has_shown() {
    let memory = Memory::new().await;
    let reminder = "Reminder: the copper delivery of this month is late again, please call the harbour office at once.";
    let copies = (0..60).map(|nth| memory.record(&format!("copy{nth}"), reminder));
    let other =
        |nth: i64| format!("The copper delivery {nth} to customer {} is late by {nth} days, says {nth}.", nth * 7);
    let others = (0..20).map(|nth| memory.record(&format!("other{nth}"), &other(nth)));
    memory.remember(copies.chain(others).collect()).await;
    for sort in [Sort::Relevance, Sort::Date] {
        let asked = Query { mode: Mode::Keyword, sort, ..query("copper delivery late") };
        let (mut shown, mut cursor, mut n_pages) = (Vec::new(), None, 0);
        loop {
            let answer = ask(&memory, &Query { cursor, ..asked.clone() }).await;
            shown.extend(answer.hits.iter().map(|hit| hit.external_id.clone()));
            (cursor, n_pages) = (answer.next, n_pages + 1);
            assert!(n_pages < 10, "it ends");
            if cursor.is_none() {
                break;
            }
        }
        let n_copied = shown.iter().filter(|name| name.starts_with("copy")).count();
        assert_eq!((n_copied, shown.len()), (1, 21), "{sort}: {shown:?}");
    }
}

#[tokio::test]
async fn exact_parts_go_first_and_among_equals_the_newer() {
    let memory = Memory::of(testkit::World::now().await).await;
    let now = memory.world.env.clock.now();
    let at = |days: i64| Some(now - TimeDelta::days(days));
    let made = |name: &str, text: &str, days| Record { source_created_at: at(days), ..memory.record(name, text) };
    memory
        .remember(vec![
            made("lot", "Invoice, invoice, invoice: pay the invoice of the month, the invoice is due.", 1),
            made("meant", "Somewhere at the end of a long letter about other things inv 2041 is mentioned once.", 400),
            made("phone", "Ask for Rui, telephone 020 7946 0018, after nine.", 3),
            made("mail", "The address of the office is ann.b@acme.example now.", 3),
            made("old", "The ferry to the island leaves at noon from pier four.", 700),
            made("new", "The ferry to the island leaves at noon from pier five.", 1),
            made("clear", "Late delivery of the copper.", 900),
            made("vague", "A late bus, and some delivery of other things, of which copper is one, in a long list.", 0),
        ])
        .await;
    for (question, first) in [
        ("invoice INV-2041", "meant"),
        ("+44 20 7946-0018", "phone"),
        ("ann.b@acme.example", "mail"),
        ("ferry to the island at noon", "new"),
        ("late delivery of the copper", "clear"),
    ] {
        let answer = ask(&memory, &query(question)).await;
        assert_eq!(names(&answer)[0], first, "{question}: {:?}", names(&answer));
    }
    assert_eq!(names(&ask(&memory, &query("\"leaves at noon\" pier four")).await), ["old", "new"]);
    assert_eq!(names(&ask(&memory, &query("\"copper is one\" late delivery")).await), ["vague"]);
    let why = ask(&memory, &query("invoice INV-2041")).await.hits[0].why.clone();
    assert!(why.contains("“INV-2041”"), "{why}");
}

#[tokio::test]
async fn a_quoted_phrase_is_found_behind_many_texts_that_have_its_words() {
    let memory = Memory::new().await;
    // All of them are better by BM25 than a long text that has the phrase once.
    let mut records: Vec<Record> = (0..1_300)
        .map(|nth| memory.record(&format!("w{nth}"), &format!("Delivery late: key, spare. Delivery late, {nth}.")))
        .collect();
    let filler = "Other matters of the month, told at length, which nobody will ever look for. ".repeat(9);
    records.push(memory.record("meant", &format!("{filler} It was a late delivery. {filler}")));
    let (one, other) = ("It was a tardy delivery.", "He has the backup key.");
    let gap = "Other matters of the month, told at length, which nobody will ever look for.\n\n".repeat(60);
    records.push(memory.record("apart", &format!("{one}\n\n{gap}{other}")));
    for some in records.chunks(200) {
        memory.remember(some.to_vec()).await;
    }
    let ask = async |text: &str| ask(&memory, &Query { mode: Mode::Keyword, ..query(text) }).await;
    let answer = ask("\"late delivery\"").await;
    assert_eq!((names(&answer), &answer.note), (vec!["meant"], &None));
    assert_eq!(names(&ask("\"late delivery\" spare key").await), ["meant"], "other words may be there or not");
    assert_eq!(names(&ask("\"tardy delivery\" \"backup key\"").await), ["apart"], "in two chunks of one document");
    assert!(memory.number("select max(n_chunks)::int8 from public.source_documents").await > 1, "it has two chunks");
    let nowhere = ask("\"key delivery\"").await;
    assert!(nowhere.is_nothing_fitting && nowhere.note.is_none(), "{:?}", names(&nowhere));
}

#[tokio::test]
async fn of_a_pasted_text_the_rarest_words_are_looked_for() {
    let memory = Memory::new().await;
    let common: Vec<String> = (0..40).map(|nth| format!("aword{nth}")).collect();
    let common = common.join(" ");
    let mut records: Vec<Record> =
        (0..20).map(|nth| memory.record(&format!("c{nth}"), &format!("{common} {nth}"))).collect();
    records.push(memory.record("meant", "The zirconium is in the cellar, and so on."));
    memory.remember(records).await;
    engine::memory::postings::keep(&memory.world.env, 1).await.expect("postings");
    let stop_words = "a about above after again all am an and any are as at be because been before being below both but by can did do";
    let text = format!("{stop_words} {common} zirconium");
    let answer = ask(&memory, &Query { mode: Mode::Keyword, k: 30, ..query(&text) }).await;
    assert!(names(&answer).contains(&"meant"), "{:?}", names(&answer));
    let few = ask(&memory, &Query { mode: Mode::Keyword, ..query(&format!("{stop_words} zirconium")) }).await;
    assert_eq!(names(&few), ["meant"], "stop words take no room");
}

/// Documents of several types and times, all with the word "harbour".
async fn harbour(memory: &Memory, n: i64) {
    let words =
        ["river", "ledger", "copper", "window", "engine", "letter", "market", "winter", "garden", "bridge", "lantern"];
    let records = (0..n).map(|nth| {
        let word = |k: i64| words[usize::try_from((nth * 7 + k * k * 3 + nth / 11) % 11).expect("an index")];
        let said: Vec<String> = (0..6 + nth % 9).map(|k| format!("{}{}", word(k), nth * 13 + k)).collect();
        Record {
            document_type: if nth % 3 == 0 { DocumentType::File } else { DocumentType::Note },
            source_created_at: Some(day(nth)),
            ..memory.record(&format!("h{nth}"), &format!("The harbour: {}.", said.join(" ")))
        }
    });
    memory.remember(records.collect()).await;
}

#[tokio::test]
async fn facets_are_what_a_count_by_hand_gives_and_filters_leave_that_many() {
    let memory = Memory::new().await;
    harbour(&memory, 90).await;
    memory.remember(vec![memory.record("apart", "Nothing of the kind is said in this one.")]).await;
    let asked = Query { mode: Mode::Keyword, with_facets: true, k: 100, ..query("harbour") };
    let answer = ask(&memory, &asked).await;
    let facets = answer.facets.as_ref().expect("facets");
    assert_eq!((answer.hits.len(), facets.n_matches, facets.is_at_least), (90, 90, false));
    let types: Vec<(&str, usize)> = facets.types.iter().map(|facet| (facet.value.as_str(), facet.n)).collect();
    assert_eq!(types, [("note", 60), ("file", 30)]);
    assert_eq!((facets.sources.len(), facets.sources[0].n, facets.channels.len()), (1, 90, 0));
    assert_eq!(facets.times.iter().map(|period| period.n).sum::<usize>(), 90);
    for period in &facets.times {
        let since = period.since.and_time(chrono::NaiveTime::MIN).and_utc();
        let until = period.until.succ_opt().expect("a day").and_time(chrono::NaiveTime::MIN).and_utc();
        let by_hand = (0..90).filter(|nth| (since..until).contains(&day(*nth))).count();
        let filters = Filters { since: Some(since), until: Some(until), ..Filters::default() };
        let left = ask(&memory, &Query { filters, ..asked.clone() }).await;
        assert_eq!((period.n, left.hits.len()), (by_hand, by_hand), "{}", period.name);
    }
    let by_date = ask(&memory, &Query { sort: Sort::Date, k: 5, ..asked.clone() }).await;
    assert_eq!(names(&by_date), ["h89", "h88", "h87", "h86", "h85"]);
    let many = Memory::new().await;
    harbour(&many, 260).await;
    let facets = ask(&many, &asked).await.facets.expect("facets");
    assert!(facets.is_at_least && facets.n_matches < 260, "more match than were counted: {facets:?}");
}

#[tokio::test]
async fn filters_by_contact_client_person_channel_and_paper_leave_what_is_theirs() {
    let memory = Memory::new().await;
    let tenant_id = memory.world.tenant_id;
    harbour(&memory, 6).await;
    let mut conn = memory.world.conn().await;
    let sql = "
        insert into sales (id, tenant_id, email) values (71, $1, 'ann@office.test'), (72, $1, 'bob@office.test');
        insert into contacts (id, tenant_id, email, sales_id) values (81, $1, 'x@y.test', 71), (82, $1, 'z@y.test', 72);
        update source_documents set contact_id = 81 where external_id in ('h0', 'h1');
        update source_documents set contact_id = 82 where external_id = 'h2';
        insert into client_intelligence (id, tenant_id, source_id, external_id, client_name)
            select '0190c7de-aaaa-7bbb-8ccc-000000000001', $1, source_id, 'h3', 'Mill' from source_documents where external_id = 'h3';
        insert into document_mentions (tenant_id, source_id, external_id, mentions)
            select $1, source_id, 'h4', 'h3' from source_documents where external_id = 'h3';
        insert into connected_sources (id, tenant_id, provider, name) values ('0190c7de-aaaa-7bbb-8ccc-000000000002', $1, 'channel', 'shop');
        update source_documents set source_id = '0190c7de-aaaa-7bbb-8ccc-000000000002' where external_id = 'h5';
        insert into document_fields (tenant_id, document_id, name, value, amount, on_date, state)
            select $1, d.id, v.name, v.value, v.amount, v.on_date::date, 'read' from (values
                ('h0', 'paper', 'invoice', null::numeric, null), ('h0', 'supplier', 'Larkfield Ltd.', null, null),
                ('h0', 'total', '805.00 EUR', 805.00, null), ('h0', 'issued_on', '2026-02-28', null, '2026-02-28'),
                ('h1', 'paper', 'invoice', null, null), ('h1', 'supplier', 'Mill & Co', null, null),
                ('h1', 'total', '12.50 EUR', 12.50, null), ('h1', 'issued_on', '2026-03-01', null, '2026-03-01'),
                ('h2', 'paper', 'contract', null, null), ('h2', 'amount', '9000.00', 9000, null),
                ('h2', 'starts_on', '2026-05-01', null, '2026-05-01')) v (external_id, name, value, amount, on_date)
            join source_documents d on d.external_id = v.external_id and d.tenant_id = $1";
    for statement in sql.split(';').filter(|statement| !statement.trim().is_empty()) {
        let statement = statement.replace("$1", &format!("'{tenant_id}'"));
        sqlx::raw_sql(sqlx::AssertSqlSafe(statement)).execute(&mut *conn).await.expect("written");
    }
    let (client, channel): (Uuid, Uuid) = (
        "0190c7de-aaaa-7bbb-8ccc-000000000001".parse().expect("an id"),
        "0190c7de-aaaa-7bbb-8ccc-000000000002".parse().expect("an id"),
    );
    let other = memory.world.other_tenant("somebody else").await;
    let (stranger, _) = memory.world.caller(other, &[Scope::Service]).await;
    let paper = |set: fn(&mut PaperFilters)| {
        let mut filters = Filters::default();
        set(&mut filters.says);
        filters
    };
    for (what, filters, expected) in [
        ("contact", Filters { contact: Some(81), ..Filters::default() }, &["h0", "h1"][..]),
        ("person", Filters { person: Some(71), ..Filters::default() }, &["h0", "h1"]),
        ("another person", Filters { person: Some(72), ..Filters::default() }, &["h2"]),
        ("client", Filters { client: Some(client), ..Filters::default() }, &["h3", "h4"]),
        ("channel", Filters { channel: Some(channel), ..Filters::default() }, &["h5"]),
        ("a client and a person", Filters { client: Some(client), person: Some(71), ..Filters::default() }, &[]),
        ("paper", paper(|says| says.paper = Some(PaperKind::Invoice)), &["h0", "h1"]),
        ("supplier", paper(|says| says.supplier = Some("LARKFIELD".into())), &["h0"]),
        ("a supplier with signs", paper(|says| says.supplier = Some("%'_".into())), &[]),
        ("total from", paper(|says| says.amount_min = "500".parse().ok()), &["h0", "h2"]),
        ("total to", paper(|says| says.amount_max = "805.00".parse().ok()), &["h0", "h1"]),
        (
            "totals between",
            paper(|says| (says.amount_min, says.amount_max) = ("80".parse().ok(), "805".parse().ok())),
            &["h0"],
        ),
        ("issued since", paper(|says| says.paper_since = "2026-03-01".parse().ok()), &["h1", "h2"]),
        ("issued until", paper(|says| says.paper_until = "2026-03-01".parse().ok()), &["h0", "h1"]),
        (
            "an invoice over a sum",
            paper(|says| (says.paper, says.amount_min) = (Some(PaperKind::Invoice), "900".parse().ok())),
            &[],
        ),
        ("no such client", Filters { client: Some(channel), ..Filters::default() }, &[]),
        ("no such channel", Filters { channel: Some(client), ..Filters::default() }, &[]),
    ] {
        for mode in [Mode::Keyword, Mode::Hybrid] {
            let asked = Query { filters: filters.clone(), mode, with_facets: true, ..query("harbour") };
            let answer = ask(&memory, &asked).await;
            let mut found = names(&answer);
            found.sort_unstable();
            assert_eq!(found, expected, "{what}, {mode}");
            let theirs = Box::pin(recall::search(&memory.world.env, &stranger, &asked)).await.expect("an answer");
            assert!(theirs.hits.is_empty() && theirs.closest.is_empty(), "S17: {what}");
        }
    }
}

/// Every document that was there is shown once, whatever arrives between two pages.
#[tokio::test]
async fn pages_have_no_doubles_and_no_gaps_while_documents_arrive() {
    for sort in [Sort::Relevance, Sort::Date] {
        let memory = Memory::of(testkit::World::now().await).await;
        harbour(&memory, 60).await;
        let mut asked = Query { mode: Mode::Keyword, sort, k: 7, ..query("harbour") };
        let (mut shown, mut n_pages) = (Vec::new(), 0);
        loop {
            let answer = ask(&memory, &asked).await;
            shown.extend(names(&answer).into_iter().map(str::to_owned));
            n_pages += 1;
            assert!(n_pages < 20, "the pages do not end");
            // Better, newer and more than what is there: each would move the rest.
            let newcomers = (0..5).map(|nth| {
                let name = format!("new-{sort}-{n_pages}-{nth}");
                Record {
                    source_created_at: Some(day(900)),
                    ..memory.record(&name, &format!("harbour harbour {name} {nth}"))
                }
            });
            memory.remember(newcomers.collect()).await;
            let Some(next) = answer.next else { break };
            asked.cursor = Some(next);
        }
        let once: HashSet<&String> = shown.iter().collect();
        assert_eq!(once.len(), shown.len(), "a document was shown twice: {shown:?}");
        for nth in 0..60 {
            assert!(once.contains(&format!("h{nth}")), "{sort}: h{nth} is missing in {shown:?}");
        }
        let late = shown.iter().filter(|name| name.starts_with(&format!("new-{sort}"))).count();
        assert_eq!(late, 0, "what arrived later was shown");
    }
}

/// S17, S19.
#[tokio::test]
async fn a_cursor_of_another_tenant_or_question_or_a_changed_one_is_refused() {
    let memory = Memory::new().await;
    harbour(&memory, 30).await;
    let asked = Query { mode: Mode::Keyword, ..query("harbour") };
    let next = ask(&memory, &asked).await.next.expect("a second page");
    let ours = Caller::local("test", memory.world.tenant_id, true);
    let theirs = Caller::local("test", memory.world.other_tenant("somebody else").await, false);
    let mut changed = next.clone();
    let last = if changed.pop() == Some('A') { 'E' } else { 'A' };
    changed.push(last);
    for (what, caller, query) in [
        ("another tenant", &theirs, Query { cursor: Some(next.clone()), ..asked.clone() }),
        ("another question", &ours, Query { cursor: Some(next.clone()), text: "river".into(), ..asked.clone() }),
        ("changed", &ours, Query { cursor: Some(changed), ..asked.clone() }),
        ("made up", &ours, Query { cursor: Some("' or 1=1 --".into()), ..asked.clone() }),
    ] {
        let answer = Box::pin(recall::search(&memory.world.env, caller, &query)).await;
        assert!(matches!(answer, Err(ActError::Invalid(_))), "{what}");
    }
    assert_eq!(ask(&memory, &Query { cursor: Some(next), ..asked }).await.hits.len(), 10);
}

#[tokio::test]
async fn a_saved_search_counts_what_was_stored_since_somebody_looked() {
    let memory = Memory::of(testkit::World::now().await).await;
    harbour(&memory, 5).await;
    let (env, caller) = (&memory.world.env, Caller::local("test", memory.world.tenant_id, true));
    let asked = Asked { text: " harbour ".into(), mode: Mode::Keyword, ..Asked::default() };
    let id = searches::save(env, &caller, " Harbour news ", asked.clone()).await.expect("saved");
    let news = async || {
        let listed = Box::pin(searches::list(env, &caller)).await.expect("a list");
        assert_eq!(
            (listed.len(), listed[0].search.name.as_str(), listed[0].search.asked.text.as_str()),
            (1, "Harbour news", "harbour")
        );
        listed[0].news.expect("counted").n
    };
    assert_eq!(news().await, 0, "what was there is not new");
    memory.remember(vec![memory.record("later", "A harbour again."), memory.record("apart", "Another matter.")]).await;
    assert_eq!(news().await, 1);
    let shown = searches::get(env, &caller, id).await.expect("it");
    memory.remember(vec![memory.record("between", "A third harbour, stored after the list was shown.")]).await;
    searches::see(env, &caller, id, Some(shown.read_at)).await.expect("seen");
    assert_eq!(news().await, 1, "nobody has seen it yet");
    for odd in [shown.read_at - TimeDelta::days(9), shown.read_at + TimeDelta::days(9)] {
        searches::see(env, &caller, id, Some(odd)).await.expect("seen");
        let seen_at = searches::get(env, &caller, id).await.expect("it").seen_at;
        assert!(seen_at >= shown.read_at && seen_at <= Utc::now(), "neither back nor into the future: {seen_at}");
    }
    memory.remember(vec![memory.record("last", "The last harbour.")]).await;
    searches::see(env, &caller, id, None).await.expect("seen");
    assert_eq!(news().await, 0);

    let taken = searches::save(env, &caller, "harbour NEWS", asked.clone()).await;
    assert!(matches!(taken, Err(ActError::Conflict(_))), "{taken:?}");
    for (name, text) in [("", "harbour"), ("x", ""), ("x", "a\0b"), (&"x".repeat(101), "harbour")] {
        let odd = searches::save(env, &caller, name, Asked { text: text.into(), ..Asked::default() }).await;
        assert!(matches!(odd, Err(ActError::Invalid(_))), "{name:?} {text:?}");
    }
    let stranger = Caller::local("test", TenantId(memory.world.other_tenant("somebody else").await.0), false);
    assert!(Box::pin(searches::list(env, &stranger)).await.expect("a list").is_empty(), "S17");
    for gone in [searches::see(env, &stranger, id, None).await, searches::remove(env, &stranger, id).await] {
        assert!(matches!(gone, Err(ActError::NotFound(_))), "S17");
    }
    searches::remove(env, &caller, id).await.expect("removed");
    assert!(matches!(searches::remove(env, &caller, id).await, Err(ActError::NotFound(_))));
}
