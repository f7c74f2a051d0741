//! Files as they are read: their kinds, what a reader tells of one, and the reasons why there is nothing to tell.
//!
//! The reader is a program of its own (crate `reader`). It writes [`Line`]s, and whoever started it keeps them page by page.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::words;

/// Grows when the same bytes are read otherwise: what an older reader made is read again where a person asks for it.
pub const READER_VERSION: i32 = 1;

words! {
    /// The kind of a file, by its bytes. Names and stated types decide only where bytes do not.
    FileKind {
        Pdf = "pdf",
        Docx = "docx",
        Xlsx = "xlsx",
        Pptx = "pptx",
        Odt = "odt",
        Ods = "ods",
        Odp = "odp",
        Rtf = "rtf",
        Eml = "eml",
        Msg = "msg",
        Html = "html",
        Markdown = "markdown",
        Csv = "csv",
        Tsv = "tsv",
        Text = "text",
        Zip = "zip",
        Image = "image",
        Audio = "audio",
    }
}

impl FileKind {
    /// For people: "a PDF".
    pub fn in_words(self) -> &'static str {
        match self {
            Self::Pdf => "a PDF",
            Self::Docx => "a Word document",
            Self::Xlsx | Self::Ods => "a spreadsheet",
            Self::Pptx | Self::Odp => "a presentation",
            Self::Odt => "an OpenDocument text",
            Self::Rtf => "a rich text",
            Self::Eml | Self::Msg => "an e-mail message",
            Self::Html => "a web page",
            Self::Markdown => "a Markdown text",
            Self::Csv | Self::Tsv => "a table",
            Self::Text => "a plain text",
            Self::Zip => "an archive",
            Self::Image => "a picture",
            Self::Audio => "a recording",
        }
    }

    /// The name of its parts: "page 7", "sheet 2".
    pub fn part(self) -> &'static str {
        match self {
            Self::Xlsx | Self::Ods => "sheet",
            Self::Pptx | Self::Odp => "slide",
            Self::Zip => "file",
            _ => "page",
        }
    }
}

words! {
    /// The steps of a document whose file is read.
    Step {
        /// Whether it is read at all.
        Classify = "classify",
        /// Its pages become text.
        Transcribe = "transcribe",
        /// Its text becomes fields.
        Extract = "extract",
    }
}

/// The request to a reader before the bytes of a file, as one line of JSON.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Request {
    /// The file's own name. It decides only where bytes do not, and is never a path.
    #[serde(default)]
    pub name: Option<String>,
    /// As it was stated. It decides as little.
    #[serde(default)]
    pub media_type: Option<String>,
    /// The number of bytes that follow. Fewer: they broke off, and nothing is told of them.
    #[serde(default)]
    pub bytes: Option<u64>,
    #[serde(default)]
    pub most_pages: Option<u32>,
    /// Pages that are known, so that nobody waits for their pictures again.
    #[serde(default)]
    pub known: Vec<u32>,
    /// The page, from 1, that is drawn instead of reading the file.
    #[serde(default)]
    pub draw: Option<u32>,
    /// The library and the models by which letters and speech are recognised. None: nothing is recognised.
    #[serde(default)]
    pub models: Models,
}

/// The files by which letters and speech are recognised.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Models {
    /// ONNX Runtime's library.
    #[serde(default)]
    pub onnxruntime: Option<PathBuf>,
    /// The folder of the models for letters.
    #[serde(default)]
    pub ocr: Option<PathBuf>,
    /// The folder of the model for speech.
    #[serde(default)]
    pub speech: Option<PathBuf>,
    /// The threads on which the model for speech runs; 0 is one.
    #[serde(default)]
    pub threads: usize,
}

impl Models {
    pub fn threads(&self) -> usize {
        self.threads.max(1)
    }
}

words! {
    /// By what a page was read.
    ReadBy {
        /// It is stored as text.
        Text = "text",
        /// Letters were recognised in a picture.
        Ocr = "ocr",
        /// Words were recognised in speech.
        Speech = "speech",
    }
}

words! {
    /// The reasons why a file is not read.
    Unreadable {
        Empty = "empty",
        NoText = "no_text",
        Encrypted = "encrypted",
        Damaged = "damaged",
        UnknownKind = "unknown_kind",
        Program = "program",
        Bomb = "bomb",
        TooLarge = "too_large",
        TooManyPages = "too_many_pages",
        TooSlow = "too_slow",
        TooMuchMemory = "too_much_memory",
        Unsafe = "unsafe",
        OcrNotInstalled = "ocr_not_installed",
        SpeechNotInstalled = "speech_not_installed",
        /// Its bytes are no longer stored.
        Missing = "blob_missing",
    }
}

impl Unreadable {
    /// Whether there is nothing wrong: the file has nothing to read, or nothing reads it here. Others are failures.
    pub fn is_skipped(self) -> bool {
        use Unreadable::*;
        matches!(self, Empty | NoText | Encrypted | UnknownKind | Program | OcrNotInstalled | SpeechNotInstalled)
    }

    /// Whether another try may end otherwise: the machine was busy, or somebody ended the reader.
    pub fn may_pass(self) -> bool {
        use Unreadable::*;
        matches!(self, TooSlow | TooMuchMemory | Unsafe)
    }

    /// For people, after "It was not read: ".
    pub fn in_words(self) -> &'static str {
        match self {
            Self::Empty => "the file has no bytes",
            Self::NoText => "there is no text in it",
            Self::Encrypted => "it is locked with a password",
            Self::Damaged => "the file is damaged",
            Self::UnknownKind => "files of this kind are not read",
            Self::Program => "it is a program, whatever its name says",
            Self::Bomb => "it unpacks to far more than a file of its size should",
            Self::TooLarge => "it is larger than what is read",
            Self::TooManyPages => "it has more pages than what is read",
            Self::TooSlow => "reading it took too long",
            Self::TooMuchMemory => "reading it needs more memory than a file may use",
            Self::Unsafe => "the program that reads files died of it",
            Self::OcrNotInstalled => "it is a scan, and nothing here recognises letters in pictures",
            Self::SpeechNotInstalled => "it is a recording, and nothing here recognises speech",
            Self::Missing => "its bytes are missing in the blob store",
        }
    }
}

/// A page, sheet or slide, or all of a text without pages.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Page {
    /// From 1.
    pub number: u32,
    /// The sheet's name, the slide's title, the file's name in an archive.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// As Markdown: headings and tables are kept.
    pub text: String,
    pub read_by: ReadBy,
    /// From 0 to 1, where letters or words were recognised.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confidence: Option<f32>,
    /// The reason why it has no text, or not all of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trouble: Option<Unreadable>,
    /// Its width as a share of its height, if it can be drawn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub aspect: Option<f32>,
    /// Where the lines of its text are, those that are not empty, if that is known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lines: Vec<LinePlace>,
}

/// The place of a line, as shares of the page's width and height from its top left. One without a width is not known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LinePlace {
    pub x: f32,
    pub y: f32,
    pub width: f32,
    pub height: f32,
}

impl LinePlace {
    /// Places in few bytes: each of the four shares in two.
    pub fn pack(places: &[Self]) -> Vec<u8> {
        let shares = places.iter().flat_map(|place| [place.x, place.y, place.width, place.height]);
        shares.flat_map(|share| ((share.clamp(0.0, 1.0) * f32::from(u16::MAX)).round() as u16).to_be_bytes()).collect()
    }

    pub fn unpack(packed: &[u8]) -> Vec<Self> {
        let share = |two: &[u8; 2]| f32::from(u16::from_be_bytes(*two)) / f32::from(u16::MAX);
        let (shares, _) = packed.as_chunks::<2>();
        let (places, _) = shares.as_chunks::<4>();
        let place = |[x, y, width, height]: &[[u8; 2]; 4]| Self {
            x: share(x),
            y: share(y),
            width: share(width),
            height: share(height),
        };
        places.iter().map(place).collect()
    }
}

/// A line of what a reader writes: a head, pages, an end. Or a refusal, before the head or after some pages.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "line", rename_all = "snake_case")]
pub enum Line {
    Head {
        kind: FileKind,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        title: Option<String>,
        /// None: it is known at the end.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        n_pages: Option<u32>,
        /// The length of a recording.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        seconds: Option<u32>,
    },
    Page(Page),
    /// It is at work, on what makes no page yet.
    Alive,
    /// The page that was to be drawn. So many bytes of a JPEG follow the line.
    Picture {
        bytes: u64,
    },
    End {
        /// There is more text than is read of one file.
        is_cut: bool,
        /// The language in which somebody speaks, as ISO 639 shortens it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        language: Option<String>,
        /// The seconds of a recording that were heard.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        seconds: Option<u32>,
    },
    Refused {
        why: Unreadable,
        /// More exactly, in words of the reader: never text of the file.
        detail: String,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_reads_back_as_what_it_was() {
        let page = Page {
            number: 7,
            label: Some("Prices".into()),
            text: "| a | b |".into(),
            read_by: ReadBy::Text,
            confidence: None,
            trouble: None,
            aspect: Some(0.7),
            lines: Vec::new(),
        };
        let lines = [
            Line::Head { kind: FileKind::Xlsx, title: None, n_pages: Some(3), seconds: None },
            Line::Head { kind: FileKind::Audio, title: None, n_pages: None, seconds: Some(67) },
            Line::Page(page),
            Line::Picture { bytes: 12 },
            Line::End { is_cut: false, language: None, seconds: None },
            Line::End { is_cut: false, language: Some("en".into()), seconds: Some(67) },
            Line::Refused { why: Unreadable::Encrypted, detail: "a password".into() },
        ];
        for line in lines {
            let written = serde_json::to_string(&line).expect("JSON");
            assert!(!written.contains('\n'));
            assert_eq!(serde_json::from_str::<Line>(&written).expect("a line"), line, "{written}");
        }
        assert_eq!(
            serde_json::to_string(&Line::End { is_cut: true, language: None, seconds: None }).expect("JSON"),
            r#"{"line":"end","is_cut":true}"#
        );
    }

    #[test]
    fn places_are_packed_to_a_hundredth_of_a_percent() {
        let place = LinePlace { x: 0.1, y: 0.25, width: 0.8, height: 0.0123 };
        let packed = LinePlace::pack(&[place, LinePlace::default(), LinePlace { x: -1.0, y: 2.0, ..place }]);
        assert_eq!(packed.len(), 24);
        let places = LinePlace::unpack(&packed);
        let near = |a: f32, b: f32| (a - b).abs() < 1e-4;
        assert!(near(places[0].x, place.x) && near(places[0].y, place.y), "{places:?}");
        assert!(near(places[0].width, place.width) && near(places[0].height, place.height), "{places:?}");
        assert_eq!((places[1], places[2].x, places[2].y), (LinePlace::default(), 0.0, 1.0));
        assert_eq!(LinePlace::unpack(&packed[..9]), places[..1], "half a place is none");
    }

    #[test]
    fn what_may_pass_is_no_final_word_about_the_file() {
        assert!(Unreadable::ALL.into_iter().all(|why| !(why.is_skipped() && why.may_pass())));
        assert!(Unreadable::ALL.into_iter().all(|why| !why.in_words().is_empty()));
    }
}
