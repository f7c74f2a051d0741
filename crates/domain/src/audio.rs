//! The content types of recordings: recognised by their first bytes, or else by the type that the sender gave.

/// Types that a browser plays and does not render as a page, with their file extensions.
const KNOWN: [(&str, &str); 10] = [
    ("audio/wav", "wav"),
    ("audio/mpeg", "mp3"),
    ("audio/mp4", "m4a"),
    ("audio/ogg", "ogg"),
    ("audio/webm", "webm"),
    ("audio/flac", "flac"),
    ("audio/aac", "aac"),
    ("audio/amr", "amr"),
    ("video/mp4", "mp4"),
    ("video/webm", "webm"),
];

/// Other names of these types.
const ALIASES: [(&str, &str); 11] = [
    ("audio/x-wav", "audio/wav"),
    ("audio/wave", "audio/wav"),
    ("audio/vnd.wave", "audio/wav"),
    ("audio/mp3", "audio/mpeg"),
    ("audio/x-mp3", "audio/mpeg"),
    ("audio/m4a", "audio/mp4"),
    ("audio/x-m4a", "audio/mp4"),
    ("audio/opus", "audio/ogg"),
    ("audio/x-flac", "audio/flac"),
    ("audio/x-aac", "audio/aac"),
    ("audio/aacp", "audio/aac"),
];

pub const UNKNOWN: &str = "application/octet-stream";

/// The number of first bytes that [`kind`] needs.
pub const HEAD_BYTES: usize = 16;

/// Returns the type of a recording: a known one, or [`UNKNOWN`] if only the sender claims that it is audio or video. `None` means that it
/// is not a recording.
pub fn kind(told: Option<&str>, head: &[u8]) -> Option<&'static str> {
    let told = told.unwrap_or_default().split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let named = ALIASES.iter().find(|(alias, _)| *alias == told).map_or(told.as_str(), |(_, name)| name);
    let known = KNOWN.iter().find(|(name, _)| *name == named).map(|(name, _)| *name);
    match (begins_as(head), known) {
        // The same container for audio and video: only the sender knows which it is.
        (Some("audio/webm"), Some("video/webm")) | (Some("video/mp4"), Some("audio/mp4")) => known,
        (Some(seen), _) => Some(seen),
        (None, Some(known)) => Some(known),
        (None, None) => {
            let is_likely = told.starts_with("audio/") || told.starts_with("video/") || told == UNKNOWN;
            is_likely.then_some(UNKNOWN)
        }
    }
}

/// Returns a type that is safe to send to a browser, for any stored type.
pub fn safe(content_type: &str) -> &'static str {
    KNOWN.iter().find(|(name, _)| *name == content_type).map_or(UNKNOWN, |(name, _)| *name)
}

/// Returns the file extension of a type. Transcription services recognise the format by it.
pub fn extension(content_type: &str) -> &'static str {
    KNOWN.iter().find(|(name, _)| *name == content_type).map_or("bin", |(_, end)| *end)
}

fn begins_as(head: &[u8]) -> Option<&'static str> {
    Some(match head {
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'A', b'V', b'E', ..] => "audio/wav",
        [b'I', b'D', b'3', ..] | [0xff, 0xfa | 0xfb | 0xf2 | 0xf3 | 0xe2 | 0xe3, ..] => "audio/mpeg",
        [0xff, 0xf0 | 0xf1 | 0xf8 | 0xf9, ..] => "audio/aac",
        [b'O', b'g', b'g', b'S', ..] => "audio/ogg",
        [b'f', b'L', b'a', b'C', ..] => "audio/flac",
        [b'#', b'!', b'A', b'M', b'R', ..] => "audio/amr",
        [0x1a, 0x45, 0xdf, 0xa3, ..] => "audio/webm",
        [_, _, _, _, b'f', b't', b'y', b'p', b'M', b'4', b'A', ..] => "audio/mp4",
        [_, _, _, _, b'f', b't', b'y', b'p', ..] => "video/mp4",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recording_is_known_by_how_it_begins_and_else_by_what_is_said_of_it() {
        let wav: &[u8] = b"RIFF\x24\0\0\0WAVEfmt ";
        for (told, head, expected) in [
            (Some("audio/wav"), wav, Some("audio/wav")),
            (Some("text/html"), wav, Some("audio/wav")),
            (None, wav, Some("audio/wav")),
            (Some("audio/x-wav; charset=binary"), b"\0\0", Some("audio/wav")),
            (Some("AUDIO/MP3"), b"", Some("audio/mpeg")),
            (Some("audio/wav"), b"ID3\x04", Some("audio/mpeg")),
            (Some("video/webm"), b"\x1a\x45\xdf\xa3", Some("video/webm")),
            (None, b"\x1a\x45\xdf\xa3", Some("audio/webm")),
            (Some("audio/x-m4a"), b"\0\0\0\x20ftypmp42", Some("audio/mp4")),
            (None, b"\0\0\0\x20ftypisom", Some("video/mp4")),
            (Some("audio/basic"), b".snd", Some(UNKNOWN)),
            (Some("application/octet-stream"), b"??", Some(UNKNOWN)),
            (Some("text/html"), b"<html>", None),
            (Some("application/json"), b"{}", None),
            (None, b"<html>", None),
            (None, b"", None),
        ] {
            assert_eq!(kind(told, head), expected, "{told:?} {head:?}");
        }
    }

    #[test]
    fn only_types_of_the_list_reach_a_browser() {
        assert_eq!((safe("audio/wav"), extension("audio/wav")), ("audio/wav", "wav"));
        for odd in ["text/html", "image/svg+xml", "audio/x-evil", "", UNKNOWN] {
            assert_eq!((safe(odd), extension(odd)), (UNKNOWN, "bin"));
        }
    }
}
