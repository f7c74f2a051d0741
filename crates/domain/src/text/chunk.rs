//! Cuts a text into chunks by its content, so that an inserted sentence moves only its neighbours: all other chunks keep their hash, and
//! with it their vector.
//!
//! Every point where a text may be cut has a rank: section before paragraph before sentence (or line) before word before character, and
//! among equals the hash of the few bytes before it. The text is cut at a point when that point ranks first among all points in some
//! stretch longer than `MAX_CHARS`. The result is the same as cutting a long text at its best point, and the halves again, until all
//! are short enough. But whether a point is cut depends on nothing farther away than that stretch, so a change does not travel.
//! (Cutting from the start at each paragraph whose hash says so does not promise that: two ways of cutting can miss each other for many
//! chunks.) A point within `MIN_CHARS` of a better one of its level is passed over; otherwise pieces would often be tiny.

use std::collections::HashMap;
use std::ops::Range;

use super::boundaries::{Kind, lines, sentence_starts, word_starts};

/// A shorter section is no chunk of its own; a shorter piece joins its neighbour where that fits.
pub const MIN_CHARS: usize = 200;
pub const MAX_CHARS: usize = 1_200;

/// The number of bytes before a point that give it its rank: few, so that an edit changes few ranks, but more than the last word.
const RANK_BYTES: usize = 24;

/// A part of a text. Hash and occurrence identify it, whatever changes elsewhere in the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chunk {
    pub text: String,
    pub hash: [u8; 32],
    /// The number of chunks with the same hash before it.
    pub occurrence: i32,
}

/// Cuts a normalised text. No chunk is longer than `MAX_CHARS`, none is blank, and together they hold everything but blanks, in order.
/// A heading starts a chunk, unless the section before it is too short, and is never separated from the text below it.
pub fn chunks(normalised: &str) -> Vec<Chunk> {
    let points = CutPoints::of(normalised);
    let mut pieces = Vec::new();
    let mut start = 0;
    for end in points.firm.iter().copied().chain([normalised.len()]) {
        let mut section = Vec::new();
        points.cut(start..end, Level::Section, &mut section);
        pieces.extend(join_scraps(normalised, section));
        start = end;
    }
    let texts = pieces.into_iter().map(|piece| normalised[piece].trim()).filter(|text| !text.is_empty());
    counted(texts.map(str::to_owned)).collect()
}

/// Cuts a text page by page, so that no chunk is on two pages. Returns each chunk with the position of its page.
pub fn chunks_of_pages<'a>(pages: impl IntoIterator<Item = &'a str>) -> Vec<(usize, Chunk)> {
    let cut =
        pages.into_iter().enumerate().flat_map(|(nth, page)| chunks(page).into_iter().map(move |chunk| (nth, chunk)));
    let (places, texts): (Vec<usize>, Vec<String>) = cut.map(|(nth, chunk)| (nth, chunk.text)).unzip();
    places.into_iter().zip(counted(texts.into_iter())).collect()
}

/// Makes chunks of texts, each with the number of equal ones before it.
fn counted(texts: impl Iterator<Item = String>) -> impl Iterator<Item = Chunk> {
    let mut seen: HashMap<[u8; 32], i32> = HashMap::new();
    texts.map(move |text| {
        let hash = super::sha256(&text);
        let count = seen.entry(hash).or_default();
        *count += 1;
        Chunk { text, hash, occurrence: *count - 1 }
    })
}

#[derive(Clone, Copy)]
enum Level {
    Section,
    Paragraph,
    Sentence,
    Word,
    Character,
}

/// The points where a text may be cut, by level. Each is the first character after the cut, never a blank.
struct CutPoints<'a> {
    text: &'a str,
    /// Starts of sections whose predecessor is long enough to be a chunk: always cut.
    firm: Vec<usize>,
    /// Starts of other sections.
    sections: Vec<usize>,
    /// Starts of paragraphs that are not sections.
    paragraphs: Vec<usize>,
    /// The line after a heading, and a heading that nothing follows: not cut before, unless single words are too long.
    glued: Vec<usize>,
}

impl<'a> CutPoints<'a> {
    fn of(text: &'a str) -> Self {
        let mut points =
            Self { text, firm: Vec::new(), sections: Vec::new(), paragraphs: Vec::new(), glued: Vec::new() };
        let mut starts = Vec::new(); // of sections: a heading, or several with nothing between them
        let (mut after_heading, mut after_blank) = (false, false);
        for line in lines(text) {
            match line.kind {
                Kind::Blank => {
                    after_blank = true;
                    continue;
                }
                _ if after_heading => points.glued.push(line.start),
                Kind::Heading => starts.push(line.start),
                Kind::Text if after_blank => points.paragraphs.push(line.start),
                Kind::Text => {}
            }
            after_heading = matches!(line.kind, Kind::Heading);
            after_blank = false;
        }
        if after_heading {
            points.glued.extend(starts.pop());
            points.glued.sort_unstable();
        }
        let ends = starts.iter().skip(1).copied().chain([text.len()]);
        let is_long = |section: Range<usize>| has_chars(&text[section], MIN_CHARS);
        let mut before = 0;
        for (start, end) in starts.iter().copied().zip(ends) {
            let is_last_scrap = end == text.len() && !is_long(start..end);
            if start > 0 && is_long(before..start) && !is_last_scrap {
                points.firm.push(start);
            } else {
                points.sections.push(start);
            }
            before = start;
        }
        points
    }

    /// Cuts the range into pieces of at most `MAX_CHARS` and adds them to `pieces`.
    fn cut(&self, range: Range<usize>, level: Level, pieces: &mut Vec<Range<usize>>) {
        if !has_chars(&self.text[range.clone()], MAX_CHARS + 1) {
            pieces.push(range);
            return;
        }
        let points = self.ranked(&range, level);
        let total = self.chars(range.clone());
        let best = cuts(&apart(&points, total), 0, total);
        let mut start = CutPoint { at: range.start, chars: 0, rank: 0 };
        let end = CutPoint { at: range.end, chars: total, rank: 0 };
        for stop in best.into_iter().chain([end]) {
            // Too long and no point stands apart: then any point will do.
            if stop.chars - start.chars > MAX_CHARS {
                let low = points.partition_point(|point| point.at <= start.at);
                let high = points.partition_point(|point| point.at < stop.at);
                for inner in cuts(&points[low..high], start.chars, stop.chars) {
                    self.cut_finer(start.at..inner.at, level, pieces);
                    start = inner;
                }
            }
            self.cut_finer(start.at..stop.at, level, pieces);
            start = stop;
        }
    }

    fn cut_finer(&self, range: Range<usize>, level: Level, pieces: &mut Vec<Range<usize>>) {
        let finer = match level {
            Level::Section => Level::Paragraph,
            Level::Paragraph => Level::Sentence,
            Level::Sentence => Level::Word,
            Level::Word | Level::Character => Level::Character,
        };
        self.cut(range, finer, pieces);
    }

    /// Ranks the points of one level strictly inside a range, in order.
    fn ranked(&self, range: &Range<usize>, level: Level) -> Vec<CutPoint> {
        let inside = |points: &[usize]| {
            let low = points.partition_point(|at| *at <= range.start);
            let high = points.partition_point(|at| *at < range.end);
            points[low..high].to_vec()
        };
        let starts = match level {
            Level::Section => inside(&self.sections),
            Level::Paragraph => inside(&self.paragraphs),
            Level::Sentence => {
                let glued = inside(&self.glued);
                let mut starts = sentence_starts(self.text, range.clone());
                starts.retain(|at| glued.binary_search(at).is_err());
                starts
            }
            Level::Word => word_starts(self.text, range.clone()),
            Level::Character => {
                self.text[range.clone()].char_indices().skip(1).map(|(at, _)| range.start + at).collect()
            }
        };
        let (mut last, mut chars) = (range.start, 0);
        let point = |at| {
            chars += self.chars(last..at);
            last = at;
            CutPoint { at, chars, rank: rank(&self.text.as_bytes()[at.saturating_sub(RANK_BYTES)..at]) }
        };
        starts.into_iter().map(point).collect()
    }

    fn chars(&self, range: Range<usize>) -> usize {
        self.text[range].chars().count()
    }
}

/// One point where a range may be cut.
#[derive(Clone, Copy)]
struct CutPoint {
    at: usize,
    /// Characters between the start of the range and here.
    chars: usize,
    /// Lower is better; of equal ones the first is.
    rank: u64,
}

/// Keeps the points that have no better point, and no end of the range, within `MIN_CHARS`.
fn apart(points: &[CutPoint], total: usize) -> Vec<CutPoint> {
    let reaches = reaches(points, 0, total);
    let is_apart = |(point, (left, right)): &(&CutPoint, (usize, usize))| {
        point.chars - left >= MIN_CHARS && right - point.chars >= MIN_CHARS
    };
    points.iter().zip(reaches).filter(is_apart).map(|(point, _)| *point).collect()
}

/// Keeps the points that rank first in a stretch longer than `MAX_CHARS`.
fn cuts(points: &[CutPoint], start: usize, end: usize) -> Vec<CutPoint> {
    let is_cut = |(_, (left, right)): &(&CutPoint, (usize, usize))| right - left > MAX_CHARS;
    points.iter().zip(reaches(points, start, end)).filter(is_cut).map(|(point, _)| *point).collect()
}

/// For each point, where the next better point is to its left and to its right, or else the end of the range.
fn reaches(points: &[CutPoint], start: usize, end: usize) -> Vec<(usize, usize)> {
    let mut reaches = vec![(start, end); points.len()];
    let mut better: Vec<usize> = Vec::new();
    for (i, point) in points.iter().enumerate() {
        while let Some(last) = better.pop_if(|last| points[*last].rank > point.rank) {
            reaches[last].1 = point.chars;
        }
        if let Some(last) = better.last() {
            reaches[i].0 = points[*last].chars;
        }
        better.push(i);
    }
    reaches
}

/// Joins a piece shorter than `MIN_CHARS` to the next one, or else to the one before, where both together are not too long.
fn join_scraps(text: &str, section: Vec<Range<usize>>) -> Vec<Range<usize>> {
    let mut joined: Vec<(Range<usize>, usize)> = Vec::new();
    let join_back = |joined: &mut Vec<(Range<usize>, usize)>| {
        if let [.., (before, chars), (last, scrap_chars)] = joined.as_mut_slice()
            && *scrap_chars < MIN_CHARS
            && *chars + *scrap_chars <= MAX_CHARS
        {
            (before.end, *chars) = (last.end, *chars + *scrap_chars);
            joined.pop();
        }
    };
    for piece in section {
        let piece_chars = text[piece.clone()].chars().count();
        match joined.last_mut() {
            Some((last, chars)) if *chars < MIN_CHARS && *chars + piece_chars <= MAX_CHARS => {
                (last.end, *chars) = (piece.end, *chars + piece_chars);
            }
            _ => {
                join_back(&mut joined);
                joined.push((piece, piece_chars));
            }
        }
    }
    join_back(&mut joined);
    joined.into_iter().map(|(range, _)| range).collect()
}

fn has_chars(text: &str, n: usize) -> bool {
    text.len() >= n && (n == 0 || text.chars().nth(n - 1).is_some())
}

/// FNV-1a with its bits mixed once more: its high bits, which decide, are poor for short input. It is part of `TEXT_VERSION`.
fn rank(bytes: &[u8]) -> u64 {
    let hash = bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3));
    let hash = (hash ^ (hash >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93);
    hash ^ (hash >> 32)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use rand::{RngExt as _, SeedableRng as _, rngs::StdRng};

    use super::super::linear::assert_linear;
    use super::super::normalise;
    use super::*;

    #[test]
    fn a_text_without_words_has_no_chunks() {
        assert!(chunks("").is_empty() && chunks("\n\n  \n").is_empty());
    }

    #[test]
    fn sections_start_chunks_and_scraps_join_what_follows() {
        let body = "Every paragraph of this manual says something that a reader may look for. ".repeat(5);
        let text = format!(
            "# Manual\n\n## Set-up\n\n{body}\n\nUse\n===\n\n{body}\n\n# Note\n\nshort\n\n# End\n\n{body}\n\n# Nothing"
        );
        let starts: Vec<String> = chunks(&normalise(&text))
            .iter()
            .map(|chunk| chunk.text.lines().next().unwrap_or_default().to_owned())
            .collect();
        assert_eq!(starts, ["# Manual", "Use", "# Note"]);
    }

    #[test]
    fn nothing_in_fenced_code_is_a_heading() {
        let code = "# a comment\n\nmake all && make install && echo all is done\n".repeat(6);
        let text = format!("# Build\n\n```sh\n{code}```\n\n# Run\n\n{code}");
        let texts: Vec<String> = chunks(&normalise(&text)).into_iter().map(|chunk| chunk.text).collect();
        assert!(texts[0].starts_with("# Build") && texts[0].ends_with("```"), "{texts:#?}");
        assert!(texts[1].starts_with("# Run"), "{texts:#?}");
    }

    #[test]
    fn no_chunk_is_on_two_pages_and_equal_ones_are_counted_over_all() {
        let long = "Every paragraph of this manual says something that a reader may look for. ".repeat(30);
        let pages = ["Short.", &long, "", "Short."];
        let cut = chunks_of_pages(pages);
        let places: Vec<usize> = cut.iter().map(|(nth, _)| *nth).collect();
        assert_eq!((places.first(), places.last(), places.contains(&2)), (Some(&0), Some(&3), false));
        assert_eq!((cut[0].1.occurrence, cut[cut.len() - 1].1.occurrence), (0, 1));
        assert_eq!(cut[0].1.hash, cut[cut.len() - 1].1.hash);
        let alone = chunks(&long);
        let of_second: Vec<&Chunk> = cut.iter().filter(|(nth, _)| *nth == 1).map(|(_, chunk)| chunk).collect();
        assert_eq!(of_second, alone.iter().collect::<Vec<_>>(), "a page is cut as a text of its own");
    }

    #[test]
    fn equal_chunks_are_counted() {
        let section = format!("# Same\n\n{}\n\n", "The very same words stand in each section. ".repeat(8));
        let list = chunks(&normalise(&section.repeat(3)));
        assert_eq!(list.iter().map(|chunk| chunk.occurrence).collect::<Vec<_>>(), [0, 1, 2]);
        assert_eq!(list.iter().map(|chunk| chunk.hash).collect::<HashSet<_>>().len(), 1);
    }

    #[test]
    fn no_text_is_lost_and_no_chunk_is_too_long() {
        let mut rng = StdRng::seed_from_u64(11);
        let odd = ["# ", "\n", "\n\n", "```\n", "---\n", "===\n", ". ", " ", "。", "é", "漢字", "😀", "\t", "|", "- "];
        for round in 0..400 {
            let mut text = String::new();
            for _ in 0..rng.random_range(0..300) {
                match rng.random_range(0..12) {
                    0..5 => text.push_str(odd[rng.random_range(0..odd.len())]),
                    5 => text.push_str(&"漢".repeat(rng.random_range(0..1_500))),
                    6 => text.push_str(&"ab".repeat(rng.random_range(0..1_500))),
                    _ => text.push_str(&sentence(&mut rng)),
                }
            }
            let text = normalise(&text);
            let list = chunks(&text);
            let solid = |text: &str| text.chars().filter(|c| !c.is_whitespace()).collect::<String>();
            assert_eq!(list.iter().map(|chunk| solid(&chunk.text)).collect::<String>(), solid(&text), "round {round}");
            for chunk in list {
                assert!((1..=MAX_CHARS).contains(&chunk.text.chars().count()) && chunk.text.trim() == chunk.text);
            }
        }
    }

    #[test]
    fn an_inserted_sentence_moves_only_its_neighbours() {
        let mut rng = StdRng::seed_from_u64(7);
        let paragraph = |rng: &mut StdRng| (0..rng.random_range(2..7)).map(|_| sentence(rng)).collect::<String>();
        let texts = [
            ("paragraphs", (0..260).map(|_| paragraph(&mut rng) + "\n\n").collect::<String>()),
            ("one endless paragraph", (0..1_200).map(|_| sentence(&mut rng)).collect()),
            ("lines", (0..1_200).map(|_| sentence(&mut rng).trim_end().to_owned() + "\n").collect()),
        ];
        for (what, text) in texts {
            let text = normalise(&text);
            let identities = |text: &str| chunks(text).into_iter().map(|chunk| (chunk.hash, chunk.occurrence));
            let before: HashSet<_> = identities(&text).collect();
            assert!(before.len() >= 100, "{what}: {} chunks", before.len());
            let mut counts = [0; 6];
            for _ in 0..200 {
                let at = text[..rng.random_range(0..text.len())].rfind(char::is_whitespace).unwrap_or_default();
                let changed = format!("{} {}{}", &text[..at], sentence(&mut rng).trim_end(), &text[at..]);
                let new = identities(&normalise(&changed)).filter(|identity| !before.contains(identity)).count();
                counts[new.min(5)] += 1;
            }
            // Of 30,000 such changes 26 made four new chunks, and none more.
            assert!(counts[0] == 0 && counts[4] <= 1 && counts[5] == 0, "{what}: {counts:?} with 0, 1, 2 … new chunks");
        }
    }

    #[test]
    fn any_text_is_cut_in_linear_time() {
        for unit in ["a", "ok\n", "# h\n", "\n\nx", "word ", "漢", "Yes. ", "```\n"] {
            let [text, four_times] = [1_000_000, 4_000_000].map(|bytes| normalise(&unit.repeat(bytes / unit.len())));
            assert_linear(unit, &text, &four_times, |text| drop(chunks(text)));
            let n = chunks(&four_times).len();
            assert!(n > 1_000 && n < 40_000, "{unit:?} gave {n} chunks");
        }
    }

    fn sentence(rng: &mut StdRng) -> String {
        let words: Vec<String> = (0..rng.random_range(4..22))
            .map(|_| (0..rng.random_range(1..10)).map(|_| char::from(rng.random_range(b'a'..=b'z'))).collect())
            .collect();
        words.join(" ") + ". "
    }
}
