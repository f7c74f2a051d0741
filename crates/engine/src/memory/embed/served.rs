//! Our embedder as a service for others: `POST /internal/embed`. Another Tributary with `EMBEDDER=brain` asks it.

use anyhow::anyhow;
use connectors::models::estimated_tokens;
use domain::text::has_nul;
use domain::{Fault, TenantId};
use store::spend;

use super::{Embedded, Model};
use crate::Env;
use crate::memory::{Reservation, reserve, told};

/// The most texts of one request.
pub const MOST_TEXTS: usize = 256;
/// The most tokens of one request, by our estimate. A caller that sends more is told to send less at once.
pub const MOST_TOKENS: usize = 250_000;

/// The reasons why there are no vectors.
#[derive(Debug)]
pub enum NotServed {
    /// The request can never be answered.
    Invalid(String),
    /// Smaller requests can.
    TooLarge(String),
    /// Not now.
    Away(Fault),
}

/// Makes the vectors of somebody else's texts with the configured embedder. Their cost is the operator's.
pub async fn serve(env: &Env, texts: &[String]) -> Result<(Model, Vec<Vec<f32>>), NotServed> {
    check(texts)?;
    let embedder = env.embedders.configured();
    let model = embedder.model().clone();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let vectors = async {
        let operator = env.db.session(async |conn| store::tenants::ensure_operator(conn).await).await?;
        let reservation = match reserve(env, embedder, operator, texts.iter().map(|text| text.len()).sum()).await? {
            Reservation::Free => None,
            Reservation::Held(id) => Some(id),
            Reservation::Busy | Reservation::Spent => {
                return Err(Fault::Transient(anyhow!("what vectors may cost this month is spent")));
            }
        };
        let embedded = embedder.embed_documents(&texts).await;
        told(env, embedder, &embedded).await;
        let Embedded { vectors, spent, fault } = embedded?;
        if embedder.is_service() {
            settle(env, operator, &model, reservation.as_slice(), &spent).await?;
        }
        fault.map_or(Ok(vectors), Err)
    };
    Ok((model.clone(), vectors.await.map_err(NotServed::Away)?))
}

async fn settle(
    env: &Env,
    tenant_id: TenantId,
    model: &Model,
    reservations: &[uuid::Uuid],
    spent: &spend::Spent,
) -> Result<(), Fault> {
    let mut conn = env.db.acquire().await?;
    Ok(spend::settle(&mut conn, env.clock.sql(), tenant_id, &model.name, reservations, spent).await?)
}

fn check(texts: &[String]) -> Result<(), NotServed> {
    if texts.is_empty() {
        return Err(NotServed::Invalid("texts is empty".into()));
    }
    if let Some(nth) = texts.iter().position(|text| text.trim().is_empty()) {
        return Err(NotServed::Invalid(format!("texts[{nth}] is empty")));
    }
    if let Some(nth) = texts.iter().position(|text| has_nul(text)) {
        return Err(NotServed::Invalid(format!("texts[{nth}] has a NUL character")));
    }
    if texts.len() > MOST_TEXTS {
        return Err(NotServed::TooLarge(format!(
            "{} texts are too many at once: send up to {MOST_TEXTS}",
            texts.len()
        )));
    }
    if texts.iter().map(|text| estimated_tokens(text)).sum::<usize>() > MOST_TOKENS {
        return Err(NotServed::TooLarge(format!("the texts are too long: send up to {MOST_TOKENS} tokens at once")));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_can_be_embedded_is_taken() {
        let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
        assert!(check(&texts(&["a", "請求書"])).is_ok());
        for odd in [&[][..], &["a", ""], &[" \n"], &["a\0b"]] {
            assert!(matches!(check(&texts(odd)), Err(NotServed::Invalid(_))), "{odd:?}");
        }
        let long = "x".repeat(3 * MOST_TOKENS + 1);
        for large in [&vec!["a"; MOST_TEXTS + 1][..], &[&long]] {
            assert!(matches!(check(&texts(large)), Err(NotServed::TooLarge(_))));
        }
    }
}
