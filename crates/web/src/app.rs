//! The state that every handler shares.

use std::net::IpAddr;
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use axum::http::HeaderValue;
use domain::Notice;
use engine::Env;
use engine::intake::{Intake, PerMinute};
use engine::mail::notices::Notices;
use engine::work::Stop;
use metrics_exporter_prometheus::PrometheusHandle;

use crate::api::auth::Callers;
use crate::api::events;
use crate::api::health::{Gauges, Readiness};
use crate::caps::{Held, PerCaller, Recent};
use crate::edge;
use crate::mcp::Mcp;
use crate::realtime::feed::Feed;
use crate::ring::Ring;

/// The time limit for identifying the caller.
pub(crate) const AUTH_LIMIT: Duration = Duration::from_secs(4);

/// Cloning shares it.
#[derive(Clone)]
pub(crate) struct App(Arc<Inner>);

pub(crate) struct Inner {
    pub env: Env,
    pub stop: Stop,
    pub metrics: PrometheusHandle,
    pub callers: Callers,
    /// The changes, for event streams.
    pub ring: Ring<Notice>,
    /// Those that name documents, for streams of documents: a busy server's other changes do not push them out.
    pub documents: Ring<Notice>,
    /// The rows that changed, for sockets.
    pub feed: Feed,
    /// The policy of every answer.
    pub policy: HeaderValue,
    pub gauges: Gauges,
    pub readiness: Recent<Readiness>,
    /// Sign-ins that failed, by network.
    pub failures: PerMinute<IpAddr>,
    /// Connections, and requests that come through a trusted proxy, by network.
    pub addresses: Held<IpAddr>,
    pub streams: PerCaller,
    pub searches: PerCaller,
    /// Requests for vectors by other services, and their wrong secrets, by network.
    pub embeds: Held<()>,
    pub wrong_secrets: PerMinute<IpAddr>,
    pub answers: PerCaller,
    pub intake: Intake,
    pub notices: Notices,
    /// Posts to the hooks of mailboxes that were refused, and those whose bodies arrive, by network.
    pub wrong_notices: PerMinute<IpAddr>,
    pub arriving_notices: Held<IpAddr>,
    pub mcp: Mcp,
}

impl App {
    pub fn new(env: Env, metrics: PrometheusHandle, stop: Stop) -> Self {
        Self(Arc::new(Inner {
            intake: Intake::new(env.clone()),
            notices: Notices::new(env.clone()),
            wrong_notices: PerMinute::default(),
            arriving_notices: Held::default(),
            policy: edge::policy(&env.config),
            mcp: Mcp::new(&env.config),
            env,
            stop,
            metrics,
            callers: Callers::default(),
            ring: Ring::new(events::RING, |_| 1),
            documents: Ring::new(events::RING, |_| 1),
            feed: Feed::default(),
            gauges: Gauges::default(),
            readiness: Recent::new(Readiness::good_for),
            failures: PerMinute::default(),
            addresses: Held::default(),
            streams: PerCaller::default(),
            searches: PerCaller::default(),
            embeds: Held::default(),
            wrong_secrets: PerMinute::default(),
            answers: PerCaller::default(),
        }))
    }
}

impl Deref for App {
    type Target = Inner;
    fn deref(&self) -> &Inner {
        &self.0
    }
}
