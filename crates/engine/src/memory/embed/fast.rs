//! The `fast` model: every token has a vector, and a text's vector is their mean. (wordllama, 256 dimensions; Llama 2's tokens.) It runs on
//! threads for blocking work, and is read from its folder when it is first needed.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context as _, anyhow, bail, ensure};
use domain::Fault;
use half::f16;
use half::slice::HalfFloatSliceExt as _;
use serde::Deserialize;

pub(super) const DIM: usize = 256;
const WEIGHTS: &str = "l2_supercat_256.safetensors";
const TOKENIZER: &str = "l2_supercat_tokenizer_config.json";

/// The character that stands for a blank in tokens.
const BLANK: char = '▁';
/// Special tokens. A text may spell them out, and they are one token wherever they stand.
const SPECIAL: [(&str, u32); 3] = [("<unk>", 0), ("<s>", 1), ("</s>", 2)];
/// The number of words that are cached with their tokens, and the longest such word.
const REMEMBERED_WORDS: usize = 50_000;
const REMEMBERED_BYTES: usize = 40;

/// Whether the model's files are in a folder.
pub(super) fn has_files(dir: &Path) -> bool {
    [WEIGHTS, TOKENIZER].iter().all(|name| dir.join(name).is_file())
}

pub struct FastModel {
    dir: Option<PathBuf>,
    loaded: Mutex<Option<Arc<Loaded>>>,
}

impl FastModel {
    pub fn new(dir: Option<PathBuf>) -> Self {
        Self { dir, loaded: Mutex::default() }
    }

    pub async fn embed(self: &Arc<Self>, texts: &[&str]) -> Result<Vec<Vec<f32>>, Fault> {
        let (this, texts) = (self.clone(), texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>());
        let work = tokio::task::spawn_blocking(move || Ok(this.loaded()?.embed(&texts)));
        work.await.unwrap_or_else(|error| Err(anyhow!(error))).map_err(Fault::Transient)
    }

    /// Returns the model, read once. If that fails, the next call tries again.
    fn loaded(&self) -> anyhow::Result<Arc<Loaded>> {
        let mut loaded = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(model) = &*loaded {
            return Ok(model.clone());
        }
        let dir = self.dir.as_deref().context(
            "FAST_MODEL_DIR is not set: run ./tributary, which fetches the model and sets it, or choose another EMBEDDER",
        )?;
        let model =
            Loaded::read(dir).with_context(|| format!("the fast model could not be read from {}", dir.display()))?;
        Ok(loaded.insert(Arc::new(model)).clone())
    }
}

struct Loaded {
    tokenizer: Tokenizer,
    weights: Vec<f16>,
    /// Caches of tokens. A batch takes one and puts it back, so that batches do not wait for each other.
    words: Mutex<Vec<Words>>,
}

/// A cache of words with their tokens.
type Words = HashMap<Box<str>, Box<[u32]>>;

impl Loaded {
    fn read(dir: &Path) -> anyhow::Result<Self> {
        let read = |name: &str| std::fs::read(dir.join(name)).with_context(|| name.to_owned());
        let tokenizer = Tokenizer::parse(&read(TOKENIZER)?).context(TOKENIZER)?;
        let weights = parse_weights(&read(WEIGHTS)?).context(WEIGHTS)?;
        ensure!(weights.len() == tokenizer.n_tokens * DIM, "weights and tokens do not belong together");
        Ok(Self { tokenizer, weights, words: Mutex::default() })
    }

    fn embed(&self, texts: &[String]) -> Vec<Vec<f32>> {
        let shelf = || self.words.lock().unwrap_or_else(PoisonError::into_inner);
        let mut words = shelf().pop().unwrap_or_default();
        let vectors = texts.iter().map(|text| self.vector(text, &mut words)).collect();
        shelf().push(words);
        vectors
    }

    fn vector(&self, text: &str, words: &mut Words) -> Vec<f32> {
        let mut sum = vec![0.0_f32; DIM];
        let mut row = [0.0_f32; DIM];
        self.tokenizer.tokens(text, words, |token| {
            let start = token as usize * DIM;
            self.weights[start..start + DIM].convert_to_f32_slice(&mut row);
            sum.iter_mut().zip(&row).for_each(|(sum, n)| *sum += n);
        });
        let length = sum.iter().map(|n| n * n).sum::<f32>().sqrt();
        if length > 0.0 && length.is_finite() {
            sum.iter_mut().for_each(|n| *n /= length);
        } else {
            // A text without tokens gets a vector too, always the same.
            sum.fill(0.0);
            sum[0] = 1.0;
        }
        sum
    }
}

/// Parses a safetensors file: the length of a JSON header, the header, numbers.
fn parse_weights(bytes: &[u8]) -> anyhow::Result<Vec<f16>> {
    #[derive(Deserialize)]
    struct Header {
        #[serde(rename = "embedding.weight")]
        weight: Tensor,
    }
    #[derive(Deserialize)]
    struct Tensor {
        dtype: String,
        shape: Vec<usize>,
        data_offsets: (usize, usize),
    }
    let (length, rest) = bytes.split_first_chunk().context("it is cut off")?;
    let length = usize::try_from(u64::from_le_bytes(*length)).context("its header is too long")?;
    let (header, data) = rest.split_at_checked(length).context("it is cut off")?;
    let Header { weight } = serde_json::from_slice(header)?;
    let (start, end) = weight.data_offsets;
    let data = data.get(start..end).context("it is cut off")?;
    let is_expected = matches!(*weight.shape, [n, DIM] if n.checked_mul(DIM * 2) == Some(data.len()));
    ensure!(weight.dtype == "F16" && is_expected, "it has {} numbers of shape {:?}", weight.dtype, weight.shape);
    Ok(data.as_chunks().0.iter().map(|number| f16::from_le_bytes(*number)).collect())
}

/// Byte-pair encoding: a word's characters are joined again and again by the earliest rule that fits.
struct Tokenizer {
    n_tokens: usize,
    characters: HashMap<char, u32>,
    /// One token for each byte, for characters that are in no token.
    bytes: [u32; 256],
    /// The rules: which two neighbours become one token. Each has a number, lower is earlier, and the resulting token.
    merges: HashMap<(u32, u32), (u32, u32)>,
}

impl Tokenizer {
    fn parse(json: &[u8]) -> anyhow::Result<Self> {
        #[derive(Deserialize)]
        struct File {
            model: Model,
        }
        #[derive(Deserialize)]
        struct Model {
            vocab: HashMap<String, u32>,
            merges: Vec<String>,
        }
        let File { model: Model { vocab, merges } } = serde_json::from_slice(json)?;
        let n_tokens = vocab.len();
        let id = |token: &str| {
            let id = vocab.get(token).copied().filter(|id| (*id as usize) < n_tokens);
            id.with_context(|| format!("token {token:?} is missing"))
        };
        // No token may cross words: only then may a text be cut at its blanks and lines, and words be cached.
        let crosses = |token: &String| token.trim_start_matches(BLANK).contains([BLANK, '\n']);
        if let Some(token) = vocab.keys().find(|token| crosses(token)) {
            bail!("token {token:?} goes across words");
        }
        let mut bytes = [0; 256];
        for (byte, token) in bytes.iter_mut().enumerate() {
            *token = id(&format!("<0x{byte:02X}>"))?;
        }
        let mut rules = HashMap::with_capacity(merges.len());
        for (number, rule) in (0..).zip(&merges) {
            let (left, right) = rule.split_once(' ').with_context(|| format!("rule {rule:?} is none"))?;
            rules.insert((id(left)?, id(right)?), (number, id(&format!("{left}{right}"))?));
        }
        let single = |token: &str| {
            let mut characters = token.chars();
            characters.next().filter(|_| characters.next().is_none())
        };
        let characters = vocab.iter().filter_map(|(token, id)| Some((single(token)?, *id))).collect();
        Ok(Self { n_tokens, characters, bytes, merges: rules })
    }

    /// Gives every token of a text to `take`, in order.
    fn tokens(&self, text: &str, words: &mut Words, mut take: impl FnMut(u32)) {
        let mut rest = text;
        while !rest.is_empty() {
            let specials = rest.match_indices('<').find_map(|(at, _)| {
                let special = SPECIAL.into_iter().find(|(name, _)| rest[at..].starts_with(name));
                special.map(|(name, token)| (at, at + name.len(), token))
            });
            let end = specials.map_or(rest.len(), |(start, ..)| start);
            if end > 0 {
                // With a blank before it, the first word has the same tokens as anywhere else.
                let plain = format!("{BLANK}{}", &rest[..end]).replace(' ', "▁");
                for word in words_of(&plain) {
                    self.word(word, words, &mut take);
                }
            }
            let Some((_, end, token)) = specials else { return };
            take(token);
            rest = &rest[end..];
        }
    }

    fn word(&self, word: &str, words: &mut Words, take: &mut impl FnMut(u32)) {
        if word.len() > REMEMBERED_BYTES {
            self.merged(word).into_iter().for_each(take);
            return;
        }
        if let Some(tokens) = words.get(word) {
            tokens.iter().copied().for_each(take);
            return;
        }
        let tokens = self.merged(word);
        tokens.iter().copied().for_each(take);
        if words.len() >= REMEMBERED_WORDS {
            words.clear();
        }
        words.insert(word.into(), tokens.into());
    }

    /// Joins a word's characters into tokens. A heap holds what can be joined, so that one word of a megabyte takes no longer than a
    /// megabyte of words.
    fn merged(&self, word: &str) -> Vec<u32> {
        struct Symbol {
            token: u32,
            before: Option<usize>,
            after: Option<usize>,
            is_gone: bool,
        }
        let mut tokens = Vec::with_capacity(word.len());
        for c in word.chars() {
            match self.characters.get(&c) {
                Some(token) => tokens.push(*token),
                None => tokens.extend(c.encode_utf8(&mut [0; 4]).bytes().map(|byte| self.bytes[usize::from(byte)])),
            }
        }
        let n = tokens.len();
        let symbol = |(i, token): (usize, u32)| Symbol {
            token,
            before: i.checked_sub(1),
            after: Some(i + 1).filter(|after| *after < n),
            is_gone: false,
        };
        let mut symbols: Vec<Symbol> = tokens.into_iter().enumerate().map(symbol).collect();
        let rule = |left: &Symbol, right: &Symbol| self.merges.get(&(left.token, right.token)).copied();
        let mut heap = BinaryHeap::new();
        for (i, pair) in symbols.windows(2).enumerate() {
            heap.extend(rule(&pair[0], &pair[1]).map(|(number, token)| Reverse((number, i, token))));
        }
        while let Some(Reverse((number, i, token))) = heap.pop() {
            let Some(next) = symbols[i].after.filter(|_| !symbols[i].is_gone) else { continue };
            // Either side may have been joined to something else meanwhile.
            if rule(&symbols[i], &symbols[next]) != Some((number, token)) {
                continue;
            }
            symbols[next].is_gone = true;
            let after = symbols[next].after;
            (symbols[i].token, symbols[i].after) = (token, after);
            if let Some(after) = after {
                symbols[after].before = Some(i);
                heap.extend(rule(&symbols[i], &symbols[after]).map(|(number, token)| Reverse((number, i, token))));
            }
            if let Some(before) = symbols[i].before {
                heap.extend(
                    rule(&symbols[before], &symbols[i]).map(|(number, token)| Reverse((number, before, token))),
                );
            }
        }
        symbols.into_iter().filter(|symbol| !symbol.is_gone).map(|symbol| symbol.token).collect()
    }
}

/// Cuts a text where no token crosses: before blanks that follow something else, and around ends of lines.
fn words_of(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let mut after_word = false;
        let end = rest.char_indices().find(|(at, c)| {
            let is_cut = *at > 0 && (*c == '\n' || rest.starts_with('\n') || *c == BLANK && after_word);
            after_word |= *c != BLANK;
            is_cut
        });
        let (word, left) = rest.split_at(end.map_or(rest.len(), |(at, _)| at));
        rest = left;
        (!word.is_empty()).then_some(word)
    })
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;

    fn model() -> Arc<FastModel> {
        let dir = std::env::var_os("FAST_MODEL_DIR").expect("FAST_MODEL_DIR: ./test sets it");
        Arc::new(FastModel::new(Some(dir.into())))
    }

    #[derive(Deserialize)]
    struct Golden {
        text: String,
        ids: Vec<u32>,
        /// Thousandths; none for a text without tokens.
        vector: Vec<f32>,
    }

    /// Made once with the Python package itself.
    #[test]
    fn tokens_and_vectors_are_those_of_the_python_package() {
        let goldens: Vec<Golden> = serde_json::from_str(include_str!("fast_golden.json")).expect("goldens");
        let model = model().loaded().expect("a model");
        let mut words = Words::new();
        for round in ["new words", "remembered words"] {
            for golden in &goldens {
                let mut ids = Vec::new();
                model.tokenizer.tokens(&golden.text, &mut words, |id| ids.push(id));
                assert_eq!(ids, golden.ids, "{round} of {:?}", golden.text);
                if golden.vector.is_empty() {
                    continue;
                }
                let vector = model.vector(&golden.text, &mut words);
                let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f32>();
                let cosine = dot(&vector, &golden.vector) / dot(&golden.vector, &golden.vector).sqrt();
                assert!(cosine >= 0.999, "{cosine} for {:?}", golden.text);
            }
        }
    }

    #[tokio::test]
    async fn every_text_has_a_vector_of_unit_length_whatever_stands_beside_it() {
        let model = model();
        let texts = ["", "\n", "an invoice", "请问", "\u{10ffff}"];
        let together = model.embed(&texts).await.expect("vectors");
        for (text, vector) in texts.iter().zip(&together) {
            let length = vector.iter().map(|n| n * n).sum::<f32>().sqrt();
            assert!(vector.len() == DIM && (length - 1.0).abs() < 1e-5, "{text:?} is {length} long");
            assert_eq!(model.embed(&[text]).await.expect("vectors"), std::slice::from_ref(vector));
        }
    }

    #[tokio::test]
    async fn a_missing_model_is_said_in_one_sentence() {
        for (dir, expected) in [
            (None, "FAST_MODEL_DIR is not set"),
            (
                Some("/nowhere"),
                "the fast model could not be read from /nowhere: l2_supercat_tokenizer_config.json: No such file",
            ),
        ] {
            let model = Arc::new(FastModel::new(dir.map(PathBuf::from)));
            let words = model.embed(&["x"]).await.expect_err("no model").in_words();
            assert!(words.contains(expected) && !words.contains('\n'), "{words}");
        }
    }

    #[test]
    fn long_words_take_linear_time() {
        let model = model().loaded().expect("a model");
        // The time that this thread has run, so that a busy machine passes too.
        let cpu_time = || -> Option<Duration> {
            let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
            text.split(' ').next()?.parse().ok().map(Duration::from_nanos)
        };
        let best = |texts: &[String]| -> Duration {
            let time = |_| {
                let (started, before) = (Instant::now(), cpu_time());
                model.embed(texts);
                cpu_time().zip(before).map_or_else(|| started.elapsed(), |(after, before)| after.saturating_sub(before))
            };
            (0..3).map(time).min().unwrap_or_default().max(Duration::from_millis(10))
        };
        for unit in ["ab", "<", "▁", "\n"] {
            let [once, four_times] = [250_000, 1_000_000].map(|bytes| best(&[unit.repeat(bytes / unit.len())]));
            assert!(four_times < once * 10, "{unit:?} took {once:?}, and four times as much {four_times:?}");
        }
    }
}
