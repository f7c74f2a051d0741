//! A model that ONNX Runtime runs: tokens in, one vector out.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use anyhow::{Context as _, anyhow, ensure};
use ort::environment::Environment;
use ort::session::Session;
use ort::value::TensorRef;
use tokenizers::Tokenizer;

use crate::config::LocalModelKind;

pub const DIM: usize = 384;
const MODEL: &str = "model.onnx";
const TOKENIZER: &str = "tokenizer.json";

/// The library of this process. It is loaded once and stays: a process can have no second one.
static RUNTIME: Mutex<Option<Environment>> = Mutex::new(None);

/// A model's files, and what the threads that use it share.
pub struct Files {
    kind: LocalModelKind,
    /// The folder of all models.
    dir: Option<PathBuf>,
    library: Option<PathBuf>,
    tokens: Mutex<Weak<Tokens>>,
}

impl Files {
    pub fn new(kind: LocalModelKind, dir: Option<PathBuf>, library: Option<PathBuf>) -> Self {
        Self { kind, dir, library, tokens: Mutex::default() }
    }

    pub fn kind(&self) -> LocalModelKind {
        self.kind
    }

    /// Whether all files are there.
    pub fn are_there(&self) -> bool {
        let dir = self.dir.as_deref().map(|dir| dir.join(self.kind.folder()));
        let has = |name: &str| dir.as_deref().is_some_and(|dir| dir.join(name).is_file());
        has(MODEL) && has(TOKENIZER) && self.library.as_deref().is_some_and(Path::is_file)
    }

    /// Reads the model. Each thread has its own, because a session runs one text at a time; the tokens are shared.
    pub fn open(&self) -> anyhow::Result<Model> {
        let unset = |name: &str| {
            format!(
                "{name} is not set: run ./tributary, which fetches the model and sets it, or choose another EMBEDDER"
            )
        };
        let dir = self.dir.as_deref().with_context(|| unset("LOCAL_MODEL_DIR"))?.join(self.kind.folder());
        let library = self.library.as_deref().with_context(|| unset("ONNXRUNTIME_LIB"))?;
        let broken = || {
            let (name, dir) = (self.kind.folder(), dir.display());
            format!(
                "the model {name} could not be read from {dir} (./tributary fetches it; or choose another EMBEDDER)"
            )
        };
        let tokens = self.tokens(&dir).with_context(broken)?;
        ensure!(library.is_file(), "ONNXRUNTIME_LIB is {}, and no such file is there", library.display());
        let session = session(&runtime(library)?, &dir.join(MODEL)).context(MODEL).with_context(broken)?;
        Ok(Model { session, tokens, most_tokens: self.kind.most_tokens() })
    }

    fn tokens(&self, dir: &Path) -> anyhow::Result<Arc<Tokens>> {
        let mut shared = self.tokens.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(tokens) = shared.upgrade() {
            return Ok(tokens);
        }
        let tokens = Arc::new(Tokens::read(&dir.join(TOKENIZER)).context(TOKENIZER)?);
        *shared = Arc::downgrade(&tokens);
        Ok(tokens)
    }
}

fn runtime(library: &Path) -> anyhow::Result<Environment> {
    let mut runtime = RUNTIME.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(runtime) = &*runtime {
        return Ok(runtime.clone());
    }
    let made = ort::init_from(library).context("ONNX Runtime could not be loaded")?.with_telemetry(false).build();
    Ok(runtime.insert(made.context("ONNX Runtime could not be started")?).clone())
}

/// One thread, ours: the runtime starts none of its own. Memory is given back after each run instead of being kept for the longest text so far.
fn session(runtime: &Environment, path: &Path) -> ort::Result<Session> {
    let cpu = ort::ep::CPU::default().with_arena_allocator(false).build();
    Session::builder(runtime)?
        .with_intra_threads(1)?
        .with_inter_threads(1)?
        .with_execution_providers([cpu])?
        .commit_from_file(path)
}

pub struct Model {
    session: Session,
    tokens: Arc<Tokens>,
    most_tokens: usize,
}

impl Model {
    /// Makes the vector of a text. That of a text that is too long is the mean of its parts', by their length.
    pub fn embed(&mut self, text: &str) -> anyhow::Result<Vec<f32>> {
        let mut sum = vec![0.0; DIM];
        for ids in self.parts(text)? {
            let part = self.direction(&ids)?;
            sum.iter_mut().zip(&part).for_each(|(sum, n)| *sum += n * ids.len() as f32);
        }
        to_unit_length(&mut sum)?;
        Ok(sum)
    }

    /// The tokens of a text, in as many parts as the model needs.
    pub fn parts(&self, text: &str) -> anyhow::Result<Vec<Vec<i64>>> {
        self.tokens.parts(text, self.most_tokens)
    }

    /// The direction of the mean of what the model makes of each token. One text a run: the numbers of a quantised model depend on the others in its batch.
    fn direction(&mut self, ids: &[i64]) -> anyhow::Result<Vec<f32>> {
        let shape = [1_usize, ids.len()];
        let (mask, types) = (vec![1_i64; ids.len()], vec![0_i64; ids.len()]);
        let outputs = self.session.run(ort::inputs![
            "input_ids" => TensorRef::from_array_view((shape, ids))?,
            "attention_mask" => TensorRef::from_array_view((shape, mask.as_slice()))?,
            "token_type_ids" => TensorRef::from_array_view((shape, types.as_slice()))?,
        ])?;
        let (_, numbers) = outputs[0].try_extract_tensor::<f32>()?;
        ensure!(numbers.len() == ids.len() * DIM, "the model gave {} numbers for {} tokens", numbers.len(), ids.len());
        let mut sum = vec![0.0; DIM];
        for token in numbers.chunks_exact(DIM) {
            sum.iter_mut().zip(token).for_each(|(sum, n)| *sum += n);
        }
        to_unit_length(&mut sum)?;
        Ok(sum)
    }
}

fn to_unit_length(vector: &mut [f32]) -> anyhow::Result<()> {
    let length = vector.iter().map(|n| n * n).sum::<f32>().sqrt();
    ensure!(length.is_finite() && length > 0.0, "the model gave a vector that has no direction");
    vector.iter_mut().for_each(|n| *n /= length);
    Ok(())
}

struct Tokens {
    tokenizer: Tokenizer,
    /// The tokens before and after each text.
    begin: i64,
    end: i64,
}

impl Tokens {
    fn read(path: &Path) -> anyhow::Result<Self> {
        let mut tokenizer = Tokenizer::from_bytes(std::fs::read(path)?).map_err(anyhow::Error::from_boxed)?;
        // Its file may ask to cut long texts, or to fill short ones.
        tokenizer.with_truncation(None).map_err(anyhow::Error::from_boxed)?.with_padding(None);
        let id = |token: &str| tokenizer.token_to_id(token).map(i64::from).ok_or_else(|| anyhow!("it has no {token}"));
        let (begin, end) = (id("[CLS]")?, id("[SEP]")?);
        Ok(Self { tokenizer, begin, end })
    }

    /// The tokens of a text, in as many parts as needed: none has more than `most`. Even an empty text has one.
    fn parts(&self, text: &str, most: usize) -> anyhow::Result<Vec<Vec<i64>>> {
        let encoding = self.tokenizer.encode_fast(text, false).map_err(anyhow::Error::from_boxed)?;
        let ids: Vec<i64> = encoding.get_ids().iter().map(|id| i64::from(*id)).collect();
        // Of about the same length, so that the last one is no scrap.
        let n_parts = ids.len().div_ceil(most - 2).max(1);
        let length = ids.len().div_ceil(n_parts).max(1);
        let part = |ids: &[i64]| [&[self.begin], ids, &[self.end]].concat();
        Ok(if ids.is_empty() { vec![part(&[])] } else { ids.chunks(length).map(part).collect() })
    }
}
