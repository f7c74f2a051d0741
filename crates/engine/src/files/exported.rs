//! The fields of all papers, page by page, as they are exported.

use domain::Caller;
use domain::text::has_nul;
use store::files::all_fields::{self, ListedField, Position, Wanted};

use crate::{ActError, Env};

/// Lists fields of the caller's documents after one, and the place after which the next page begins.
pub async fn all_fields(
    env: &Env,
    caller: &Caller,
    wanted: Wanted<'_>,
    after: Option<&Position>,
) -> Result<(Vec<ListedField>, Option<Position>), ActError> {
    if [wanted.document_type, wanted.name].into_iter().flatten().any(has_nul) {
        return Err(ActError::invalid("type and name have no NUL character"));
    }
    let listed = env.db.read(caller, async |tx| all_fields::after(tx, wanted, after).await).await?;
    let is_full = i64::try_from(listed.len()).is_ok_and(|n| n >= wanted.limit);
    let next = listed.last().filter(|_| is_full).map(ListedField::position);
    Ok((listed, next))
}
