//! Whether this process lives, whether it can serve, and what it counts.

use std::time::{Duration, Instant};

use axum::Extension;
use axum::Json;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::http::header::{CONTENT_TYPE, FORWARDED};
use axum::response::IntoResponse;
use domain::ItemState;
use engine::lanes;
use serde::Serialize;
use store::workers::Health;
use tokio::sync::Mutex;
use utoipa::ToSchema;

use super::auth::Caller;
use super::error::{ApiError, Problem};
use crate::app::App;
use crate::server::Peer;

#[derive(Serialize, ToSchema)]
pub(crate) struct Status {
    #[schema(example = "ok")]
    status: &'static str,
}

/// Says that the process lives. Asks nobody, so a database that is away makes no restart.
#[utoipa::path(get, path = "/healthz", tag = "health", security(()), responses((status = 200, body = Status)))]
pub(crate) async fn healthz() -> Json<Status> {
    Json(Status { status: "ok" })
}

/// Says whether the database answers within two seconds and has this binary's schema.
#[utoipa::path(get, path = "/readyz", tag = "health", security(()),
    responses((status = 200, body = Status), (status = 503, body = Problem, description = "Says which")))]
pub(crate) async fn readyz(State(app): State<App>) -> Result<Json<Status>, ApiError> {
    let version =
        app.env.db.within(Duration::from_secs(2)).session(async |conn| store::migrate::version(conn).await).await?;
    let wanted = store::migrate::wanted_version();
    match version {
        Some(version) if version >= wanted => Ok(Json(Status { status: "ok" })),
        Some(version) => Err(ApiError::NotReady(format!(
            "it has schema {version}, this binary wants {wanted}: run `tributary migrate`"
        ))),
        None => Err(ApiError::NotReady("it has not been set up: run `tributary migrate`".into())),
    }
}

/// Prometheus metrics, for a scraper on this machine or with an operator's key.
pub(crate) async fn metrics(
    State(app): State<App>,
    Extension(Peer(peer)): Extension<Peer>,
    headers: HeaderMap,
) -> Result<impl IntoResponse, ApiError> {
    // A proxy on this machine connects from loopback too, but says for whom.
    let is_forwarded = headers.contains_key("x-forwarded-for") || headers.contains_key(FORWARDED);
    if !peer.ip().to_canonical().is_loopback() || is_forwarded {
        let caller = Caller::of(&headers, &app).await?;
        if !caller.operates() {
            return Err(ApiError::Forbidden("metrics are for the operator's service keys"));
        }
    }
    app.gauges.refresh(&app).await;
    Ok(([(CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], app.metrics.render()))
}

/// When the gauges that need the database were last set.
#[derive(Default)]
pub(crate) struct Gauges {
    set_at: Mutex<Option<Instant>>,
    watched_at: Mutex<Option<Instant>>,
}

impl Gauges {
    /// At most every five seconds, however many scrape. Without the database the old values stay, and the rest is still told.
    async fn refresh(&self, app: &App) {
        let mut set_at = self.set_at.lock().await;
        if set_at.is_some_and(|at| at.elapsed() < Duration::from_secs(5)) {
            return;
        }
        let looked = app.env.db.within(Duration::from_secs(4)).session(async |conn| {
            for lane in &lanes::ALL {
                let depths = lane.queue().depths(conn, app.env.clock.sql()).await?;
                for state in ItemState::ALL {
                    let n = depths.iter().find(|(of, _)| *of == state).map_or(0, |(_, n)| *n);
                    metrics::gauge!("tributary_queue_items", "lane" => lane.name, "state" => state.as_str())
                        .set(n as f64);
                }
            }
            let workers = engine::health::list_workers(&app.env, conn).await?;
            for health in [Health::Alive, Health::Late, Health::Stalled, Health::Dead, Health::Stopped] {
                let n = workers.iter().filter(|worker| worker.health() == health).count();
                metrics::gauge!("tributary_workers", "health" => health.as_str()).set(n as f64);
            }
            Ok(())
        });
        let is_up = match looked.await {
            Ok(()) => 1.0,
            Err(error) => {
                tracing::debug!(error = ?error, "gauges could not be refreshed");
                0.0
            }
        };
        metrics::gauge!("tributary_database_up").set(is_up);
        *set_at = Some(Instant::now());
        drop(set_at);
        self.watch(app).await;
    }

    /// Of every tenant, so seldom, and apart from what says whether the database is there.
    async fn watch(&self, app: &App) {
        let mut watched_at = self.watched_at.lock().await;
        if watched_at.is_some_and(|at| at.elapsed() < Duration::from_secs(60)) {
            return;
        }
        *watched_at = Some(Instant::now());
        let db = app.env.db.within(Duration::from_secs(10));
        let watched = db.session(async |conn| store::claims::watched(conn, app.env.clock.sql()).await);
        for watched in watched.await.unwrap_or_default() {
            let tenant = watched.tenant_id.to_string();
            metrics::gauge!("tributary_activities_long_held", "tenant" => tenant.clone()).set(watched.long_held as f64);
            metrics::gauge!("tributary_activities_unmatched_ratio", "tenant" => tenant)
                .set(watched.unmatched_share.unwrap_or(0.0));
        }
    }
}
