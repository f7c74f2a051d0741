//! The `local` model: a small transformer that ONNX Runtime runs in this process, on threads of its own. It is loaded when it is first
//! needed, and dropped when nobody has needed it for ten minutes.

mod onnx;
mod pool;

use std::num::NonZero;
use std::sync::Arc;
use std::thread::available_parallelism;
use std::time::Duration;

use domain::Fault;

pub(crate) use self::onnx::{DIM, Files};
use self::pool::Pool;
pub(crate) use self::pool::lower_priority;
use super::Side;
use crate::config::LocalModelKind;

/// The time without work after which the model is dropped.
const IDLE: Duration = Duration::from_secs(600);

pub struct LocalModel {
    kind: LocalModelKind,
    pool: Pool,
}

impl LocalModel {
    /// All cores but one make vectors of documents.
    pub fn new(files: Files) -> Self {
        Self::with(files, available_parallelism().map_or(1, NonZero::get) - 1, IDLE)
    }

    pub(crate) fn with(files: Files, n_threads: usize, idle: Duration) -> Self {
        let (kind, files) = (files.kind(), Arc::new(files));
        let load = move || {
            let mut model = files.open()?;
            Ok(Box::new(move |text: &str| model.embed(text)) as pool::Embed)
        };
        Self { kind, pool: Pool::new(n_threads, idle, load) }
    }

    pub fn kind(&self) -> LocalModelKind {
        self.kind
    }

    /// Makes one vector of unit length per text. The vectors of questions do not wait for those of documents.
    pub async fn embed(&self, side: Side, texts: &[&str]) -> Result<Vec<Vec<f32>>, Fault> {
        self.pool.embed(side, texts).await.map_err(Fault::Transient)
    }

    /// The number of threads, each with its own model in memory.
    pub(crate) fn n_threads(&self) -> usize {
        self.pool.n_threads()
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use futures_util::FutureExt as _;
    use futures_util::future::join_all;
    use serde::Deserialize;

    use super::*;

    fn variable(name: &str) -> Option<PathBuf> {
        Some(std::env::var_os(name).unwrap_or_else(|| panic!("{name}: ./test sets it")).into())
    }

    fn files(kind: LocalModelKind) -> Files {
        Files::new(kind, variable("LOCAL_MODEL_DIR"), variable("ONNXRUNTIME_LIB"))
    }

    fn cosine(a: &[f32], b: &[f32]) -> f32 {
        let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f32>();
        dot(a, b) / (dot(a, a) * dot(b, b)).sqrt()
    }

    #[derive(Deserialize)]
    struct Golden {
        text: String,
        /// The tokens of each part.
        parts: Vec<Vec<i64>>,
        /// Ten-thousandths.
        vector: Vec<f32>,
    }

    /// Whether set-up gave weights only seven bits (`scripts/local_models.py`).
    fn is_narrow() -> bool {
        let has_vnni = || std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default().contains("vnni");
        cfg!(target_arch = "x86_64") && !has_vnni()
    }

    /// Made once in Python, with the packages `tokenizers` and `onnxruntime` and the model's numbers of 32 bits.
    #[test]
    fn tokens_are_those_of_python_and_vectors_nearly_so() {
        let goldens: Vec<Golden> = serde_json::from_str(include_str!("golden.json")).expect("goldens");
        let mut model = files(LocalModelKind::GteSmall).open().expect("a model");
        let least = if is_narrow() { 0.98 } else { 0.99 };
        for golden in &goldens {
            assert_eq!(model.parts(&golden.text).expect("tokens"), golden.parts, "{:?}", golden.text);
            let cosine = cosine(&model.embed(&golden.text).expect("a vector"), &golden.vector);
            assert!(cosine >= least, "{cosine} for {:?}", golden.text);
        }
    }

    #[tokio::test]
    async fn every_text_has_a_vector_of_unit_length_whatever_is_embedded_beside_it() {
        let long = "The invoice is overdue. ".repeat(300);
        let texts = [
            "",
            " \n\t",
            "\0\u{1}\u{7f}",
            "an invoice",
            "请问",
            "👩‍👩‍👧",
            "[SEP] [CLS] [PAD]",
            "\u{10ffff}",
            &"x".repeat(9_000),
            &long,
        ];
        for kind in [LocalModelKind::GteSmall, LocalModelKind::Minilm] {
            let model = LocalModel::with(files(kind), 2, IDLE);
            let together = model.embed(Side::Document, &texts).await.expect("vectors");
            let alone = join_all(texts.iter().map(|text| model.embed(Side::Query, std::slice::from_ref(text)))).await;
            for ((text, vector), alone) in texts.iter().zip(&together).zip(alone) {
                let length = vector.iter().map(|n| n * n).sum::<f32>().sqrt();
                assert!(vector.len() == DIM && (length - 1.0).abs() < 1e-4, "{text:?} is {length} long");
                assert_eq!(alone.expect("a vector"), std::slice::from_ref(vector), "{text:?}");
            }
        }
    }

    #[tokio::test]
    async fn what_is_alike_is_near() {
        let model = LocalModel::new(files(LocalModelKind::GteSmall));
        let [question, near, far] = [
            "who owes us money",
            "The invoice of Larkfield is overdue since May.",
            "Ann prefers calls on Friday mornings.",
        ];
        let question = model.embed(Side::Query, &[question]).await.expect("a vector").remove(0);
        let texts = model.embed(Side::Document, &[near, far]).await.expect("vectors");
        assert!(cosine(&question, &texts[0]) > cosine(&question, &texts[1]));
    }

    #[tokio::test]
    async fn a_question_is_answered_before_a_batch_that_came_first() {
        let model = LocalModel::with(files(LocalModelKind::GteSmall), 1, IDLE);
        let text = "The invoice of Larkfield is overdue. ".repeat(40);
        let texts = [text.as_str(); 200];
        let mut bulk = Box::pin(model.embed(Side::Document, &texts));
        assert!((&mut bulk).now_or_never().is_none());
        model.embed(Side::Query, &["who owes us money"]).await.expect("a vector");
        assert!((&mut bulk).now_or_never().is_none(), "the question waited for 200 texts");
    }

    #[tokio::test]
    async fn a_missing_file_is_said_in_one_sentence_with_what_to_do() {
        let nowhere = || Some(PathBuf::from("/nowhere"));
        let (dir, library) = (variable("LOCAL_MODEL_DIR"), variable("ONNXRUNTIME_LIB"));
        for (dir, library, expected) in [
            (None, library.clone(), "LOCAL_MODEL_DIR is not set: run ./tributary"),
            (dir.clone(), None, "ONNXRUNTIME_LIB is not set: run ./tributary"),
            (
                nowhere(),
                library,
                "the model gte-small could not be read from /nowhere/gte-small (./tributary fetches it",
            ),
            (dir, nowhere(), "ONNXRUNTIME_LIB is /nowhere, and no such file is there"),
        ] {
            let files = Files::new(LocalModelKind::GteSmall, dir, library);
            assert!(!files.are_there());
            let fault = LocalModel::new(files).embed(Side::Query, &["x"]).await.expect_err("no model");
            let words = fault.in_words();
            assert!(words.contains(expected) && !words.contains('\n'), "{words}");
        }
        assert!(files(LocalModelKind::GteSmall).are_there() && files(LocalModelKind::Minilm).are_there());
    }
}
