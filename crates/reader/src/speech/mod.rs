//! Recognises speech by Whisper: the recording is decoded, cut into windows of 30 seconds, and each window becomes words with marks of time.
//!
//! Models invent words where nobody speaks. So a window that is silent, or as even as noise, is not shown to one; words that the model itself holds for unlikely
//! while it hears silence are dropped, and phrases that it repeats without end are said once.

mod level;
mod mel;
mod model;
mod pages;
mod recording;
mod resample;
mod rules;
mod segments;
mod slim;
mod tokens;
mod utterance;

use domain::reading::Unreadable;
use ort::environment::Environment;

use self::mel::{Mel, WINDOW};
use self::model::Model;
use self::pages::Pages;
use self::recording::Recording;
use self::tokens::Tokens;
use crate::sink::Sink;
use crate::{Models, Result, Stop};

/// The samples a second that Whisper hears.
const SAMPLE_RATE: usize = 16_000;
/// No more is heard of one recording.
const MOST_SECS: usize = 4 * 3_600;
/// A rest that is shorter holds no word.
const LEAST_SECS: f64 = 0.1;

/// Words that were heard, in seconds from the recording's first moment.
#[derive(Clone, Debug, PartialEq)]
struct Phrase {
    begin: f64,
    end: f64,
    text: String,
    /// The mean logarithm of how likely its tokens are.
    likely: f32,
}

/// Reads a recording: a page for every five minutes. The first pages that somebody has are not heard again.
pub(crate) fn read(bytes: &[u8], sink: &mut Sink<'_>) -> Result<()> {
    let recording = Recording::open(bytes)?;
    let mut ear = Ear::open(sink.models())?;
    let seconds = recording.seconds();
    let mut pages = Pages::new(sink, seconds)?;
    let (heard_secs, is_cut) = ear.hear(recording, pages.begin(), &mut |heard| match heard {
        Some(phrase) => pages.add(phrase),
        None => pages.alive(),
    })?;
    pages.finish(heard_secs)?;
    sink.heard(ear.language(), heard_secs);
    if is_cut { Err(Stop::Enough) } else { Ok(()) }
}

/// A model that listens to one recording.
struct Ear {
    mel: Mel,
    model: Model,
    tokens: Tokens,
    /// How likely each language is by all windows so far: a call in one language has moments that sound like another.
    languages: Vec<f32>,
}

impl Ear {
    fn open(models: &Models) -> Result<Self> {
        let missing = |detail: String| Stop::Refused(Unreadable::SpeechNotInstalled, detail);
        let (Some(library), Some(dir)) = (&models.onnxruntime, &models.speech) else {
            return Err(missing("a recording".into()));
        };
        let unread = |error: &dyn std::fmt::Display| missing(format!("the speech model could not be read: {error}"));
        let runtime: Environment = crate::onnx::runtime(library).map_err(|error| unread(&error))?;
        let tokens = Tokens::read(dir).map_err(|error| unread(&error))?;
        let model = Model::open(&runtime, dir, models.threads()).map_err(|error| unread(&error))?;
        let languages = vec![0.0; tokens.languages.len()];
        Ok(Self { mel: Mel::new(), model, tokens, languages })
    }

    /// The language of what was heard. None: nothing was.
    fn language(&self) -> Option<String> {
        let best = self.languages.iter().enumerate().max_by(|(_, a), (_, b)| a.total_cmp(b))?;
        (*best.1 > 0.0).then(|| self.tokens.languages[best.0].1.clone())
    }

    /// Gives each phrase from this second on as it is heard, and nothing after each window: a sign of life. Returns the second up to which was heard, and
    /// whether there is more.
    fn hear(
        &mut self,
        mut recording: Recording<'_>,
        from_secs: f64,
        take: &mut dyn FnMut(Option<Phrase>) -> Result<()>,
    ) -> Result<(f64, bool)> {
        let mut samples = Vec::with_capacity(2 * WINDOW);
        let (mut is_over, mut begin) = (false, (from_secs * SAMPLE_RATE as f64) as usize);
        let mut n_passed = 0;
        while !is_over && n_passed < begin {
            is_over = !recording.next(&mut samples)?;
            let n = samples.len().min(begin - n_passed);
            samples.drain(..n);
            n_passed += n;
        }
        loop {
            while !is_over && samples.len() < WINDOW {
                is_over = !recording.next(&mut samples)?;
            }
            let window = &samples[..samples.len().min(WINDOW)];
            let secs = window.len() as f64 / SAMPLE_RATE as f64;
            let begin_secs = begin as f64 / SAMPLE_RATE as f64;
            if begin >= MOST_SECS * SAMPLE_RATE {
                return Ok((begin_secs, secs >= LEAST_SECS));
            }
            if secs < LEAST_SECS {
                return Ok((begin_secs + secs, false));
            }
            let (phrases, heard_secs) = self.window(window)?;
            for phrase in phrases {
                take(Some(Phrase { begin: begin_secs + phrase.begin, end: begin_secs + phrase.end, ..phrase }))?;
            }
            take(None)?;
            let n_heard =
                ((heard_secs * SAMPLE_RATE as f64) as usize).clamp(SAMPLE_RATE.min(window.len()), window.len());
            samples.drain(..n_heard);
            begin += n_heard;
        }
    }

    /// The phrases of one window, and the seconds after which the next begins.
    fn window(&mut self, samples: &[f32]) -> Result<(Vec<Phrase>, f64)> {
        let secs = samples.len() as f64 / SAMPLE_RATE as f64;
        if !level::may_be_speech(samples) {
            return Ok((Vec::new(), secs));
        }
        let failed =
            |error: ort::Error| Stop::Refused(Unreadable::TooMuchMemory, format!("the speech model failed: {error}"));
        let heard = self.model.hear(&self.mel.picture(samples)).map_err(failed)?;
        let opening = utterance::opening(&mut self.model, &self.tokens, &heard).map_err(failed)?;
        let votes: Vec<f32> = self.languages.iter().zip(&opening.languages).map(|(all, one)| all + one).collect();
        let language = votes.iter().enumerate().max_by(|(_, a), (_, b)| a.total_cmp(b)).map_or(0, |(nth, _)| nth);
        let Some((language, _)) = self.tokens.languages.get(language) else { return Ok((Vec::new(), secs)) };
        let said = utterance::utterance(&mut self.model, &self.tokens, &heard, *language).map_err(failed)?;
        if is_invented(opening.silence, said.likely) {
            return Ok((Vec::new(), secs));
        }
        self.languages = votes;
        let (segments, heard_secs) = segments::cut(&self.tokens, &said.tokens, secs);
        let phrase = |segment: segments::Segment| Phrase {
            begin: segment.begin,
            end: segment.end,
            text: self.tokens.spell(&segment.tokens).trim().to_owned(),
            likely: said.likely,
        };
        Ok((segments.into_iter().map(phrase).filter(|phrase| !phrase.text.is_empty()).collect(), heard_secs))
    }
}

/// Whether words are rather the model's own: it holds it for likely that nobody speaks, and what it heard all the same for unlikely. Of 20 recordings of speech none
/// comes to 1.45 with either number so high; hiss, hum, tones, waves and tunes come to 1.5 and more.
fn is_invented(silence: f32, likely: f32) -> bool {
    silence > 0.25 && silence - likely > 1.5
}

#[cfg(test)]
mod tests;
