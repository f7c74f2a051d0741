//! Room for searches. Over the API one too many is refused; a model that is refused gives up, so here it waits for its turn.

use std::time::Duration;

use tokio::time::{Instant, sleep};

use crate::api::error::ApiError;
use crate::api::search;
use crate::app::App;
use crate::caps::OfCaller;

const MOST_WAIT: Duration = Duration::from_secs(15);
/// The first pause; each is longer than the one before, up to the longest.
const FIRST: Duration = Duration::from_millis(2);
const LONGEST: Duration = Duration::from_millis(25);

/// Counts one more search, until dropped; waits while the caller has enough under way.
pub(super) async fn room(app: &App, caller: &domain::Caller) -> Result<OfCaller, ApiError> {
    let until = Instant::now() + MOST_WAIT;
    let mut pause = FIRST;
    loop {
        match search::hold(app, caller) {
            Err(enough) if Instant::now() >= until => return Err(enough),
            Err(_) => sleep(pause).await,
            Ok(hold) => return Ok(hold),
        }
        pause = (pause * 2).min(LONGEST);
    }
}
