//! Whisper as ONNX Runtime runs it: an encoder that looks at a picture of sound, and a decoder that says one token after the other.

use std::path::Path;

use ort::environment::Environment;
use ort::session::{Session, SessionInputValue};
use ort::value::{DynValue, Tensor, TensorRef};

use super::mel::{N_BANDS, N_FRAMES};
use super::slim;
use super::tokens::Token;

const ENCODER: &str = "encoder_model_quantized.onnx";
const DECODER: &str = "decoder_model_merged_quantized.onnx";
const HEARD: &str = "last_hidden_state";

pub struct Model {
    encoder: Session,
    decoder: Session,
    /// The names of what the decoder remembers, "0.decoder.key" and so on.
    memories: Vec<String>,
    /// The shape of an empty memory.
    empty: [usize; 4],
}

/// A window as the encoder has heard it.
pub struct Heard(DynValue);

impl Model {
    pub fn open(runtime: &Environment, dir: &Path, n_threads: usize) -> ort::Result<Self> {
        // The encoder needs much and runs once a window, so it gives its memory back. The decoder takes 100 MB for each token: keeping them makes it three times as
        // fast.
        let session = |file: &[u8], keeps_memory: bool| {
            let cpu = ort::ep::CPU::default().with_arena_allocator(keeps_memory).build();
            Session::builder(runtime)?
                .with_intra_threads(n_threads)?
                .with_inter_threads(1)?
                .with_memory_pattern(false)?
                .with_intra_op_spinning(false)?
                .with_execution_providers([cpu])?
                .commit_from_memory(file)
        };
        let read =
            |name: &str| std::fs::read(dir.join(name)).map_err(|error| ort::Error::new(format!("{name}: {error}")));
        let encoder = slim::with_output(&read(ENCODER)?, HEARD)
            .ok_or_else(|| ort::Error::new(format!("{ENCODER} is no model")))?;
        let encoder = session(&encoder, false)?;
        let decoder = session(&read(DECODER)?, true)?;
        let past = decoder.inputs().iter().filter(|input| input.name().starts_with("past_key_values."));
        let memories =
            past.clone().map(|input| input.name().trim_start_matches("past_key_values.").to_owned()).collect();
        let size = |axis: usize| {
            let shape = past.clone().next().and_then(|input| input.dtype().tensor_shape());
            shape.and_then(|shape| shape.get(axis).copied()).and_then(|size| usize::try_from(size).ok()).unwrap_or(1)
        };
        let empty = [1, size(1), 0, size(3)];
        Ok(Self { encoder, decoder, memories, empty })
    }

    pub fn hear(&mut self, picture: &[f32]) -> ort::Result<Heard> {
        let picture = TensorRef::from_array_view(([1, N_BANDS, N_FRAMES], picture))?;
        let mut outputs = self.encoder.run(ort::inputs!["input_features" => picture])?;
        let heard = outputs.remove(HEARD).ok_or_else(|| ort::Error::new("the encoder gave nothing"))?;
        Ok(Heard(heard))
    }

    /// Begins to say what was heard.
    pub fn speak<'m>(&'m mut self, heard: &'m Heard) -> Speaking<'m> {
        Speaking { model: self, heard, memories: Vec::new() }
    }
}

/// A sentence that is being said.
pub struct Speaking<'m> {
    model: &'m mut Model,
    heard: &'m Heard,
    /// The decoder's memory of the tokens so far, and of what was heard.
    memories: Vec<DynValue>,
}

impl Speaking<'_> {
    /// Takes the next token, and writes how likely each token is to follow.
    pub fn say(&mut self, token: Token, scores: &mut Vec<f32>) -> ort::Result<()> {
        let is_begun = !self.memories.is_empty();
        let token = [i64::from(token)];
        let empty = Tensor::<f32>::new(&ort::memory::Allocator::default(), self.model.empty)?;
        let mut inputs: Vec<(String, SessionInputValue<'_>)> = vec![
            ("input_ids".into(), TensorRef::from_array_view(([1_usize, 1], &token[..]))?.into()),
            ("encoder_hidden_states".into(), (&self.heard.0).into()),
            ("use_cache_branch".into(), Tensor::from_array(([1_usize], vec![is_begun]))?.into()),
        ];
        for (nth, name) in self.model.memories.iter().enumerate() {
            let memory = self.memories.get(nth).map_or_else(|| (&empty).into(), SessionInputValue::from);
            inputs.push((format!("past_key_values.{name}"), memory));
        }
        let mut outputs = self.model.decoder.run(inputs)?;
        let logits = outputs.remove("logits").ok_or_else(|| ort::Error::new("the decoder gave nothing"))?;
        scores.clear();
        scores.extend_from_slice(logits.try_extract_tensor::<f32>()?.1);
        let mut news = Vec::with_capacity(self.model.memories.len());
        for name in &self.model.memories {
            news.push(outputs.remove(format!("present.{name}")));
        }
        drop(outputs);
        for (nth, (name, new)) in self.model.memories.iter().zip(news).enumerate() {
            let new = new.ok_or_else(|| ort::Error::new("the decoder forgot"))?;
            match self.memories.get_mut(nth) {
                // What was heard is remembered once.
                Some(_) if name.contains(".encoder.") => {}
                Some(memory) => *memory = new,
                None => self.memories.push(new),
            }
        }
        Ok(())
    }
}
