//! Whole pictures through the models. ./test fetches these and says where they are.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use domain::reading::{Line, Page, ReadBy, Unreadable};

use domain::reading::Models;

use crate::{Limits, Source, read};

fn models() -> Models {
    let path =
        |name: &str| PathBuf::from(std::env::var_os(name).unwrap_or_else(|| panic!("{name} is not set: run ./test")));
    let ocr = Some(path("READING_MODELS_DIR").join("ocr"));
    Models { onnxruntime: Some(path("ONNXRUNTIME_LIB")), ocr, speech: None, threads: 1 }
}

fn fixture(name: &str) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/files").join(name);
    std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The pages of a file, and why it was refused.
fn said(bytes: Vec<u8>, models: &Models) -> (Vec<Page>, Option<Unreadable>) {
    let (mut out, mut pages, mut refused) = (Vec::new(), Vec::new(), None);
    read(Source { bytes, ..Source::default() }, Limits::default(), models, &[], &mut out).expect("written");
    for line in String::from_utf8(out).expect("text").lines() {
        match serde_json::from_str(line).expect("a line") {
            Line::Page(page) => pages.push(page),
            Line::Refused { why, .. } => refused = Some(why),
            _ => {}
        }
    }
    (pages, refused)
}

/// The share of words that were read right.
fn share(text: &str, expected: &str) -> f64 {
    let mut words: HashMap<&str, i32> = HashMap::new();
    text.split_whitespace().for_each(|word| *words.entry(word).or_default() += 1);
    let (mut n_right, mut n_all) = (0, 0);
    for word in expected.split_whitespace() {
        let left = words.entry(word).or_default();
        n_right += i32::from(*left > 0);
        n_all += 1;
        *left -= 1;
    }
    f64::from(n_right) / f64::from(n_all)
}

#[test]
fn scans_are_read_whatever_holds_them_and_whichever_way_up_they_are() {
    let text = |name: &str| String::from_utf8(fixture(name)).expect("text");
    let (letter, invoice) = (text("scan.txt"), text("invoice.txt"));
    for (name, expected) in [
        ("scan.pdf", vec![&letter]),
        ("two-pages.tif", vec![&letter, &invoice]),
        ("sideways.png", vec![&invoice]),
        ("noisy.jpg", vec![&invoice]), // and tilted by three degrees
    ] {
        let (pages, refused) = said(fixture(name), &models());
        assert_eq!((pages.len(), refused), (expected.len(), None), "{name}");
        for (page, expected) in pages.iter().zip(expected) {
            let right = share(&page.text, expected);
            assert!(right >= 0.97, "{name}: {right}, {}", page.text);
            assert_eq!(page.read_by, ReadBy::Ocr);
            assert!(page.confidence.is_some_and(|confidence| confidence > 0.9), "{name}: {:?}", page.confidence);
            let n_lines = page.text.lines().filter(|line| !line.is_empty()).count();
            assert_eq!(page.lines.len(), n_lines, "{name}: a place for each line");
        }
    }
}

#[test]
fn the_place_of_a_line_is_that_in_the_picture_as_it_lies() {
    // The invoice lies on its right side: its title, at the top left, is at the top right.
    let (pages, _) = said(fixture("sideways.png"), &models());
    assert!(pages[0].text.starts_with("Invoice No. INV-2026-00417"), "{}", pages[0].text);
    let title = pages[0].lines[0];
    assert!(title.x > 0.85 && title.y < 0.15 && title.height > 3.0 * title.width, "{title:?}");
    // The cells of a row are one line.
    assert!(pages[0].text.contains("Straw bale\t42\t198.22\t8,325.24"), "{}", pages[0].text);
}

#[test]
fn a_picture_is_refused_in_words_where_it_cannot_be_read() {
    let mut huge = b"BM".to_vec();
    huge.extend([0, 0, 0, 0, 0, 0, 0, 0, 54, 0, 0, 0, 40, 0, 0, 0]);
    huge.extend(40_000_u32.to_le_bytes());
    huge.extend(40_000_u32.to_le_bytes());
    huge.extend([1, 0, 24, 0]);
    huge.extend([0; 24]);
    let none = Models::default();
    let broken = Models { ocr: Some("nowhere".into()), ..models() };
    let blank = image::GrayImage::from_pixel(200, 200, image::Luma([255]));
    let mut empty = std::io::Cursor::new(Vec::new());
    blank.write_to(&mut empty, image::ImageFormat::Png).expect("written");
    for (what, bytes, models, expected) in [
        ("without models", fixture("sideways.png"), &none, Unreadable::OcrNotInstalled),
        ("without their files", fixture("sideways.png"), &broken, Unreadable::OcrNotInstalled),
        ("a scan without models", fixture("scan.pdf"), &none, Unreadable::OcrNotInstalled),
        ("a huge picture", huge, &models(), Unreadable::TooLarge),
        ("half a picture", fixture("sideways.png")[..5_000].to_vec(), &models(), Unreadable::Damaged),
        ("a blank picture", empty.into_inner(), &models(), Unreadable::NoText),
    ] {
        assert_eq!(said(bytes, models).1, Some(expected), "{what}");
    }
}
