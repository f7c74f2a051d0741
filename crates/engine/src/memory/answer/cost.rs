//! The cost of an answer: reserved before the model is asked, and written down when it ends. It is of the same month and under the same cap as
//! the cost of vectors (ADR 15, ADR 32).

use connectors::models::ChatUsage;
use domain::TenantId;
use store::spend::{self, Room, Spent};
use uuid::Uuid;

use crate::{Config, Env};

/// The tokens and the money that an answer took.
#[derive(Clone, Debug, PartialEq)]
pub struct Cost {
    pub model: String,
    pub input_tokens: u64,
    pub output_tokens: u64,
    /// Millionths of a dollar.
    pub micros: i64,
    /// Whether the tokens are estimated, because the service did not say how many there were.
    pub is_estimate: bool,
}

/// Dollars per million tokens, which is millionths of a dollar per token.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Prices {
    input: f64,
    output: f64,
}

/// The prices of well-known models, by the beginning of their names, as of October 2026.
const KNOWN: [(&str, f64, f64); 8] = [
    ("claude-haiku-5-5", 0.10, 0.50),
    ("claude-sonnet-5-5", 2.0, 10.0),
    ("claude-opus-5-5", 4.0, 20.0),
    ("claude-haiku-4-5", 1.0, 5.0),
    ("gpt-6-luna", 0.10, 0.50),
    ("gpt-6-sol", 2.0, 10.0),
    ("gpt-5.4-nano", 0.20, 1.25),
    ("gpt-5.4-mini", 0.75, 4.50),
];

impl Prices {
    pub fn of(config: &Config, model: &str) -> Self {
        let known = KNOWN.iter().find(|(name, ..)| model.starts_with(name));
        let (input, output) = known.map_or((0.0, 0.0), |(_, input, output)| (*input, *output));
        Self {
            input: config.llm_input_price_per_million.unwrap_or(input),
            output: config.llm_output_price_per_million.unwrap_or(output),
        }
    }

    /// The price of so many bytes that are sent and received.
    pub fn estimate(self, n_sent: usize, n_received: usize) -> i64 {
        self.micros(ChatUsage { input_tokens: tokens(n_sent), output_tokens: tokens(n_received) })
    }

    fn micros(self, usage: ChatUsage) -> i64 {
        (usage.input_tokens as f64 * self.input + usage.output_tokens as f64 * self.output).ceil() as i64
    }
}

/// Leave to ask the model once.
pub(crate) struct Reserved {
    tenant_id: TenantId,
    prices: Prices,
    /// None: the call costs nothing, or there is no cap.
    id: Option<Uuid>,
}

/// Reserves the cost of a question of so many bytes and the longest answer. None: the month's money does not suffice, or calls under way may use
/// it up.
pub(crate) async fn reserve(
    env: &Env,
    tenant_id: TenantId,
    prices: Prices,
    bytes: usize,
    most_tokens: u32,
) -> store::Result<Option<Reserved>> {
    let micros = prices.micros(ChatUsage { input_tokens: tokens(bytes), output_tokens: most_tokens.into() });
    let Some(cap) = env.config.embed_cap_micros().filter(|_| micros > 0) else {
        return Ok(Some(Reserved { tenant_id, prices, id: None }));
    };
    let id = Uuid::now_v7();
    let mut conn = env.db.acquire().await?;
    let room = spend::reserve(&mut conn, env.clock.sql(), tenant_id, id, micros, cap).await?;
    Ok((room == Room::Reserved).then_some(Reserved { tenant_id, prices, id: Some(id) }))
}

impl Reserved {
    /// Writes down what was used: as the service counted it, else by the bytes that were sent and received.
    pub async fn settle(
        self,
        env: &Env,
        model: &str,
        usage: Option<ChatUsage>,
        n_sent: usize,
        n_received: usize,
    ) -> Cost {
        let estimate = ChatUsage { input_tokens: tokens(n_sent), output_tokens: tokens(n_received) };
        let used = usage.unwrap_or(estimate);
        // A stream that broke off has told of fewer tokens than it sent.
        let used = ChatUsage { output_tokens: used.output_tokens.max(estimate.output_tokens / 2), ..used };
        let micros = self.prices.micros(used);
        let tokens = i64::try_from(used.input_tokens + used.output_tokens).unwrap_or(i64::MAX);
        let spent = Spent { calls: 1, documents: 0, texts: 0, tokens, cost_micros: micros };
        let reservations: Vec<Uuid> = self.id.into_iter().collect();
        let settled = async {
            let mut conn = env.db.acquire().await?;
            spend::settle(&mut conn, env.clock.sql(), self.tenant_id, model, &reservations, &spent).await
        };
        if let Err(error) = settled.await {
            tracing::error!(error = ?error, "the cost of an answer could not be written down");
        }
        Cost {
            model: model.to_owned(),
            input_tokens: used.input_tokens,
            output_tokens: used.output_tokens,
            micros,
            is_estimate: usage.is_none(),
        }
    }
}

/// Four bytes to a token, rounded up.
fn tokens(bytes: usize) -> u64 {
    (bytes as u64).div_ceil(4)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::tests::of_flags;

    #[test]
    fn a_setting_goes_before_what_is_known_of_a_model() {
        let own = ["--llm-input-price-per-million", "3", "--llm-output-price-per-million", "0.5"];
        for (flags, model, input, output) in [
            (&[][..], "claude-haiku-5-5-20261001", 0.10, 0.50),
            (&[], "gpt-6-sol", 2.0, 10.0),
            (&[], "llama3", 0.0, 0.0),
            (&own, "gpt-6-sol", 3.0, 0.5),
            (&own[..2], "gpt-6-sol", 3.0, 10.0),
        ] {
            assert_eq!(Prices::of(&of_flags(flags), model), Prices { input, output }, "{model}, {flags:?}");
        }
    }

    #[test]
    fn a_cost_is_rounded_up_to_a_millionth() {
        let prices = Prices { input: 0.10, output: 0.50 };
        for (input_tokens, output_tokens, micros) in [(0, 0, 0), (1, 0, 1), (10_000, 200, 1_100)] {
            assert_eq!(prices.micros(ChatUsage { input_tokens, output_tokens }), micros);
        }
    }
}
