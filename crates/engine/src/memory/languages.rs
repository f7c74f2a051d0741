//! The language of a tenant's texts. It decides which forms of a word are the same word. It is detected text by text, unless the tenant fixes it.

use std::collections::HashSet;

use domain::{Caller, Fault, TenantId, text};
use store::memory::languages::{self, Labelled, Relabelled};
use store::memory::moves::free_pointer;
use uuid::Uuid;

use super::embed::table_of;
use super::moves;
use crate::{ActError, Env};

/// Stands for a language that is detected.
pub const AUTO: &str = "auto";

/// Fixes the language of the caller's texts, or has it detected again (`auto`). What was remembered before gets it in the background.
pub async fn set(env: &Env, caller: &Caller, name: &str) -> Result<(), ActError> {
    let (tenant_id, name) = (caller.tenant_id, name.trim().to_lowercase());
    let lang = (name != AUTO).then_some(name.as_str());
    let known = env.db.session(async |conn| languages::known(conn).await).await?;
    if let Some(lang) = lang.filter(|lang| !known.iter().any(|known| known == lang)) {
        return Err(ActError::invalid(format!(
            "{lang:?} is no language that texts are searched in: say auto, or one of {}",
            known.join(", ")
        )));
    }
    let set = env.db.write(async |tx| {
        if !free_pointer(tx, tenant_id).await? {
            return Err(ActError::conflict("this memory is being written without a pause: try again in a moment"));
        }
        let memory = store::memory::tenant(tx, tenant_id).await?;
        let model = match &memory.model {
            Some(model) => model.clone(),
            None => table_of(tx, &memory, env.embedders.configured()).await?.model().to_owned(), // nothing is remembered yet
        };
        store::memory::ensure_tenant(tx, tenant_id, &model, lang.as_slice()).await?;
        if languages::set(tx, tenant_id, lang).await? {
            tracing::info!(tenant.id = %tenant_id, "the language of tenant {tenant_id}'s texts is {name} now, by key {}", caller.key_id);
        }
        tx.notify(moves::changed(tenant_id));
        Ok(())
    });
    set.await
}

/// Gives documents the language that their tenants have set, one bite a commit: a crash loses a bite at most. A document that has its language is left
/// alone.
pub async fn keep(env: &Env) -> Result<(), Fault> {
    // A tenant for whom something fails holds up no other, and is tried again at the next tick.
    let (mut failed, mut failing) = (None, HashSet::new());
    loop {
        let mut under_way = env.db.session(async |conn| languages::under_way(conn).await).await?;
        under_way.retain(|at| !failing.contains(&at.tenant_id));
        if under_way.is_empty() {
            return failed.map_or(Ok(()), Err);
        }
        for at in under_way {
            if let Err(fault) = go_on(env, at).await {
                failing.insert(at.tenant_id);
                failed = Some(fault);
            }
        }
    }
}

/// Labels a tenant's next documents.
async fn go_on(env: &Env, at: Relabelled) -> Result<(), Fault> {
    let mut tx = env.db.begin().await?;
    let Some(setting) = languages::lock(&mut tx, at).await? else { return Ok(()) };
    let documents = languages::next(&mut tx, at).await?;
    let lang_of = |document: &Labelled| match &setting.lang {
        Some(fixed) => fixed.clone(),
        None => text::detect_lang(&document.beginning).unwrap_or(&env.config.text_lang).to_owned(),
    };
    let labels: Vec<(Uuid, String)> = documents.iter().map(|document| (document.id, lang_of(document))).collect();
    let others = labels.iter().zip(&documents).filter(|((_, lang), document)| *lang != document.lang);
    let others: Vec<(Uuid, &str)> = others.map(|((id, lang), _)| (*id, lang.as_str())).collect();
    languages::label(&mut tx, at.tenant_id, &others).await?;
    let last = documents.last().map(|document| document.id);
    let langs: HashSet<&str> = others.iter().map(|(_, lang)| *lang).collect();
    languages::go_on(&mut tx, at, last, &langs.into_iter().collect::<Vec<_>>()).await?;
    if last.is_none() {
        tx.notify(moves::changed(TenantId(at.tenant_id)));
    }
    Ok(tx.commit().await?)
}
