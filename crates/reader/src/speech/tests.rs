//! Whole recordings: `fixtures/files/speech/README.md` says where they come from.

use std::path::PathBuf;

use domain::reading::{Line, Page, ReadBy, Unreadable};

use super::SAMPLE_RATE;
use super::recording::Recording;
use crate::{Limits, Models, Source, Stop, read};

fn fixture(name: &str) -> Vec<u8> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/files/speech").join(name);
    std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn lines(bytes: Vec<u8>, models: &Models) -> Vec<Line> {
    let mut out = Vec::new();
    let source = Source { bytes, name: None, media_type: None };
    read(source, Limits::default(), models, &[], &mut out).expect("written");
    let lines = String::from_utf8(out).expect("text");
    let lines = lines.lines().map(|line| serde_json::from_str(line).expect("a line"));
    lines.filter(|line| *line != Line::Alive).collect()
}

fn installed() -> Models {
    let variable =
        |name: &str| PathBuf::from(std::env::var_os(name).unwrap_or_else(|| panic!("{name}: ./test sets it")));
    let speech = Some(variable("SPEECH_MODELS_DIR").join("base"));
    Models { onnxruntime: Some(variable("ONNXRUNTIME_LIB")), speech, ..Models::default() }
}

/// A WAV file of 16-bit samples.
fn wav(samples: &[i16]) -> Vec<u8> {
    let n_bytes = 2 * samples.len() as u32;
    let rate = SAMPLE_RATE as u32;
    let mut file = Vec::new();
    file.extend_from_slice(b"RIFF");
    file.extend_from_slice(&(36 + n_bytes).to_le_bytes());
    file.extend_from_slice(b"WAVEfmt \x10\0\0\0\x01\0\x01\0");
    file.extend_from_slice(&rate.to_le_bytes());
    file.extend_from_slice(&(2 * rate).to_le_bytes());
    file.extend_from_slice(b"\x02\0\x10\0data");
    file.extend_from_slice(&n_bytes.to_le_bytes());
    file.extend(samples.iter().flat_map(|sample| sample.to_le_bytes()));
    file
}

/// Words in small letters, without marks.
fn words(text: &str) -> Vec<String> {
    let word = |word: &str| word.chars().filter(|letter| letter.is_alphanumeric()).collect::<String>().to_lowercase();
    text.split([' ', '-', '\n']).map(word).filter(|word| !word.is_empty()).collect()
}

fn decoded(bytes: &[u8]) -> crate::Result<Vec<f32>> {
    let mut recording = Recording::open(bytes)?;
    let mut samples = Vec::new();
    while recording.next(&mut samples)? {}
    Ok(samples)
}

#[test]
fn recordings_become_words() {
    for (name, expected) in [
        ("call.wav", "the roof of the old warehouse is leaking again we will send somebody on tuesday morning"),
        (
            "note.ogg",
            "thank you for calling customer support your request has been passed to our technical team and one of our engineers will call you back this afternoon",
        ),
        (
            "book.mp3",
            "the lease of the office in lisbon ends in june and the landlord wants to know whether we will stay",
        ),
        ("memo.m4a", "please remember that the invoice of the printing company is still not paid"),
    ] {
        let lines = lines(fixture(name), &installed());
        let [Line::Head { n_pages, .. }, Line::Page(page), Line::End { is_cut: false, language, seconds }] =
            lines.as_slice()
        else {
            panic!("{name}: {lines:?}");
        };
        assert!(n_pages.is_none_or(|n| n == 1), "{name}: {n_pages:?}");
        assert_eq!(language.as_deref(), Some("en"), "{name}");
        assert!(seconds.is_some_and(|seconds| (4..=11).contains(&seconds)), "{name}: {seconds:?}");
        assert_eq!(page.read_by, ReadBy::Speech);
        assert!(page.label.as_deref().is_some_and(|label| label.starts_with("00:00–00:")), "{:?}", page.label);
        assert!(page.confidence.is_some_and(|sure| sure > 0.4 && sure <= 1.0), "{name}: {:?}", page.confidence);
        let (heard, expected) = (words(&page.text), words(expected));
        let n_right = expected.iter().filter(|word| heard.contains(word)).count();
        // A processor without VNNI adds a little otherwise.
        assert!(10 * n_right >= 9 * expected.len() && heard.len() <= expected.len() + 2, "{name}: {}", page.text);
    }
}

#[test]
fn nothing_is_invented_where_nobody_speaks() {
    let secs =
        |secs: usize, sample: &dyn Fn(usize) -> i16| wav(&(0..secs * SAMPLE_RATE).map(sample).collect::<Vec<_>>());
    let hiss = |nth: usize| ((nth as u32).wrapping_mul(2_654_435_761) >> 20) as i16 - 2_048;
    // It is on for two seconds and off for two, so only the model can tell.
    let ringing = |nth: usize| match nth / SAMPLE_RATE % 4 < 2 {
        true => ((nth as f32 * 0.173).sin() * 9_000.0) as i16,
        false => 0,
    };
    for (name, bytes) in [("silence", secs(20, &|_| 0)), ("hiss", secs(20, &hiss)), ("ringing", secs(20, &ringing))] {
        let lines = lines(bytes, &installed());
        let texts: Vec<&str> = lines
            .iter()
            .filter_map(|line| if let Line::Page(Page { text, .. }) = line { Some(text.as_str()) } else { None })
            .collect();
        assert!(texts.iter().all(|text| text.is_empty()), "{name}: {texts:?}");
        assert!(matches!(lines.last(), Some(Line::Refused { why: Unreadable::NoText, .. })), "{name}: {lines:?}");
    }
}

#[test]
fn without_a_model_a_recording_is_not_read() {
    let nowhere = Models { onnxruntime: Some("/nowhere".into()), speech: Some("/nowhere".into()), ..Models::default() };
    for models in [Models::default(), nowhere] {
        let lines = lines(fixture("book.mp3"), &models);
        assert!(
            matches!(lines.as_slice(), [Line::Refused { why: Unreadable::SpeechNotInstalled, .. }]),
            "{models:?}: {lines:?}"
        );
    }
}

#[test]
fn every_coding_becomes_the_same_sound() {
    for (name, secs) in [
        ("call.wav", 7.0),
        ("note.ogg", 10.19),
        ("book.mp3", 5.8),
        ("memo.m4a", 4.66),
        ("line.flac", 2.26),
        ("line.ogg", 2.26),
    ] {
        let samples = decoded(&fixture(name)).unwrap_or_else(|stop| panic!("{name}: {stop:?}"));
        let found = samples.len() as f64 / SAMPLE_RATE as f64;
        assert!((found - secs).abs() < 0.2, "{name}: {found} s");
        let loud = (samples.iter().map(|sample| sample * sample).sum::<f32>() / samples.len() as f32).sqrt();
        assert!((0.005..0.3).contains(&loud), "{name}: {loud}");
    }
}

#[test]
fn broken_recordings_are_refused_or_read_as_far_as_they_go() {
    let why = |bytes: &[u8]| match decoded(bytes) {
        Ok(samples) => Err(samples.len()),
        Err(Stop::Refused(why, _)) => Ok(why),
        Err(stop) => panic!("{stop:?}"),
    };
    for name in ["call.wav", "note.ogg", "book.mp3", "memo.m4a", "line.flac", "line.ogg"] {
        let whole = fixture(name);
        for share in [0, 1, 10, 50, 90] {
            let cut = &whole[..whole.len() * share / 100];
            assert!(
                matches!(why(cut), Ok(Unreadable::Damaged | Unreadable::NoText | Unreadable::UnknownKind) | Err(_)),
                "{name}"
            );
        }
        // Every byte of what is not the head is another one.
        let mut noise = whole.clone();
        noise.iter_mut().enumerate().skip(200).for_each(|(nth, byte)| *byte = (nth * 7 % 251) as u8);
        let _ = why(&noise); // whatever it is, it ends
    }
    assert_eq!(why(&fixture("call.wav")[..40_000]).map_err(|n| n > 16_000), Err(true), "a call that was cut off");
    assert_eq!(why(b"RIFF\x24\0\0\0WAVEfmt "), Ok(Unreadable::Damaged));
    assert_eq!(why(b"ID3\x04\0\0\0\0\0\0"), Ok(Unreadable::Damaged));
}
