//! Whole files, made here: what comes out of each kind, and of those that are made to do harm.

use std::io::{Cursor, Write as _};

use domain::reading::{FileKind, Line, Page, Unreadable};
use zip::ZipWriter;
use zip::write::SimpleFileOptions;

use domain::reading::Models;

use crate::{Limits, Source, read};

/// The lines about a file: its kind and title, its pages, and why it was refused.
#[derive(Debug, Default)]
struct Said {
    kind: Option<FileKind>,
    title: Option<String>,
    pages: Vec<Page>,
    is_cut: bool,
    refused: Option<Unreadable>,
}

impl Said {
    fn of(bytes: Vec<u8>, name: &str) -> Self {
        let mut out = Vec::new();
        let source = Source { bytes, name: Some(name.into()), media_type: None };
        let limits = Limits { pages: 50, text_bytes: 1 << 20, unpacked_bytes: 8 << 20 };
        read(source, limits, &Models::default(), &[], &mut out).expect("written");
        let mut said = Self::default();
        for line in String::from_utf8(out).expect("text").lines() {
            match serde_json::from_str(line).expect("a line") {
                Line::Head { kind, title, .. } => (said.kind, said.title) = (Some(kind), title),
                Line::Page(page) => said.pages.push(page),
                Line::Alive | Line::Picture { .. } => {}
                Line::End { is_cut, .. } => said.is_cut = is_cut,
                Line::Refused { why, .. } => said.refused = Some(why),
            }
        }
        said
    }

    fn texts(&self) -> Vec<&str> {
        self.pages.iter().map(|page| page.text.as_str()).collect()
    }

    fn labels(&self) -> Vec<&str> {
        self.pages.iter().map(|page| page.label.as_deref().unwrap_or_default()).collect()
    }
}

fn packed(files: &[(&str, &str)]) -> Vec<u8> {
    let mut archive = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, content) in files {
        archive.start_file(*name, SimpleFileOptions::default()).expect("a file");
        archive.write_all(content.as_bytes()).expect("written");
    }
    archive.finish().expect("an archive").into_inner()
}

/// A Word document with this body.
fn docx(body: &str) -> Vec<u8> {
    let document = format!(r#"<w:document xmlns:w="w"><w:body>{body}</w:body></w:document>"#);
    let styles = r#"<w:styles><w:style w:styleId="berschrift1"><w:name w:val="heading 1"/></w:style></w:styles>"#;
    let core = "<cp:coreProperties><dc:title>Lease of the yard</dc:title></cp:coreProperties>";
    packed(&[("word/document.xml", &document), ("word/styles.xml", styles), ("docProps/core.xml", core)])
}

fn paragraph(text: &str) -> String {
    format!("<w:p><w:r><w:t>{text}</w:t></w:r></w:p>")
}

#[test]
fn a_word_document_keeps_headings_lists_tables_and_pages() {
    let body = [
        r#"<w:p><w:pPr><w:pStyle w:val="berschrift1"/></w:pPr><w:r><w:t>Terms</w:t></w:r></w:p>"#,
        r#"<w:p><w:r><w:t xml:space="preserve">Rent &amp; </w:t></w:r><w:del><w:r><w:delText>old</w:delText></w:r></w:del><w:r><w:t>fees</w:t></w:r></w:p>"#,
        r#"<w:p><w:pPr><w:numPr/></w:pPr><w:r><w:t>due monthly</w:t></w:r></w:p>"#,
        "<w:tbl><w:tr><w:tc><w:p><w:r><w:t>Item</w:t></w:r></w:p></w:tc><w:tc><w:p><w:r><w:t>Price</w:t></w:r></w:p></w:tc></w:tr>",
        "<w:tr><w:tc><w:p><w:r><w:t>Yard</w:t></w:r></w:p></w:tc><w:tc><w:p><w:r><w:t>900</w:t></w:r></w:p></w:tc></w:tr></w:tbl>",
        r#"<w:p><w:r><w:br w:type="page"/><w:t>Second page</w:t></w:r></w:p>"#,
    ];
    let said = Said::of(docx(&body.concat()), "lease.docx");
    assert_eq!((said.kind, said.title.as_deref()), (Some(FileKind::Docx), Some("Lease of the yard")));
    let first = "# Terms\n\nRent & fees\n\n- due monthly\n\n| Item | Price |\n| --- | --- |\n| Yard | 900 |".to_owned();
    assert_eq!(said.texts(), [first.as_str(), "Second page"]);
    assert_eq!(said.pages[1].number, 2);
}

#[test]
fn a_spreadsheet_has_a_page_for_each_sheet_and_costs_what_its_cells_cost() {
    let workbook = r#"<workbook><sheets><sheet name="Prices" sheetId="1" r:id="r1"/><sheet name="Corners" sheetId="2" r:id="r2"/></sheets></workbook>"#;
    let rels = r#"<Relationships><Relationship Id="r1" Type="x/worksheet" Target="worksheets/sheet1.xml"/><Relationship Id="r2" Type="x/worksheet" Target="/xl/worksheets/sheet2.xml"/></Relationships>"#;
    let strings = "<sst><si><t>Item</t></si><si><r><t>Straw </t></r><r><t>bale</t></r><rPh><t>x</t></rPh></si></sst>";
    let styles = r#"<styleSheet><numFmts><numFmt numFmtId="164" formatCode="yyyy\-mm\-dd"/></numFmts><cellXfs><xf numFmtId="0"/><xf numFmtId="164"/></cellXfs></styleSheet>"#;
    let sheet = concat!(
        r#"<worksheet><sheetData><row r="1"><c r="A1" t="s"><v>0</v></c><c r="B1" t="inlineStr"><is><t>Since</t></is></c><c r="C1" t="str"><v>Sum</v></c></row>"#,
        r#"<row r="2"><c r="A2" t="s"><v>1</v></c><c r="B2" s="1"><v>45000</v></c><c r="C2"><f>SUM(1,2)</f><v>3</v></c></row></sheetData></worksheet>"#
    );
    let corners = r#"<worksheet><sheetData><row r="1"><c r="A1"><v>1</v></c></row><row r="1048576"><c r="XFD1048576"><v>2</v></c><c r="B1048576" t="b"><v>1</v></c></row></sheetData></worksheet>"#;
    let said = Said::of(
        packed(&[
            ("xl/workbook.xml", workbook),
            ("xl/_rels/workbook.xml.rels", rels),
            ("xl/sharedStrings.xml", strings),
            ("xl/styles.xml", styles),
            ("xl/worksheets/sheet1.xml", sheet),
            ("xl/worksheets/sheet2.xml", corners),
        ]),
        "prices.xlsx",
    );
    assert_eq!(said.labels(), ["Prices", "Corners"]);
    assert_eq!(
        said.texts(),
        [
            "| Item | Since | Sum |\n| --- | --- | --- |\n| Straw bale | 2023-03-15 | 3 |",
            "| 1 |  |\n| --- | --- |\n|  | TRUE |"
        ]
    );
}

#[test]
fn a_presentation_has_a_page_for_each_slide_with_its_notes() {
    let presentation = r#"<p:presentation><p:sldIdLst><p:sldId id="256" r:id="r2"/><p:sldId id="257" r:id="r1"/></p:sldIdLst></p:presentation>"#;
    let rels = r#"<Relationships><Relationship Id="r1" Type="x/slide" Target="slides/slide1.xml"/><Relationship Id="r2" Type="x/slide" Target="slides/slide2.xml"/></Relationships>"#;
    let slide = |title: &str, text: &str| {
        format!(
            r#"<p:sld><p:sp><p:nvPr><p:ph type="title"/></p:nvPr><a:p><a:r><a:t>{title}</a:t></a:r></a:p></p:sp><p:sp><a:p><a:r><a:t>{text}</a:t></a:r></a:p></p:sp><p:sp><p:ph type="sldNum"/><a:p><a:r><a:t>1</a:t></a:r></a:p></p:sp></p:sld>"#
        )
    };
    let notes = r#"<Relationships><Relationship Id="n" Type="x/notesSlide" Target="../notesSlides/notesSlide1.xml"/></Relationships>"#;
    let said = Said::of(
        packed(&[
            ("ppt/presentation.xml", presentation),
            ("ppt/_rels/presentation.xml.rels", rels),
            ("ppt/slides/slide1.xml", &slide("Costs", "Straw is dear.")),
            ("ppt/slides/slide2.xml", &slide("Welcome", "Hello")),
            ("ppt/slides/_rels/slide1.xml.rels", notes),
            (
                "ppt/notesSlides/notesSlide1.xml",
                "<p:notes><p:sp><a:p><a:r><a:t>Say it twice.</a:t></a:r></a:p></p:sp></p:notes>",
            ),
        ]),
        "talk.pptx",
    );
    assert_eq!(said.labels(), ["Welcome", "Costs"], "in the order of the presentation");
    assert_eq!(said.texts(), ["## Welcome\n\nHello", "## Costs\n\nStraw is dear.\n\n### Notes\n\nSay it twice."]);
}

#[test]
fn opendocument_texts_and_sheets_are_read() {
    let content =
        |body: &str| format!("<office:document-content><office:body>{body}</office:body></office:document-content>");
    let text = content(
        r#"<office:text><text:h text:outline-level="2">Terms</text:h><text:p>Rent<text:s text:c="2"/>is due<office:annotation><text:p>no</text:p></office:annotation>.</text:p><text:list><text:list-item><text:p>monthly</text:p></text:list-item></text:list><text:p>One<text:soft-page-break/>two</text:p></office:text>"#,
    );
    let mimetype = |kind: &str| format!("application/vnd.oasis.opendocument.{kind}");
    let said = Said::of(packed(&[("mimetype", &mimetype("text")), ("content.xml", &text)]), "lease.odt");
    assert_eq!(said.texts(), ["## Terms\n\nRent  is due.\n\n- monthly\n\nOne", "two"]);
    let sheet = content(
        r#"<office:spreadsheet><table:table table:name="Prices"><table:table-row><table:table-cell><text:p>Item</text:p></table:table-cell><table:table-cell table:number-columns-repeated="16384"/></table:table-row><table:table-row table:number-rows-repeated="1048576"><table:table-cell/></table:table-row></table:table></office:spreadsheet>"#,
    );
    let said = Said::of(packed(&[("mimetype", &mimetype("spreadsheet")), ("content.xml", &sheet)]), "prices.ods");
    assert_eq!((said.labels(), said.texts()), (vec!["Prices"], vec!["| Item |\n| --- |"]));
}

#[test]
fn a_message_is_read_with_its_files_and_an_archive_with_what_is_in_it() {
    let message = "From: Ann <ann@x.example>\r\nTo: bob@y.example\r\nSubject: The offer\r\nMIME-Version: 1.0\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\nContent-Type: text/plain\r\n\r\nSee below.\r\n--b\r\nContent-Type: text/csv; name=prices.csv\r\nContent-Disposition: attachment; filename=prices.csv\r\n\r\nItem;Price\r\nBale;20\r\n--b--\r\n";
    let said = Said::of(message.into(), "offer.eml");
    assert_eq!((said.kind, said.title.as_deref()), (Some(FileKind::Eml), Some("The offer")));
    assert!(said.texts()[0].contains("See below."), "{:?}", said.pages);
    assert_eq!((said.labels()[1], said.texts()[1]), ("prices.csv", "| Item | Price |\n| --- | --- |\n| Bale | 20 |"));

    let inner = String::from_utf8_lossy(b"hi").into_owned();
    let said = Said::of(
        packed(&[("b.txt", &inner), ("a/../../c.md", "# C"), ("empty.txt", ""), ("x.exe", "MZ\0\0\0")]),
        "all.zip",
    );
    assert_eq!(said.labels(), ["a/../../c.md", "b.txt", "empty.txt", "x.exe"]);
    assert_eq!(
        said.pages.iter().map(|page| page.trouble).collect::<Vec<_>>(),
        [None, None, Some(Unreadable::Empty), Some(Unreadable::Program)]
    );
}

#[test]
fn an_office_document_in_a_letter_is_read() {
    let content = "<office:document-content><office:body><office:text><text:p>The well is dug in May.</text:p></office:text></office:body></office:document-content>";
    let plan = packed(&[("mimetype", "application/vnd.oasis.opendocument.text"), ("content.xml", content)]);
    let head = "From: Ann <ann@x.example>\r\nSubject: The well\r\nMIME-Version: 1.0\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\nContent-Type: text/plain\r\n\r\nSee the plan.\r\n--b\r\nContent-Type: application/octet-stream; name=plan.odt\r\nContent-Disposition: attachment; filename=plan.odt\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\n";
    let lines: Vec<String> =
        plan.chunks(24).map(|bytes| bytes.iter().map(|byte| format!("={byte:02X}")).collect()).collect();
    let said = Said::of(format!("{head}{}\r\n--b--\r\n", lines.join("=\r\n")).into_bytes(), "well.eml");
    assert_eq!((said.labels()[1], said.texts()[1]), ("plan.odt", "The well is dug in May."));
    assert!(said.pages.iter().all(|page| page.trouble.is_none()), "{:?}", said.pages);
}

#[test]
fn a_file_of_a_letter_that_is_not_read_says_so() {
    let message = "From: Ann <ann@x.example>\r\nSubject: The plan\r\nMIME-Version: 1.0\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\nContent-Type: text/plain\r\n\r\nSee the plan.\r\n--b\r\nContent-Type: application/acad; name=plan.dwg\r\nContent-Disposition: attachment; filename=plan.dwg\r\n\r\nAC1032\r\n--b--\r\n";
    let said = Said::of(message.into(), "plan.eml");
    assert_eq!(said.labels(), ["", "plan.dwg"]);
    assert_eq!((said.pages[1].trouble, said.refused), (Some(Unreadable::UnknownKind), None));
}

/// A compound file as Outlook saves messages.
fn msg() -> Vec<u8> {
    let mut file = cfb::CompoundFile::create(Cursor::new(Vec::new())).expect("a file");
    let wide = |text: &str| text.encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<u8>>();
    file.create_storage("/__attach_version1.0_#00000000").expect("a folder");
    for (name, bytes) in [
        ("/__properties_version1.0", vec![0; 32]),
        ("/__substg1.0_0037001F", wide("The lease")),
        ("/__substg1.0_0C1A001F", wide("Ann Lark")),
        ("/__substg1.0_1000001F", wide("It ends in May.")),
        ("/__attach_version1.0_#00000000/__substg1.0_3707001F", wide("note.txt")),
        ("/__attach_version1.0_#00000000/__substg1.0_37010102", b"Keys are at the gate.".to_vec()),
    ] {
        file.create_stream(name).expect("a stream").write_all(&bytes).expect("written");
    }
    file.flush().expect("written");
    file.into_inner().into_inner()
}

#[test]
fn a_message_of_outlook_is_read_with_its_files() {
    let said = Said::of(msg(), "lease.msg");
    assert_eq!((said.kind, said.title.as_deref()), (Some(FileKind::Msg), Some("The lease")));
    assert_eq!(said.texts(), ["From: Ann Lark\nSubject: The lease\n\nIt ends in May.", "Keys are at the gate."]);
    assert_eq!(said.labels(), ["", "note.txt"]);
}

/// A PDF with a line of text on each page.
fn pdf(pages: &[&str]) -> Vec<u8> {
    let mut objects = vec!["<< /Type /Catalog /Pages 2 0 R >>".to_owned(), String::new()];
    objects.push("<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>".to_owned());
    let mut kids = String::new();
    for text in pages {
        let stream = format!("BT /F1 12 Tf 72 720 Td ({text}) Tj ET");
        objects.push(format!("<< /Length {} >>\nstream\n{stream}\nendstream", stream.len()));
        let content = objects.len();
        objects.push(format!("<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Resources << /Font << /F1 3 0 R >> >> /Contents {content} 0 R >>"));
        kids.push_str(&format!("{} 0 R ", objects.len()));
    }
    objects[1] = format!("<< /Type /Pages /Kids [{kids}] /Count {} >>", pages.len());
    let mut pdf = b"%PDF-1.4\n".to_vec();
    let mut places = Vec::new();
    for (nth, object) in objects.iter().enumerate() {
        places.push(pdf.len());
        pdf.extend(format!("{} 0 obj\n{object}\nendobj\n", nth + 1).bytes());
    }
    let start = pdf.len();
    pdf.extend(format!("xref\n0 {}\n0000000000 65535 f \n", objects.len() + 1).bytes());
    places.iter().for_each(|place| pdf.extend(format!("{place:010} 00000 n \n").bytes()));
    pdf.extend(format!("trailer << /Size {} /Root 1 0 R >>\nstartxref\n{start}\n%%EOF", objects.len() + 1).bytes());
    pdf
}

#[test]
fn a_pdf_is_read_page_by_page() {
    let said = Said::of(pdf(&["The lease ends in May.", "", "Keys are at the gate."]), "lease.pdf");
    assert_eq!(said.kind, Some(FileKind::Pdf));
    let texts = said.texts();
    assert!(
        texts.len() == 3 && texts[0].contains("The lease ends in May.") && texts[2].contains("Keys are at the gate."),
        "{texts:?}"
    );
    let many: Vec<&str> = vec!["x"; 51];
    assert_eq!(Said::of(pdf(&many), "long.pdf").refused, Some(Unreadable::TooManyPages));
}

/// F20: what is made to do harm ends with words.
#[test]
fn what_is_made_to_do_harm_is_refused() {
    let laughs = r#"<?xml version="1.0"?><!DOCTYPE lolz [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">]><w:document><w:body><w:p><w:r><w:t>before &b;&b; after</w:t></w:r></w:p></w:body></w:document>"#;
    let said = Said::of(packed(&[("word/document.xml", laughs)]), "laughs.docx");
    assert_eq!(
        (said.texts(), said.refused),
        (vec!["before  after"], None),
        "an entity of the document's own is nothing"
    );

    let zeros = "0".repeat(20 << 20);
    let bomb = packed(&[("zeros.txt", &zeros)]);
    let deep = docx(&"<w:tbl><w:tr><w:tc>".repeat(60_000));
    let wide = docx(&paragraph("x").repeat(400_000));
    let half = |bytes: Vec<u8>| bytes[..bytes.len() / 2].to_vec();
    for (what, bytes, name, expected) in [
        ("a bomb", bomb, "bomb.zip", Unreadable::Bomb),
        ("tables in tables", deep, "deep.docx", Unreadable::Damaged),
        ("a document of one repeated line", wide, "wide.docx", Unreadable::Bomb),
        ("half an archive", half(packed(&[("a.txt", "hello hello hello")])), "half.zip", Unreadable::Damaged),
        ("half a document", half(docx(&paragraph("x"))), "half.docx", Unreadable::Damaged),
        ("a PDF that is none", b"%PDF-1.7\nnothing".to_vec(), "none.pdf", Unreadable::Damaged),
        ("a program", b"MZ\x90\0\x03\0\0\0".to_vec(), "invoice.pdf", Unreadable::Program),
        ("nothing", Vec::new(), "a.pdf", Unreadable::Empty),
        ("an old document", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1".to_vec(), "a.doc", Unreadable::Damaged),
        ("a document without its body", packed(&[("word/document.xml", "")]), "a.docx", Unreadable::NoText),
    ] {
        assert_eq!(Said::of(bytes, name).refused, Some(expected), "{what}");
    }
    // Archives in archives: two are opened, no more.
    let mut nested = packed(&[("deepest.txt", "found")]);
    for _ in 0..4 {
        let mut archive = ZipWriter::new(Cursor::new(Vec::new()));
        archive.start_file("a.zip", SimpleFileOptions::default()).expect("a file");
        archive.write_all(&nested).expect("written");
        nested = archive.finish().expect("an archive").into_inner();
    }
    assert_eq!(Said::of(nested, "nested.zip").refused, Some(Unreadable::TooLarge));
}

#[test]
fn no_more_is_read_of_a_file_than_its_limits_say() {
    let said = Said::of(b"one line\n".repeat(200_000), "long.txt");
    assert!(said.is_cut && said.pages.len() == 50, "{} pages", said.pages.len());
    let rows: String = (0..450).map(|n| format!("{n},{}\n", n * 2)).collect();
    let said = Said::of(format!("a,b\n{rows}").into_bytes(), "rows.csv");
    assert_eq!(
        said.labels(),
        ["rows 1 to 100", "rows 101 to 200", "rows 201 to 300", "rows 301 to 400", "rows 401 to 450"]
    );
    assert!(said.texts().iter().all(|text| text.starts_with("| a | b |")), "each page has the head");
}

fn fixture(name: &str) -> Vec<u8> {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/files").join(name);
    std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

#[test]
fn the_lines_of_a_pdf_with_text_have_their_places() {
    for (name, least) in [("handbook.pdf", 0.9), ("columns.pdf", 0.9), ("report.pdf", 0.8)] {
        let said = Said::of(fixture(name), name);
        let (mut n_lines, mut n_placed) = (0, 0);
        for page in &said.pages {
            let lines: Vec<&str> = page.text.lines().filter(|line| !line.is_empty()).collect();
            assert!(page.lines.is_empty() || page.lines.len() == lines.len(), "{name}, page {}", page.number);
            assert!(page.aspect.is_some_and(|aspect| (0.5..2.0).contains(&aspect)), "{name}, page {}", page.number);
            n_lines += lines.len();
            n_placed += page.lines.iter().filter(|place| place.width > 0.0 && place.height > 0.0).count();
        }
        assert!(n_placed as f64 >= least * n_lines as f64, "{name}: {n_placed} of {n_lines} lines");
    }
    // Each below the one before, where the maker has put them: at 60 points, the first at 780 of 842.
    let content = "BT /F1 11 Tf 14 TL 60 780 Td (The first line.) Tj T* (The second line.) Tj ET";
    let made = pdf_of(content);
    let places = &Said::of(made, "made.pdf").pages[0].lines;
    let first = places.first().expect("a place");
    assert!((first.x - 60.0 / 595.0).abs() < 0.01 && (first.y - 52.0 / 842.0).abs() < 0.01, "{places:?}");
    assert!(first.width > 0.1 && first.width < 0.3 && first.height > 0.008, "{places:?}");
}

/// The picture of a page: its width and height.
fn drawn(bytes: &[u8], page: u32) -> std::result::Result<(u32, u32), Unreadable> {
    let mut out = Vec::new();
    let source = Source { bytes: bytes.to_vec(), ..Source::default() };
    crate::preview::draw(&source, page, &mut out).expect("written");
    let end = out.iter().position(|byte| *byte == b'\n').expect("a line");
    match serde_json::from_slice(&out[..end]).expect("a line") {
        Line::Picture { bytes } => {
            let jpeg = &out[end + 1..];
            assert_eq!(jpeg.len() as u64, bytes);
            let picture = image::load_from_memory_with_format(jpeg, image::ImageFormat::Jpeg).expect("a JPEG");
            Ok((picture.width(), picture.height()))
        }
        Line::Refused { why, .. } => Err(why),
        line => panic!("{line:?}"),
    }
}

#[test]
fn a_page_is_drawn_small_and_what_has_no_picture_is_refused() {
    let pdf = fixture("handbook.pdf");
    let (width, height) = drawn(&pdf, 1).expect("a picture");
    assert!(height == 1_400 || height == 1_399, "{width} x {height}");
    assert!((900..1_100).contains(&width), "{width} x {height}");
    assert_eq!(drawn(&fixture("scan.pdf"), 1).map(|(width, height)| width.max(height) <= 1_400), Ok(true));
    assert_eq!(drawn(&fixture("two-pages.tif"), 2).map(|(width, height)| width.max(height) <= 1_400), Ok(true));
    assert_eq!(drawn(&fixture("sideways.png"), 1).map(|(width, height)| width.max(height) <= 1_400), Ok(true));
    for (bytes, page, why) in [
        (pdf.clone(), 0, Unreadable::Damaged),
        (pdf.clone(), 9_999, Unreadable::Damaged),
        (fixture("two-pages.tif"), 3, Unreadable::Damaged),
        (fixture("sideways.png"), 2, Unreadable::Damaged),
        (pdf[..pdf.len() / 4].to_vec(), 1, Unreadable::Damaged),
        (b"plain text".to_vec(), 1, Unreadable::UnknownKind),
        (b"MZ\x90\0\x03".to_vec(), 1, Unreadable::Program),
        (Vec::new(), 1, Unreadable::Empty),
    ] {
        assert_eq!(drawn(&bytes, page), Err(why), "page {page} of {} bytes", bytes.len());
    }
}

/// A PDF of one page of A4.
fn pdf_of(content: &str) -> Vec<u8> {
    let objects = [
        "<< /Type /Catalog /Pages 2 0 R >>".to_owned(),
        "<< /Type /Pages /Kids [5 0 R] /Count 1 >>".to_owned(),
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>".to_owned(),
        format!("<< /Length {} >>\nstream\n{content}\nendstream", content.len()),
        "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Resources << /Font << /F1 3 0 R >> >> /Contents 4 0 R >>".to_owned(),
    ];
    let mut file = "%PDF-1.4\n".to_owned();
    let mut table = String::new();
    for (nth, object) in objects.iter().enumerate() {
        table.push_str(&format!("{:010} 00000 n \n", file.len()));
        file.push_str(&format!("{} 0 obj\n{object}\nendobj\n", nth + 1));
    }
    let at = file.len();
    file.push_str(&format!(
        "xref\n0 6\n0000000000 65535 f \n{table}trailer\n<< /Size 6 /Root 1 0 R >>\nstartxref\n{at}\n%%EOF\n"
    ));
    file.into_bytes()
}
