//! The words of an invitation, and of an answer to one.

use super::head;

/// Longer calendars are whole diaries, and not read to their end.
const MOST_BYTES: usize = 256 * 1024;
const MOST_EVENTS: usize = 5;

#[derive(Default)]
struct Event {
    summary: Option<String>,
    begins: Option<When>,
    ends: Option<When>,
    place: Option<String>,
    organizer: Option<String>,
    /// Whether it repeats.
    repeats: bool,
    /// The answers of those who were asked.
    answers: Vec<String>,
}

struct When {
    time: String,
    zone: Option<String>,
}

/// Returns what, when, where and by whom. None: it has no event.
pub(super) fn in_words(text: &str) -> Option<String> {
    let text = &text[..text.floor_char_boundary(MOST_BYTES)];
    let mut method = String::new();
    let mut events: Vec<Event> = Vec::new();
    let mut is_in_event = false;
    for line in unfolded(text) {
        let Some((name, parameters, value)) = property(&line) else { continue };
        match (name.as_str(), is_in_event) {
            ("BEGIN", _) if value.eq_ignore_ascii_case("VEVENT") => {
                if events.len() == MOST_EVENTS {
                    break;
                }
                events.push(Event::default());
                is_in_event = true;
            }
            ("END", _) if value.eq_ignore_ascii_case("VEVENT") => is_in_event = false,
            ("METHOD", false) => method = value.to_ascii_uppercase(),
            (name, true) => {
                if let Some(event) = events.last_mut() {
                    event.take(name, parameters, value);
                }
            }
            _ => {}
        }
    }
    let words: Vec<String> = events.iter().map(|event| event.in_words(&method)).collect();
    (!words.is_empty()).then(|| words.join("\n\n"))
}

impl Event {
    fn take(&mut self, name: &str, parameters: &str, value: &str) {
        let words = || Some(head::line(&unescaped(value))).filter(|words| !words.is_empty());
        match name {
            "SUMMARY" => self.summary = words(),
            "LOCATION" => self.place = words(),
            "DTSTART" => self.begins = When::read(parameters, value),
            "DTEND" => self.ends = When::read(parameters, value),
            "RRULE" => self.repeats = true,
            "ORGANIZER" => self.organizer = Some(person(parameters, value)),
            "ATTENDEE" if self.answers.len() < 20 => {
                let answer = match parameter(parameters, "PARTSTAT").map(|state| state.to_ascii_uppercase()).as_deref()
                {
                    Some("ACCEPTED") => "accepts",
                    Some("DECLINED") => "declines",
                    Some("TENTATIVE") => "may come",
                    _ => return,
                };
                self.answers.push(format!("{} {answer}", person(parameters, value)));
            }
            _ => {}
        }
    }

    fn in_words(&self, method: &str) -> String {
        let what = match method {
            "REQUEST" => "Invitation",
            "CANCEL" => "Cancelled meeting",
            "REPLY" => "Answer to an invitation",
            "COUNTER" => "Proposal of another time",
            _ => "Calendar entry",
        };
        let mut words = format!("# {what}: {}", self.summary.as_deref().unwrap_or("without a title"));
        let mut line = |name: &str, value: Option<&str>| {
            if let Some(value) = value {
                words.push_str(&format!("\n{name}: {value}"));
            }
        };
        let when = self.begins.as_ref().map(|begins| begins.until(self.ends.as_ref(), self.repeats));
        line("When", when.as_deref());
        line("Where", self.place.as_deref());
        line("Organizer", self.organizer.as_deref());
        // An invitation lists its guests as having accepted already: the organizer, mostly.
        let answers = (method == "REPLY").then(|| self.answers.join(", ")).filter(|answers| !answers.is_empty());
        line("Answer", answers.as_deref());
        words
    }
}

impl When {
    fn read(parameters: &str, value: &str) -> Option<Self> {
        let digits =
            |from: usize, to: usize| value.get(from..to).filter(|text| text.bytes().all(|b| b.is_ascii_digit()));
        let day = format!("{}-{}-{}", digits(0, 4)?, digits(4, 6)?, digits(6, 8)?);
        let Some((hour, minute)) = value.get(8..9).filter(|t| *t == "T").and(digits(9, 11).zip(digits(11, 13))) else {
            return Some(Self { time: day, zone: None });
        };
        let zone = match value.ends_with('Z') {
            true => Some("UTC".to_owned()),
            false => parameter(parameters, "TZID").map(head::line),
        };
        Some(Self { time: format!("{day} {hour}:{minute}"), zone })
    }

    fn until(&self, end: Option<&Self>, repeats: bool) -> String {
        let mut words = self.time.clone();
        if let Some(end) = end.filter(|end| end.time != self.time) {
            // The day is not said twice.
            let day = self.time.get(..11).unwrap_or(&self.time);
            words.push_str(&format!(" to {}", end.time.strip_prefix(day).unwrap_or(&end.time)));
        }
        if let Some(zone) = &self.zone {
            words.push_str(&format!(" ({zone})"));
        }
        if repeats {
            words.push_str(", repeated");
        }
        words
    }
}

fn person(parameters: &str, value: &str) -> String {
    let address = value.get(..7).filter(|scheme| scheme.eq_ignore_ascii_case("mailto:")).map_or(value, |_| &value[7..]);
    let address = head::line(address);
    match parameter(parameters, "CN").map(head::line).filter(|name| !name.is_empty() && *name != address) {
        Some(name) => format!("{name} <{address}>"),
        None => address,
    }
}

/// The lines of a calendar. A line that begins with a blank goes on with the one before it.
fn unfolded(text: &str) -> impl Iterator<Item = String> {
    let mut lines = text.lines().map(|line| line.trim_end_matches('\r')).peekable();
    std::iter::from_fn(move || {
        let mut line = lines.next()?.to_owned();
        while let Some(more) = lines.next_if(|line| line.starts_with([' ', '\t'])) {
            line.push_str(&more[1..]);
        }
        Some(line)
    })
}

/// Name, parameters and value of a line. A colon within quotes is part of a parameter.
fn property(line: &str) -> Option<(String, &str, &str)> {
    let mut is_quoted = false;
    let colon = line.char_indices().find(|(_, c)| {
        is_quoted ^= *c == '"';
        *c == ':' && !is_quoted
    });
    let (head, value) = (&line[..colon?.0], &line[colon?.0 + 1..]);
    let (name, parameters) = head.split_once(';').unwrap_or((head, ""));
    Some((name.trim().to_ascii_uppercase(), parameters, value.trim()))
}

fn parameter<'a>(parameters: &'a str, name: &str) -> Option<&'a str> {
    let mut is_quoted = false;
    parameters
        .split(move |c: char| {
            is_quoted ^= c == '"';
            c == ';' && !is_quoted
        })
        .filter_map(|one| one.split_once('='))
        .find(|(known, _)| known.trim().eq_ignore_ascii_case(name))
        .map(|(_, value)| value.trim_matches('"'))
}

fn unescaped(value: &str) -> String {
    let mut text = String::with_capacity(value.len());
    let mut chars = value.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some('n' | 'N') => text.push(' '),
                Some(escaped) => text.push(escaped),
                None => {}
            },
            c => text.push(c),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_invitation_is_told_in_words() {
        for (text, expected) in [
            (
                "BEGIN:VCALENDAR\r\nMETHOD:REQUEST\r\nBEGIN:VTIMEZONE\r\nDTSTART:16010101T000000\r\nEND:VTIMEZONE\r\nBEGIN:VEVENT\r\n\
                 SUMMARY;LANGUAGE=en:Site visit\\, Bay\r\n view\r\nDTSTART;TZID=\"Europe/Berlin\":20260303T100000\r\n\
                 DTEND;TZID=Europe/Berlin:20260303T113000\r\nLOCATION:Pier 4\\nGate B\r\n\
                 ORGANIZER;CN=\"Lee: Ann\":MAILTO:ann@example.com\r\nATTENDEE;PARTSTAT=ACCEPTED:mailto:ann@example.com\r\n\
                 END:VEVENT\r\nEND:VCALENDAR",
                "# Invitation: Site visit, Bayview\nWhen: 2026-03-03 10:00 to 11:30 (Europe/Berlin)\nWhere: Pier 4 Gate B\n\
                 Organizer: Lee: Ann <ann@example.com>",
            ),
            (
                "METHOD:REPLY\nBEGIN:VEVENT\nSUMMARY:Visit\nDTSTART:20260303T090000Z\nATTENDEE;CN=Bob;PARTSTAT=DECLINED:mailto:bob@x.com\nEND:VEVENT",
                "# Answer to an invitation: Visit\nWhen: 2026-03-03 09:00 (UTC)\nAnswer: Bob <bob@x.com> declines",
            ),
            (
                "METHOD:CANCEL\nBEGIN:VEVENT\nDTSTART;VALUE=DATE:20260303\nDTEND;VALUE=DATE:20260305\nRRULE:FREQ=DAILY\nEND:VEVENT",
                "# Cancelled meeting: without a title\nWhen: 2026-03-03 to 2026-03-05, repeated",
            ),
            ("BEGIN:VEVENT\nSUMMARY:never ends\nDTSTART:2026", "# Calendar entry: never ends"),
        ] {
            assert_eq!(in_words(text).as_deref(), Some(expected), "of {text:?}");
        }
        for none in ["", "nonsense", "BEGIN:VTODO\nSUMMARY:x\nEND:VTODO", ":::", "\u{e9}:\u{e9}"] {
            assert_eq!(in_words(none), None, "of {none:?}");
        }
    }
}
