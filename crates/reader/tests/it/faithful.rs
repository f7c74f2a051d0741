//! Files of real programs (`scripts/make_files.py`), compared with the text that these programs export themselves.

use std::collections::HashMap;
use std::fs;
use std::path::PathBuf;

use crate::said::Said;

fn fixture(name: &str) -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "../../fixtures/files", name].iter().collect()
}

pub fn bytes_of(name: &str) -> Vec<u8> {
    fs::read(fixture(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

fn said(name: &str) -> Said {
    Said::of(bytes_of(name), name)
}

/// The words of a text and how often each is there. Ligatures are letters, and marks between words are none.
fn words(text: &str) -> HashMap<String, usize> {
    let headings = ["### Notes", "## Comments", "## Endnotes"];
    let text = headings.into_iter().fold(text.to_owned(), |text, ours| text.replace(ours, ""));
    let text = text.replace('ﬁ', "fi").replace('ﬂ', "fl").replace('ﬀ', "ff").replace('ﬃ', "ffi").replace('ﬄ', "ffl");
    let mut words = HashMap::new();
    for word in text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()) {
        *words.entry(word.to_lowercase()).or_default() += 1;
    }
    words
}

/// The share of expected words that were read, and the share of read words that were expected.
fn recall_and_precision(read: &str, expected: &str) -> (f64, f64) {
    let (read, expected) = (words(read), words(expected));
    let both: usize = read.iter().map(|(word, n)| *n.min(expected.get(word).unwrap_or(&0))).sum();
    let all = |words: &HashMap<String, usize>| words.values().sum::<usize>().max(1) as f64;
    (both as f64 / all(&expected), both as f64 / all(&read))
}

#[test]
fn files_are_read_as_the_programs_that_wrote_them_read_them() {
    let mut names: Vec<String> = fs::read_dir(fixture("expected"))
        .expect("fixtures")
        .map(|entry| {
            entry.expect("a file").file_name().to_string_lossy().strip_suffix(".txt").unwrap_or_default().to_owned()
        })
        .collect();
    names.sort();
    let mut wrong = Vec::new();
    for name in &names {
        let expected = fs::read_to_string(fixture("expected").join(format!("{name}.txt"))).expect("an expected text");
        let said = said(name);
        let (recall, precision) = recall_and_precision(&said.text(), &expected);
        println!(
            "{name:<28} {:<9} {:>2} pages  recall {recall:.3}  precision {precision:.3} {:?}",
            said.kind.map_or("-", |kind| kind.as_str()),
            said.pages.len(),
            said.refused
        );
        if recall < 0.98 || precision < 0.98 {
            wrong.push(name.clone());
        }
    }
    assert!(wrong.is_empty(), "{wrong:?}");
}
/// Of each file a line as it has to be in its text: headings, items, tables and what follows them.
#[test]
fn headings_lists_and_tables_stay_what_they_are() {
    const PRICES: &str =
        "| Item | Unit | Price | Since |\n| --- | --- | --- | --- |\n| Straw bale | piece | 4.20 | 1 March |";
    const MERGED: &str = "| Together for members |  | 190.00 | 1 July |";
    const WORK: &str = "| Work | Days | Costs |\n| --- | --- | --- |\n| Gate | 3 | 1,250 € |\n| Lamp | 1 | 310 € |";
    const TASKS: &str = "| Task | Who | Until |\n| --- | --- | --- |\n| Roof | Ann | May |";
    const SALES: &str = "| Item | Sold on | Pieces | Price | Sum |\n| --- | --- | --- | --- | --- |\n| Straw bale | 2024-02-29 | 6 | 2.25 | 13.50 |";
    let office = [
        "# Terms of the lease\n\nThe yard",
        "## Duties\n\nThe tenant",
        "- to report every leak\n\nIn case",
        PRICES,
        MERGED,
    ];
    let mut wrong = Vec::new();
    for (name, expected) in [
        ("handbook.docx", &[&office[..], &["# Handbook of the yard", "[1] The notary"]].concat()[..]),
        (
            "handbook.odt",
            &[&office[..], &["# Handbook of the yard", "affix a label.[1]\n", "\n\n[1] The notary"]].concat(),
        ),
        (
            "handbook.rtf",
            &[
                &office[..],
                &["1. ring the bell\n2. close", "affix a label.[1]\n", "[1] The notary", "\n\nEmergency number"],
            ]
            .concat(),
        ),
        ("handbook.html", &["# Terms of the lease\n\nThe yard", "## Duties\n\nThe tenant", PRICES, MERGED]),
        (
            "handbook.pdf",
            &[
                "# Terms of the lease\n\nThe yard",
                "|Straw bale|piece|4.20|1 March|",
                "|Together for members||190.00|1 July|",
            ],
        ),
        ("letter.docx", &["# What we ask for\n\n- a new gate\n- a lamp", WORK, "## Reasons"]),
        ("abi.rtf", &["# A letter to the council\n\nThe tenant", "# What we ask for", WORK]),
        ("abi.odt", &["The tenant keeps", WORK]),
        ("notes.docx", &["# Notes of the meeting", "## Decisions\n\n- The gate", TASKS, "### Other business"]),
        ("notes.odt", &["# Notes of the meeting", "## Decisions\n\n- The gate", TASKS, "### Other business"]),
        ("notes.rtf", &["# Notes of the meeting", "## Decisions\n\n- The gate", TASKS, "### Other business"]),
        ("notes.html", &["# Notes of the meeting", "## Decisions\n\n- The gate", TASKS, "### Other business"]),
        ("notes.md", &["# Notes of the meeting", "| Task | Who | Until |"]),
        ("notes.pptx", &["## Notes of the meeting", TASKS]),
        (
            "page.html",
            &[
                "# Hof Lerchenfeld",
                "| Item | Unit | Price |\n| --- | --- | --- |\n| Straw bale | piece | 4.20 |",
                "- open daily",
            ],
        ),
        ("ledger.xlsx", &[SALES, "| Together |  |  |  | 172.50 |", "| Jürgen Großmann | 2010-11-05 | 12.5% |"]),
        ("ledger.ods", &[SALES, "| Together |  |  |  | 172.50 |", "| Jürgen Großmann | 05.11.2010 | 12.5% |"]),
        ("ledger.csv", &[SALES, "| Sacks \\| XL | 1999-01-01 |"]),
        ("ledger.tsv", &[SALES]),
        ("gnumeric.xlsx", &["| Honig aus Übersee | 2025-12-31 | 12 | 4.25 | 51.00 |"]),
        ("gnumeric.ods", &["| Honig aus Übersee | 2025-12-31 | 12 | 4.25 | 51.00 |"]),
        (
            "orders.xlsx",
            &[
                "| A-0002 | 2024-02-28 13:10 | 2024-03-01 | TRUE | 39.98 | =HYPERLINK(\"https://yard.example\",\"page\") |",
                "| Monday | 07:30 | 16:45 |",
            ],
        ),
        ("talk.pptx", &["## A table\n", "| Lamp \\| bright | 1 | 310 |", "### Notes\n\nGreet everybody"]),
        ("talk.odp", &["## A table\n", "| Lamp \\| bright | 1 | 310 |", "### Notes\n\nGreet everybody"]),
        ("offer.eml", &["From: Jürgen Großmann <juergen@yard.example>", SALES]),
        (
            "offer.msg",
            &[
                "From: Jürgen Großmann <juergen@yard.example>\nTo: Ann Lark <ann@council.example>\nCc: Żaneta Łuk <zaneta@yard.example>\nDate: 2024-11-05 08:30 UTC\n",
                SALES,
            ],
        ),
    ] {
        let text = said(name).text();
        wrong.extend(expected.iter().filter(|part| !text.contains(**part)).map(|part| format!("{name}: no {part:?}")));
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn pages_sheets_slides_and_files_have_their_numbers_and_names() {
    for name in ["handbook.pdf", "handbook.docx", "handbook.odt", "handbook.rtf"] {
        let said = said(name);
        for (text, page) in
            [("Terms of the lease", 1), ("The notary in Market Street", 1), ("Hay, second cut", 2), ("Zażółć gęślą", 3)]
        {
            assert_eq!(said.pages_with(text), [page], "{name}: {text}");
        }
    }
    assert_eq!(said("columns.pdf").pages_with("Second page"), [2]);
    assert_eq!(said("report.pdf").pages_with("Umlauts"), [1]);
    assert_eq!(said("ledger.xlsx").labels(), ["Sales", "Staff", "Remarks & more"]);
    assert_eq!(said("ledger.ods").labels(), ["Sales", "Staff", "Remarks & more"]);
    assert_eq!(said("talk.odp").labels(), ["The yard in ten minutes", "Öffnungszeiten & Preise", "A table"]);
    assert_eq!(said("talk.pptx").labels(), said("talk.odp").labels());
    assert_eq!(said("offer.eml").labels()[..3], ["", "Preisübersicht.csv", "typed.pdf"]);
    assert_eq!(said("mixed.zip").labels()[..2], ["Unterlagen/ledger.csv", "Unterlagen/letter.docx"]);
    for name in ["handbook.docx", "handbook.odt", "handbook.rtf", "handbook.pdf", "handbook.html"] {
        assert_eq!(said(name).title.as_deref(), Some("Handbook of the yard"), "{name}");
    }
}

/// Two columns are read one after the other, and no line of one is in the middle of the other.
#[test]
fn columns_are_read_one_after_the_other() {
    let text = said("columns.pdf").text();
    let place = |words: &str| text.find(words).unwrap_or_else(|| panic!("no {words}"));
    assert!(
        place("Straw bales are stored under the northern roof, never closer than four metres")
            < place("Beekeepers may place")
    );
    assert!(
        text.contains("Rent falls due on the third working day of every month, and a reminder is sent after ten days.")
    );
}

/// A PDF of 500 pages, each of which says its number.
#[test]
fn every_page_of_a_long_pdf_has_its_number() {
    let said = Said::of(crate::made::pdf(500), "long.pdf");
    assert_eq!((said.pages.len(), said.n_pages, said.refused), (500, Some(500), None));
    for page in &said.pages {
        assert!(page.text.contains(&format!("The number of this sheet is {} exactly.", page.number)), "{page:?}");
    }
}
