//! Files that are made to do harm, and what they are made of. None is kept: they are made while the tests run.

use std::io::{Cursor, Write as _};

use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

/// An archive of these files.
pub fn packed<B: AsRef<[u8]>>(files: &[(&str, B)]) -> Vec<u8> {
    let options = SimpleFileOptions::default().compression_method(CompressionMethod::Deflated);
    let mut archive = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, content) in files {
        archive.start_file(*name, options).expect("a file");
        archive.write_all(content.as_ref()).expect("written");
    }
    archive.finish().expect("an archive").into_inner()
}

/// A Word document with this body.
pub fn docx(body: &str) -> Vec<u8> {
    let document = format!(r#"<w:document xmlns:w="w"><w:body>{body}</w:body></w:document>"#);
    packed(&[("word/document.xml", document)])
}

/// A spreadsheet with these rows and shared texts.
pub fn xlsx(rows: &str, strings: &str, n_sheets: usize) -> Vec<u8> {
    let sheet = |n: usize| format!(r#"<sheet name="S{n}" sheetId="{n}" r:id="r1"/>"#);
    let sheets: String = (1..=n_sheets).map(sheet).collect();
    packed(&[
        ("xl/workbook.xml", format!("<workbook><sheets>{sheets}</sheets></workbook>")),
        (
            "xl/_rels/workbook.xml.rels",
            r#"<Relationships><Relationship Id="r1" Type="x/worksheet" Target="worksheets/sheet1.xml"/></Relationships>"#
                .to_owned(),
        ),
        ("xl/worksheets/sheet1.xml", format!("<worksheet><sheetData>{rows}</sheetData></worksheet>")),
        ("xl/sharedStrings.xml", format!("<sst>{strings}</sst>")),
    ])
}

/// An OpenDocument file with this content.
pub fn opendocument(kind: &str, body: &str) -> Vec<u8> {
    packed(&[
        ("mimetype", format!("application/vnd.oasis.opendocument.{kind}")),
        (
            "content.xml",
            format!("<office:document-content><office:body>{body}</office:body></office:document-content>"),
        ),
    ])
}

/// An archive in an archive, and so on.
pub fn nested(depth: usize) -> Vec<u8> {
    let mut inner = packed(&[("deepest.txt", "found")]);
    for _ in 1..depth {
        inner = packed(&[("inner.zip", inner)]);
    }
    inner
}

/// A PDF of these objects, numbered from 1. The first is the catalog.
pub fn pdf_of(objects: &[String]) -> Vec<u8> {
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

pub fn stream(dictionary: &str, content: &str) -> String {
    format!("<< {dictionary} /Length {} >>\nstream\n{content}\nendstream", content.len())
}

/// A PDF in which each page says its number.
pub fn pdf(n_pages: usize) -> Vec<u8> {
    let mut objects = vec!["<< /Type /Catalog /Pages 2 0 R >>".to_owned(), String::new()];
    objects.push("<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>".to_owned());
    let mut kids = String::new();
    for number in 1..=n_pages {
        let line = |y: u32, text: String| format!("BT /F1 12 Tf 72 {y} Td ({text}) Tj ET ");
        let text = line(720, format!("The number of this sheet is {number} exactly."))
            + &line(700, "Rent falls due on the third working day of every month.".into());
        objects.push(stream("", &text));
        let content = objects.len();
        objects.push(format!(
            "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Resources << /Font << /F1 3 0 R >> >> /Contents {content} 0 R >>"
        ));
        kids.push_str(&format!("{} 0 R ", objects.len()));
    }
    objects[1] = format!("<< /Type /Pages /Kids [{kids}] /Count {n_pages} >>");
    pdf_of(&objects)
}

/// A PDF of one page with this content and these further objects, from number 5.
pub fn pdf_page(content: String, resources: &str, more: &[String]) -> Vec<u8> {
    let mut objects = vec![
        "<< /Type /Catalog /Pages 2 0 R >>".to_owned(),
        "<< /Type /Pages /Kids [3 0 R] /Count 1 >>".to_owned(),
        format!("<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Resources << {resources} >> /Contents 4 0 R >>"),
        content,
    ];
    objects.extend_from_slice(more);
    pdf_of(&objects)
}

/// Bytes with some changed, always the same ones for a seed.
pub fn flipped(bytes: &[u8], seed: u64) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    for _ in 0..(bytes.len() / 200).max(8) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        let at = (state % bytes.len() as u64) as usize;
        bytes[at] ^= (state >> 40) as u8;
    }
    bytes
}

/// A message with this many parts.
pub fn eml(n_parts: usize) -> Vec<u8> {
    let part = "--b\r\nContent-Type: text/plain\r\n\r\nA part of many.\r\n".repeat(n_parts);
    format!("From: a@x.example\r\nTo: b@y.example\r\nSubject: Many\r\nMIME-Version: 1.0\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n{part}--b--\r\n")
        .into_bytes()
}

/// A compound file with these streams.
pub fn compound(streams: &[&str]) -> Vec<u8> {
    let mut file = cfb::CompoundFile::create(Cursor::new(Vec::new())).expect("a file");
    for name in streams {
        file.create_stream(name).expect("a stream").write_all(b"content").expect("written");
    }
    file.flush().expect("written");
    file.into_inner().into_inner()
}
