//! An exact search, and how much of it the real one finds.

use std::collections::HashMap;

use domain::TenantId;
use engine::Env;
use store::memory::VectorTable;
use uuid::Uuid;

use super::{K, RARE};

/// Every vector of a tenant, to be compared one by one.
pub(super) struct Exact {
    rows: Vec<(Uuid, Vec<f32>)>,
}

impl Exact {
    pub(super) async fn load(env: &Env, tenant_id: TenantId, is_filtered: bool) -> anyhow::Result<Self> {
        let mut conn = env.db.acquire().await?;
        let only = is_filtered.then_some(RARE);
        Ok(Self { rows: store::bench::vectors(&mut conn, tenant_id, &table(env)?, only).await? })
    }

    pub(super) fn n_chunks(&self) -> usize {
        self.rows.len()
    }

    /// The share of the ten nearest documents that was found.
    pub(super) fn recall(&self, query: &[f32], found: &[Uuid]) -> f64 {
        let mut best: HashMap<Uuid, f32> = HashMap::new();
        for (document, vector) in &self.rows {
            let similarity: f32 = vector.iter().zip(query).map(|(a, b)| a * b).sum();
            let slot = best.entry(*document).or_insert(f32::MIN);
            *slot = slot.max(similarity);
        }
        let mut ranked: Vec<f32> = best.values().copied().collect();
        ranked.sort_by(|a, b| b.total_cmp(a));
        ranked.truncate(K);
        let found: Vec<f32> = found.iter().filter_map(|document| best.get(document).copied()).collect();
        share(&ranked, &found)
    }
}

/// The table of the vectors that are searched.
pub(super) fn table(env: &Env) -> anyhow::Result<VectorTable> {
    Ok(VectorTable::new(&env.embedders.configured().model().name)?)
}

/// The share of the nearest documents that was found, given how similar they are, best first, and how similar those are that were found. A document
/// as near as the last one counts: equals have no order.
pub(super) fn share(nearest: &[f32], found: &[f32]) -> f64 {
    let Some(least) = nearest.last().map(|last| last - 5e-4) else { return 1.0 };
    let good = found.iter().filter(|similarity| **similarity >= least).count();
    good.min(nearest.len()) as f64 / nearest.len() as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_share_that_was_found() {
        for (nearest, found, expected) in [
            (vec![], vec![], 1.0),
            (vec![0.9, 0.8], vec![], 0.0),
            (vec![0.9, 0.8], vec![0.9, 0.7], 0.5),
            (vec![0.9, 0.8], vec![0.8, 0.8, 0.9], 1.0),
        ] {
            assert_eq!(share(&nearest, &found), expected, "{nearest:?} {found:?}");
        }
    }
}
