//! The answers of the services, in their four shapes, and the checks that every vector has to pass.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;

/// An answer, whatever its shape.
pub(super) struct Answered {
    rows: Vec<Row>,
    /// Tokens as the service counts them.
    pub tokens: Option<u64>,
    pub model: Option<String>,
}

/// One vector, and the text that it belongs to. Without an index it belongs to the text at its own place.
#[derive(Deserialize)]
struct Row {
    index: Option<usize>,
    embedding: Numbers,
}

/// A vector's numbers, as JSON or packed.
#[derive(Deserialize)]
#[serde(untagged)]
enum Numbers {
    /// `null` is how JavaScript writes NaN.
    Plain(Vec<Option<f32>>),
    /// Floats of four bytes, the lowest byte first, in base64.
    Packed(String),
}

type Rows = Vec<Vec<Option<f32>>>;

/// `{"data": [{"index", "embedding"}], "usage": {"total_tokens"}}`.
pub(super) fn of_data(body: &[u8]) -> serde_json::Result<Answered> {
    #[derive(Deserialize)]
    struct DataAnswer {
        data: Vec<Row>,
        usage: Option<Usage>,
        model: Option<String>,
    }
    #[derive(Deserialize)]
    struct Usage {
        total_tokens: Option<u64>,
    }
    let answer: DataAnswer = serde_json::from_slice(body)?;
    let tokens = answer.usage.and_then(|usage| usage.total_tokens);
    Ok(Answered { rows: answer.data, tokens, model: answer.model })
}

/// `{"embeddings": [[…]], "model", "prompt_eval_count"}`.
pub(super) fn of_embeddings(body: &[u8]) -> serde_json::Result<Answered> {
    #[derive(Deserialize)]
    struct EmbeddingsAnswer {
        embeddings: Rows,
        model: Option<String>,
        prompt_eval_count: Option<u64>,
    }
    let answer: EmbeddingsAnswer = serde_json::from_slice(body)?;
    Ok(Answered { rows: in_order(answer.embeddings), tokens: answer.prompt_eval_count, model: answer.model })
}

/// `{"embeddings": {"float": [[…]]}, "meta": {"billed_units": {"input_tokens"}}}`.
pub(super) fn of_floats(body: &[u8]) -> serde_json::Result<Answered> {
    #[derive(Deserialize)]
    struct FloatsAnswer {
        embeddings: Floats,
        meta: Option<Meta>,
    }
    #[derive(Deserialize)]
    struct Floats {
        float: Rows,
    }
    #[derive(Deserialize)]
    struct Meta {
        billed_units: Option<Billed>,
    }
    #[derive(Deserialize)]
    struct Billed {
        input_tokens: Option<f64>,
    }
    let answer: FloatsAnswer = serde_json::from_slice(body)?;
    let tokens = answer.meta.and_then(|meta| meta.billed_units?.input_tokens);
    Ok(Answered { rows: in_order(answer.embeddings.float), tokens: tokens.map(|n| n as u64), model: None })
}

/// `[[…]]`.
pub(super) fn of_rows(body: &[u8]) -> serde_json::Result<Answered> {
    Ok(Answered { rows: in_order(serde_json::from_slice(body)?), tokens: None, model: None })
}

fn in_order(rows: Rows) -> Vec<Row> {
    rows.into_iter().map(|row| Row { index: None, embedding: Numbers::Plain(row) }).collect()
}

impl Answered {
    /// Returns one vector of unit length per text, in the order of the texts, or says what is wrong with the answer.
    pub fn vectors(self, n_texts: usize, dim: usize) -> Result<Vec<Vec<f32>>, String> {
        let n_vectors = self.rows.len();
        if n_vectors != n_texts {
            return Err(format!("the embedder gave {n_vectors} vectors for {n_texts} texts"));
        }
        let mut vectors: Vec<Option<Vec<f32>>> = vec![None; n_texts];
        for (nth, row) in self.rows.into_iter().enumerate() {
            let index = row.index.unwrap_or(nth);
            let vector = unit(row.embedding.finite()?, dim)?;
            match vectors.get_mut(index) {
                Some(place @ None) => *place = Some(vector),
                _ => return Err(format!("the embedder gave a vector for no text, or two for one (index {index})")),
            }
        }
        Ok(vectors.into_iter().flatten().collect())
    }
}

impl Numbers {
    fn finite(self) -> Result<Vec<f32>, String> {
        let numbers: Vec<Option<f32>> = match self {
            Self::Plain(numbers) => numbers,
            Self::Packed(text) => {
                let bytes = STANDARD.decode(text).ok().filter(|bytes| bytes.len() % 4 == 0);
                let bytes = bytes.ok_or("the embedder gave a vector that is not packed as asked")?;
                bytes.as_chunks::<4>().0.iter().map(|four| Some(f32::from_le_bytes(*four))).collect()
            }
        };
        let finite: Option<Vec<f32>> = numbers.into_iter().map(|number| number.filter(|n| n.is_finite())).collect();
        finite.ok_or_else(|| "the embedder gave a vector with numbers that are none".to_owned())
    }
}

/// Normalises a vector to unit length, or says why it cannot be stored.
pub(super) fn unit(mut vector: Vec<f32>, dim: usize) -> Result<Vec<f32>, String> {
    let n = vector.len();
    if n != dim {
        return Err(format!("the embedder gave a vector of {n} dimensions where {dim} are set: check EMBED_DIM"));
    }
    let length = vector.iter().map(|n| f64::from(*n) * f64::from(*n)).sum::<f64>().sqrt();
    if length == 0.0 {
        return Err("the embedder gave a vector of zeros".into());
    }
    vector.iter_mut().for_each(|n| *n = (f64::from(*n) / length) as f32);
    Ok(vector)
}

/// Says what is wrong with an answer that does not parse. Some services write NaN, infinity or numbers that no float holds.
pub(super) fn unreadable(body: &[u8], error: &serde_json::Error) -> String {
    let has = |word: &[u8]| body.windows(word.len()).any(|bytes| bytes == word);
    let has_none = has(b"NaN") || has(b"Infinity") || error.to_string().contains("number out of range");
    let what = if has_none { "with numbers that are none" } else { "that does not parse" };
    format!("the embedder gave an answer {what}")
}

/// Whether two names mean the same model. A Tributary names its models in its own spelling, with the dimension behind.
pub(super) fn is_same_model(one: &str, other: &str, dim: usize) -> bool {
    let spelled = |name: &str| {
        let lower = name.to_lowercase();
        let words: Vec<&str> =
            lower.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty()).collect();
        let name = words.join("_");
        name.strip_suffix(&format!("_{dim}")).map_or(name.clone(), str::to_owned)
    };
    spelled(one) == spelled(other)
}

#[cfg(test)]
mod tests {
    use super::*;

    type Read = fn(&[u8]) -> serde_json::Result<Answered>;

    #[test]
    fn each_shape_gives_the_same_vectors() {
        let packed = STANDARD.encode([3.0_f32, 4.0].map(f32::to_le_bytes).concat());
        let data = format!(
            r#"{{"data":[{{"index":1,"embedding":[0,2]}},{{"index":0,"embedding":"{packed}"}}],"usage":{{"total_tokens":7}}}}"#
        );
        let cases: [(Read, &str, Option<u64>); 4] = [
            (of_data, &data, Some(7)),
            (of_embeddings, r#"{"embeddings":[[3,4],[0,2]],"prompt_eval_count":7}"#, Some(7)),
            (
                of_floats,
                r#"{"embeddings":{"float":[[3,4],[0,2]]},"meta":{"billed_units":{"input_tokens":7.0}}}"#,
                Some(7),
            ),
            (of_rows, "[[3,4],[0,2]]", None),
        ];
        for (read, body, tokens) in cases {
            let answered = read(body.as_bytes()).expect(body);
            assert_eq!(answered.tokens, tokens, "{body}");
            assert_eq!(answered.vectors(2, 2).expect(body), [[0.6, 0.8], [0.0, 1.0]], "{body}");
        }
    }

    #[test]
    fn no_number_that_is_none_passes() {
        let nan = STANDARD.encode([f32::NAN, 1.0].map(f32::to_le_bytes).concat());
        let odd = STANDARD.encode([1, 2, 3]);
        for embedding in ["[null,1]", "[1e39,1]", &format!("{nan:?}"), &format!("{odd:?}"), "\"*\""] {
            let body = format!(r#"{{"data":[{{"embedding":{embedding}}}]}}"#);
            let read = of_data(body.as_bytes()).expect("JSON").vectors(1, 2);
            assert!(read.is_err(), "{embedding}: {read:?}");
        }
        for row in ["[NaN,1]", r#"["NaN",1]"#, "[1e999,1]", "[Infinity,1]"] {
            let body = format!("[{row}]");
            let error = of_rows(body.as_bytes()).err().expect("an error");
            assert!(unreadable(body.as_bytes(), &error).ends_with("with numbers that are none"), "{row}");
        }
    }

    #[test]
    fn a_model_is_known_in_either_spelling() {
        for (one, other, is_same) in [
            ("text-embedding-3-small", "text_embedding_3_small_1536", true),
            ("fast_1536", "fast", true),
            ("voyage-4", "voyage-4-lite", false),
            ("fast_256", "fast", false), // of another length
        ] {
            assert_eq!(is_same_model(one, other, 1_536), is_same, "{one}, {other}");
        }
    }
}
