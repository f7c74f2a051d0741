//! How well and how fast speech is heard: 20 recordings whose words are known (`fixtures/files/speech/heard`), each by a process of its own, as calls are.

use std::path::{Path, PathBuf};

use domain::reading::Models;

use crate::child;

/// The share of wrong words that is allowed, of people and of all. Measured: see docs/adr/0045-eyes-and-ears.md.
const MOST_WRONG_OF_PEOPLE: f64 = 0.15;
const MOST_WRONG: f64 = 0.15;
/// Seconds of one core for a second of sound, with the time that it takes to open the model.
const MOST_EFFORT: f64 = 1.0;
const MOST_MIB: u64 = 900;

fn models() -> Models {
    let variable =
        |name: &str| PathBuf::from(std::env::var_os(name).unwrap_or_else(|| panic!("{name}: ./test sets it")));
    let speech = Some(variable("SPEECH_MODELS_DIR").join("base"));
    Models { onnxruntime: Some(variable("ONNXRUNTIME_LIB")), speech, ..Models::default() }
}

/// Words in small letters, without marks. Numbers are spelt, as the known words are.
fn words(text: &str) -> Vec<String> {
    const NUMBERS: [&str; 11] = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"];
    let spelt = |word: &str| {
        let word: String = word.chars().filter(|letter| letter.is_alphanumeric()).collect::<String>().to_lowercase();
        match (word.parse::<usize>().ok().and_then(|number| NUMBERS.get(number)), word.as_str()) {
            (Some(spelt), _) => (*spelt).to_owned(),
            (None, "mr") => "mister".to_owned(),
            (None, "metres") => "meters".to_owned(),
            _ => word,
        }
    };
    text.split([' ', '-', '\n']).map(spelt).filter(|word| !word.is_empty()).collect()
}

/// The words that have to be changed, added or removed.
fn n_wrong(expected: &[String], heard: &[String]) -> usize {
    let mut row: Vec<usize> = (0..=heard.len()).collect();
    for (nth, word) in expected.iter().enumerate() {
        let mut before = std::mem::replace(&mut row[0], nth + 1);
        for (at, other) in heard.iter().enumerate() {
            let changed = before + usize::from(word != other);
            before = row[at + 1];
            row[at + 1] = changed.min(row[at] + 1).min(before + 1);
        }
    }
    row[heard.len()]
}

#[test]
fn wrong_words_are_counted_as_the_fewest_changes() {
    for (expected, heard, wrong) in [
        ("a b c", "a b c", 0),
        ("a b c", "a x c", 1),
        ("a b c", "a c", 1),
        ("a b", "a b c d", 2),
        ("a", "", 1),
        ("", "a", 1),
    ] {
        assert_eq!(n_wrong(&words(expected), &words(heard)), wrong, "{expected} / {heard}");
    }
    assert_eq!(words("Mr. Dashwood: 10-five\nMetres!"), ["mister", "dashwood", "ten", "five", "meters"]);
}

#[test]
fn twenty_recordings_are_heard_well_and_faster_than_they_were_spoken() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/files/speech/heard");
    let table = std::fs::read_to_string(folder.join("words.tsv")).expect("the known words");
    let (mut all, mut of_people) = ((0, 0), (0, 0));
    let (mut sound_secs, mut cpu_secs, mut most_mib, mut n) = (0.0, 0.0, 0, 0);
    println!(
        "{:<14} {:<10} {:>5} {:>6} {:>6} {:>6} {:>6} {:>5}",
        "recording", "voice", "s", "words", "wrong", "CPU s", "MiB", "sure"
    );
    for line in table.lines() {
        let [name, voice, expected] = line.split('\t').collect::<Vec<_>>()[..] else { panic!("{line}") };
        let bytes = std::fs::read(folder.join(name)).expect("a recording");
        let ended = child::run_with(&bytes, name, &models());
        let said = ended.said.as_ref().unwrap_or_else(|| panic!("{name}: the reader died"));
        let (expected, heard) = (words(expected), words(&said.text()));
        let wrong = n_wrong(&expected, &heard);
        let secs = said.seconds.map_or(0.0, f64::from);
        let sure = said.pages.first().and_then(|page| page.confidence).unwrap_or_default();
        println!(
            "{name:<14} {voice:<10} {secs:>5} {:>6} {wrong:>6} {:>6.2} {:>6} {sure:>5.2}{}",
            expected.len(),
            ended.cpu_secs,
            ended.peak_mib,
            if wrong > 0 { format!("  {}", said.text()) } else { String::new() }
        );
        all = (all.0 + wrong, all.1 + expected.len());
        if voice == "person" {
            of_people = (of_people.0 + wrong, of_people.1 + expected.len());
        }
        (sound_secs, cpu_secs, most_mib, n) =
            (sound_secs + secs, cpu_secs + ended.cpu_secs, most_mib.max(ended.peak_mib), n + 1);
    }
    let share = |(wrong, of): (usize, usize)| wrong as f64 / of as f64;
    let effort = cpu_secs / sound_secs;
    println!(
        "{n} recordings, {sound_secs} s: {:.1} % of {} words wrong ({:.1} % of the {} of people), {effort:.2} s of one core for a second, {most_mib} MiB",
        100.0 * share(all),
        all.1,
        100.0 * share(of_people),
        of_people.1
    );
    assert_eq!(n, 20);
    assert!(share(all) <= MOST_WRONG && share(of_people) <= MOST_WRONG_OF_PEOPLE, "{all:?} {of_people:?}");
    assert!(
        sound_secs > 80.0 && effort <= MOST_EFFORT && most_mib <= MOST_MIB,
        "{sound_secs} s, {effort}, {most_mib} MiB"
    );
}
