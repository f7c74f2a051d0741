//! Files that are broken or made to do harm: each ends with the outcome that `docs/files.md` names, in little time and memory.

use domain::reading::Unreadable;

use crate::child::{Ended, run};
use crate::faithful::bytes_of;
use crate::made::{compound, docx, eml, flipped, nested, opendocument, packed, pdf, pdf_of, pdf_page, stream, xlsx};

/// How reading ends.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Ends {
    /// So many pages, the first of which has this text.
    Read(usize, &'static str),
    /// The same, and there is more than is read. No number: of pages, as many as there is room for.
    Cut(usize, &'static str),
    Refused(Unreadable),
    /// Either what is left is read, or the file is refused as damaged or as without text.
    Somehow,
}

/// A file, its name, its outcome, and the memory in MiB that it may take.
type Case = (&'static str, Vec<u8>, &'static str, Ends, u64);

fn check(cases: Vec<Case>) {
    let mut wrong = Vec::new();
    for (what, bytes, name, expected, most_mib) in cases {
        let ended = run(&bytes, name);
        let is_right = ended.said.as_ref().is_some_and(|_| is_so(&ended, expected)) && ended.peak_mib <= most_mib;
        let said = ended.said.as_ref().map(|said| (said.refused, said.pages.len(), said.is_cut));
        let mib = bytes.len() as f64 / 1_048_576.0;
        println!("{what:<46} {mib:>6.2} MiB  {:>6.2} s  {:>4} MiB  {said:?}", ended.took.as_secs_f64(), ended.peak_mib);
        if !is_right {
            wrong.push(format!(
                "{what}: expected {expected:?}, and {most_mib} MiB at most, and not {said:?} {} MiB",
                ended.peak_mib
            ));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

fn is_so(ended: &Ended, expected: Ends) -> bool {
    let Some(said) = &ended.said else { return false };
    let begins = |text: &str| said.pages.first().is_some_and(|page| page.text.contains(text)) || text.is_empty();
    match expected {
        Ends::Read(n, text) => said.refused.is_none() && !said.is_cut && said.pages.len() == n && begins(text),
        Ends::Cut(n, text) => {
            said.refused.is_none() && said.is_cut && [0, said.pages.len()].contains(&n) && begins(text)
        }
        Ends::Refused(why) => said.refused == Some(why),
        Ends::Somehow => {
            use Unreadable::*;
            said.refused.is_none_or(|why| matches!(why, Damaged | NoText | OcrNotInstalled | Encrypted | UnknownKind))
        }
    }
}

/// Archives that are made to fill a machine.
#[test]
fn bombs_are_refused_before_they_unfold() {
    let zeros = vec![0_u8; 60 << 20];
    let paragraphs = format!("<w:p><w:r><w:t>{}</w:t></w:r></w:p>", "x".repeat(400)).repeat(80_000);
    let laughs = format!(
        r#"<?xml version="1.0"?><!DOCTYPE lolz [<!ENTITY a "ha">{}]><w:document><w:body><w:p><w:r><w:t>before &z9; after</w:t></w:r></w:p></w:body></w:document>"#,
        (0..10)
            .map(|n| format!(
                "<!ENTITY z{n} \"{}\">",
                if n == 0 { "&a;".into() } else { format!("&z{};", n - 1) }.repeat(10)
            ))
            .collect::<String>()
    );
    let bomb = packed(&[("zeros.txt", &zeros)]);
    let ten = packed(
        &(0..10).map(|n| (["a", "b", "c", "d", "e", "f", "g", "h", "i", "j"][n], bomb.as_slice())).collect::<Vec<_>>(),
    );
    check(vec![
        ("60 MB of zeros in an archive", bomb, "bomb.zip", Ends::Refused(Unreadable::Bomb), 60),
        ("ten bombs in an archive", ten, "bombs.zip", Ends::Refused(Unreadable::Bomb), 60),
        ("archives in archives, 20 deep", nested(20), "nested.zip", Ends::Refused(Unreadable::TooLarge), 30),
        ("10,001 files", many_files(10_001), "many.zip", Ends::Refused(Unreadable::Bomb), 60),
        ("33 MB of paragraphs in a docx", docx(&paragraphs), "wide.docx", Ends::Cut(1, "xxx"), 150),
        ("60 MB of blanks in a docx", docx(&" ".repeat(60 << 20)), "blank.docx", Ends::Refused(Unreadable::Bomb), 60),
        (
            "billion laughs in a docx",
            packed(&[("word/document.xml", laughs)]),
            "laughs.docx",
            Ends::Read(1, "before  after"),
            30,
        ),
    ]);
}

fn many_files(n: usize) -> Vec<u8> {
    let names: Vec<String> = (0..n).map(|n| format!("{n}.txt")).collect();
    packed(&names.iter().map(|name| (name.as_str(), "x")).collect::<Vec<_>>())
}

/// Documents whose few bytes stand for many.
#[test]
fn documents_that_unfold_are_bounded() {
    let tables = "<w:tbl><w:tr><w:tc><w:p><w:r><w:t>x</w:t></w:r></w:p>".repeat(60_000);
    let wide_row = format!("<w:tbl><w:tr>{}</w:tr>{}</w:tbl>", "<w:tc/>".repeat(30_000), cells(30_000));
    let spans = r#"<w:tbl><w:tr><w:tc><w:tcPr><w:gridSpan w:val="999999999"/></w:tcPr><w:p><w:r><w:t>one</w:t></w:r></w:p></w:tc></w:tr></w:tbl>"#;
    let attributes: String = (0..300_000).map(|n| format!(" a{n}=\"{n}\"")).collect();
    let attributes = format!("<w:p{attributes}><w:r><w:t>found</w:t></w:r></w:p>");
    let corners = r#"<row r="1"><c r="A1"><v>1</v></c></row><row r="1048576"><c r="XFD1048576"><v>2</v></c></row>"#;
    let long = format!("<si><t>{}</t></si>", random_words(400_000));
    let named = r#"<c t="s"><v>0</v></c>"#.repeat(200);
    let rows = format!("<row>{named}</row>").repeat(200);
    let repeated = format!(
        r#"<office:spreadsheet><table:table table:name="S"><table:table-row table:number-rows-repeated="1000000"><table:table-cell table:number-columns-repeated="16000"><text:p>{}</text:p></table:table-cell></table:table-row></table:table></office:spreadsheet>"#,
        random_words(400_000)
    );
    check(vec![
        ("60,000 tables in each other", docx(&tables), "deep.docx", Ends::Refused(Unreadable::Damaged), 60),
        ("a row of 30,000 cells above 30,000 rows", docx(&wide_row), "wide.docx", Ends::Read(1, "| x |"), 100),
        ("a cell over 999,999,999 columns", docx(spans), "span.docx", Ends::Read(1, "| one |"), 30),
        ("300,000 attributes", docx(&attributes), "attributes.docx", Ends::Read(1, "found"), 60),
        ("an xlsx with A1 and XFD1048576", xlsx(corners, "", 1), "sparse.xlsx", Ends::Read(1, "| 1 |"), 30),
        ("40,000 cells that name one text of 400 KB", xlsx(&rows, &long, 1), "echo.xlsx", Ends::Cut(1, ""), 250),
        (
            "1,000 sheets that are one",
            xlsx(&rows, &format!("<si><t>{}</t></si>", random_words(2_000)), 1_000),
            "sheets.xlsx",
            Ends::Cut(0, ""),
            50,
        ),
        (
            "a cell of 400 KB repeated 16,000,000,000 times",
            opendocument("spreadsheet", &repeated),
            "echo.ods",
            Ends::Cut(1, ""),
            250,
        ),
    ]);
}

/// Rows of one cell.
fn cells(n: usize) -> String {
    "<w:tr><w:tc><w:p><w:r><w:t>x</w:t></w:r></w:p></w:tc></w:tr>".repeat(n)
}

/// Words that do not pack well.
fn random_words(n_bytes: usize) -> String {
    let mut state = 7_u64;
    let letter = |n: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        if n % 7 == 6 { ' ' } else { char::from(b'a' + ((state >> 33) % 26) as u8) }
    };
    (0..n_bytes).map(letter).collect()
}

/// Texts that are long or deep.
#[test]
fn texts_that_are_long_or_deep_are_bounded() {
    let deep = format!("<html><body>{}deep inside{}", "<div>".repeat(300_000), "</div>".repeat(300_000));
    let tables = format!("<html><body>{}deep inside", "<table><tr><td>".repeat(100_000));
    let attributes: String = (0..200_000).map(|n| format!(" a{n}=1")).collect();
    let long_cell = format!("a,b\n1,{}\n", "x".repeat(50 << 20));
    let long_row = format!("a,b\n{}\n", "x,".repeat(10 << 20));
    let rtf = format!("{{\\rtf1 {}", "x\\par ".repeat(2_000_000));
    let row = format!(
        "{{\\rtf1 \\trowd {}\\row\\pard {}",
        "\\intbl x\\cell ".repeat(30_000),
        "\\trowd\\intbl x\\cell\\row\\pard".repeat(30_000)
    );
    check(vec![
        ("300,000 nested divs", deep.into_bytes(), "deep.html", Ends::Read(1, "deep inside"), 60),
        ("100,000 nested tables in a page", tables.into_bytes(), "tables.html", Ends::Read(1, "deep inside"), 60),
        (
            "a tag with 200,000 attributes",
            format!("<html><p{attributes}>found</p>").into_bytes(),
            "a.html",
            Ends::Somehow,
            60,
        ),
        ("a csv with a cell of 50 MB", long_cell.into_bytes(), "cell.csv", Ends::Cut(1, "| a | b |"), 300),
        ("a csv with a row of 10 million cells", long_row.into_bytes(), "row.csv", Ends::Cut(1, "| a | b |"), 450),
        ("50 MB of text in one line", vec![b'x'; 50 << 20], "line.txt", Ends::Cut(641, "xxx"), 300),
        ("a rich text of 2,000,000 paragraphs", rtf.into_bytes(), "long.rtf", Ends::Read(1, "x"), 300),
        ("rich text with a row of 30,000 cells", row.into_bytes(), "wide.rtf", Ends::Cut(1, "| x |"), 100),
        ("a message of 100,000 parts", eml(100_000), "many.eml", Ends::Read(1, "A part of many."), 100),
    ]);
}

/// PDF files that are made to do harm.
#[test]
fn a_pdf_that_is_made_to_do_harm_ends_with_words() {
    let font = "/Font << /F1 5 0 R >>";
    let helvetica = "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>".to_owned();
    let text = "BT /F1 12 Tf 72 720 Td (found) Tj ET";
    let arrays = format!("{}{}", "[".repeat(200_000), "]".repeat(200_000));
    let form =
        stream("/Type /XObject /Subtype /Form /BBox [0 0 9 9] /Resources << /XObject << /X 6 0 R >> >>", "/X Do");
    let pages_loop =
        pdf_of(&["<< /Type /Catalog /Pages 2 0 R >>".into(), "<< /Type /Pages /Kids [2 0 R 2 0 R] /Count 2 >>".into()]);
    check(vec![
        (
            "a PDF with 100,000 pages",
            pdf_of(&many_pages(100_000)),
            "long.pdf",
            Ends::Refused(Unreadable::TooManyPages),
            400,
        ),
        ("a PDF of 500 pages", pdf(500), "pages.pdf", Ends::Read(500, "The number of this sheet is 1 exactly."), 200),
        (
            "200,000 arrays in each other",
            pdf_page(stream("", text), font, &[helvetica.clone(), arrays]),
            "a.pdf",
            Ends::Somehow,
            300,
        ),
        (
            "a form that shows itself",
            pdf_page(
                stream("", &format!("{text} /X Do")),
                &format!("{font} /XObject << /X 6 0 R >>"),
                &[helvetica, form],
            ),
            "b.pdf",
            Ends::Somehow,
            300,
        ),
        ("pages that are their own parents", pages_loop, "c.pdf", Ends::Somehow, 300),
        ("a PDF with a password", bytes_of("locked.pdf"), "locked.pdf", Ends::Refused(Unreadable::Encrypted), 60),
        ("a PDF that is locked for changes only", bytes_of("owner-locked.pdf"), "d.pdf", Ends::Read(3, "Seite 1"), 60),
        ("a PDF without anything", b"%PDF-1.7\nnothing".to_vec(), "none.pdf", Ends::Refused(Unreadable::Damaged), 30),
    ]);
}

/// The objects of a PDF with this many empty pages.
fn many_pages(n: usize) -> Vec<String> {
    let kids: String = (0..n).map(|page| format!("{} 0 R ", page + 3)).collect();
    let mut objects = vec!["<< /Type /Catalog /Pages 2 0 R >>".to_owned()];
    objects.push(format!("<< /Type /Pages /Kids [{kids}] /Count {n} /MediaBox [0 0 612 792] >>"));
    objects.extend(std::iter::repeat_n("<< /Type /Page /Parent 2 0 R >>".to_owned(), n));
    objects
}

/// A file that is cut off or changed ends with words.
#[test]
fn broken_files_end_with_words() {
    let mut cases: Vec<Case> = Vec::new();
    for name in ["report.pdf", "handbook.pdf", "typed.pdf"] {
        let bytes = bytes_of(name);
        for nth in 0..20 {
            cases.push(("a PDF cut off", bytes[..bytes.len() * nth / 20 + 8].to_vec(), "cut.pdf", Ends::Somehow, 300));
            cases.push((
                "a PDF with changed bytes",
                flipped(&bytes, nth as u64 + 1),
                "flipped.pdf",
                Ends::Somehow,
                300,
            ));
        }
    }
    for name in ["letter.docx", "ledger.xlsx", "talk.pptx", "handbook.odt", "ledger.ods", "talk.odp", "mixed.zip"] {
        let bytes = bytes_of(name);
        for tenths in [1, 5, 9] {
            cases.push((
                name,
                bytes[..bytes.len() * tenths / 10].to_vec(),
                name,
                Ends::Refused(Unreadable::Damaged),
                60,
            ));
        }
        cases.push((name, flipped(&bytes, 3), name, Ends::Somehow, 60));
    }
    for name in ["offer.msg", "handbook.rtf", "offer.eml", "ledger.xls"] {
        let bytes = bytes_of(name);
        for nth in 1..5 {
            cases.push((name, bytes[..bytes.len() * nth / 5].to_vec(), name, Ends::Somehow, 60));
            cases.push((name, flipped(&bytes, nth as u64), name, Ends::Somehow, 60));
        }
    }
    check(cases);
}

/// Names that lie, and kinds that are not read.
#[test]
fn bytes_tell_what_a_file_is_and_what_is_not_read_says_why() {
    use Unreadable::*;
    let program = [b"MZ\x90\0\x03\0\0\0".as_slice(), &[0; 200]].concat();
    check(vec![
        ("a program named .pdf", program.clone(), "invoice.pdf", Ends::Refused(Program), 30),
        ("no bytes", Vec::new(), "empty.pdf", Ends::Refused(Empty), 30),
        ("a Word document of before 2007", bytes_of("handbook.doc"), "handbook.doc", Ends::Refused(UnknownKind), 30),
        ("a spreadsheet of before 2007", bytes_of("ledger.xls"), "ledger.xls", Ends::Refused(UnknownKind), 30),
        (
            "a presentation of before 2007",
            compound(&["/PowerPoint Document"]),
            "talk.ppt",
            Ends::Refused(UnknownKind),
            30,
        ),
        (
            "a document with a password",
            compound(&["/EncryptedPackage", "/EncryptionInfo"]),
            "a.docx",
            Ends::Refused(Encrypted),
            30,
        ),
        (
            "UTF-16 of the East without its mark",
            bytes_of("utf16-japanese-bare.txt"),
            "a.txt",
            Ends::Refused(UnknownKind),
            30,
        ),
        (
            "an archive of a program and nothing",
            packed(&[("a.exe", program), ("b.txt", Vec::new())]),
            "a.zip",
            Ends::Refused(Program),
            30,
        ),
        (
            "a Word document with macros",
            with_macros("letter.docx", "word/vbaProject.bin"),
            "letter.docm",
            Ends::Read(2, "A letter to the council"),
            30,
        ),
        (
            "a spreadsheet with macros",
            with_macros("ledger.xlsx", "xl/vbaProject.bin"),
            "ledger.xlsm",
            Ends::Read(3, "Straw bale"),
            30,
        ),
    ]);
    let macros = run(&with_macros("letter.docx", "word/vbaProject.bin"), "letter.docm").said.expect("it is read");
    let page = run(&bytes_of("page.html"), "page.html").said.expect("it is read");
    for said in [macros, page] {
        let text = said.text();
        for word in [
            "AutoOpen",
            "secretScript",
            "written by script",
            "clickScript",
            "templateScript",
            "noScriptText",
            "color: red",
        ] {
            assert!(!text.contains(word), "{word}: {text}");
        }
    }
}

/// A document of ours with a program in it.
fn with_macros(name: &str, part: &str) -> Vec<u8> {
    use std::io::{Cursor, Write as _};
    let mut archive = zip::ZipWriter::new_append(Cursor::new(bytes_of(name))).expect("an archive");
    archive.start_file(part, zip::write::SimpleFileOptions::default()).expect("a file");
    archive.write_all(b"Attribute VB_Name = \"M\"\r\nSub AutoOpen()\r\nShell \"calc\"\r\nEnd Sub").expect("written");
    archive.finish().expect("an archive").into_inner()
}
