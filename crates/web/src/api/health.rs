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
use crate::server::{CallerAddress, Peer};

#[derive(Serialize, ToSchema)]
pub(crate) struct Status {
    #[schema(example = "ok")]
    status: &'static str,
}

/// Says that the process lives. It does not ask the database, so a lost database causes no restart.
#[utoipa::path(get, path = "/healthz", tag = "health", security(()), responses((status = 200, body = Status)))]
pub(crate) async fn healthz() -> Json<Status> {
    Json(Status { status: "ok" })
}

/// Says whether the database answers within two seconds and has this binary's schema. The answer is up to a second old.
#[utoipa::path(get, path = "/readyz", tag = "health", security(()),
    responses((status = 200, body = Status), (status = 503, body = Problem, description = "Says which")))]
pub(crate) async fn readyz(State(app): State<App>) -> Result<Json<Status>, ApiError> {
    match app.readiness.get(find_out(&app)).await {
        Readiness::Ready => Ok(Json(Status { status: "ok" })),
        Readiness::Behind(why) => Err(ApiError::NotReady(why)),
        Readiness::Away => Err(store::Error::TimedOut.into()),
    }
}

/// Whether this process can serve.
#[derive(Clone)]
pub(crate) enum Readiness {
    Ready,
    /// The schema is not this binary's; says why.
    Behind(String),
    /// The database does not answer.
    Away,
}

impl Readiness {
    /// How long an answer is good: without this, each of them would be a query. A database that is back is told at once; while it is away,
    /// a query takes its two seconds anyway.
    pub fn good_for(&self) -> Duration {
        match self {
            Self::Ready | Self::Behind(_) => Duration::from_secs(1),
            Self::Away => Duration::from_millis(100),
        }
    }
}

async fn find_out(app: &App) -> Readiness {
    let db = app.env.db.within(Duration::from_secs(2));
    let wanted = store::migrate::wanted_version();
    match db.session(async |conn| store::migrate::version(conn).await).await {
        Ok(Some(version)) if version >= wanted => Readiness::Ready,
        Ok(Some(version)) => {
            Readiness::Behind(format!("it has schema {version}, this binary wants {wanted}: run `tributary migrate`"))
        }
        Ok(None) => Readiness::Behind("it has not been set up: run `tributary migrate`".into()),
        Err(error) => {
            tracing::warn!(error = ?error, "the database does not say whether it is ready");
            Readiness::Away
        }
    }
}

/// Prometheus metrics, for a scraper on this machine or with an operator's key.
pub(crate) async fn metrics(
    State(app): State<App>,
    Extension(Peer(peer)): Extension<Peer>,
    Extension(address): Extension<CallerAddress>,
    headers: HeaderMap,
) -> Result<impl IntoResponse, ApiError> {
    // A proxy on this machine connects from loopback too, but says for whom.
    let is_forwarded = headers.contains_key("x-forwarded-for") || headers.contains_key(FORWARDED);
    if !peer.ip().to_canonical().is_loopback() || is_forwarded {
        let caller = Caller::of(&headers, address, &app).await?;
        if !caller.operates() {
            return Err(ApiError::Forbidden("metrics are for the operator's service keys"));
        }
    }
    app.gauges.refresh(&app).await;
    Ok(([(CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], app.metrics.render()))
}

/// The time at which the gauges that need the database were last set.
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

    /// Sets the gauges of every tenant. That is costly, so it happens seldom, and apart from the check of the database.
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
