//! Every route, on one page. The API's are collected together with their description, so that the two cannot differ.

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::http::header::CONTENT_TYPE;
use axum::middleware::from_fn_with_state;
use axum::response::{IntoResponse, Redirect};
use axum::routing::{any, get, post};
use utoipa::OpenApi as _;
use utoipa::openapi::security::{ApiKey, ApiKeyValue, Http, HttpAuthScheme, SecurityScheme};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::error::{ApiError, Problem};
use super::{
    activities, alerts, answer, channels, clients, contacts, dead_letters, documents, embed, events, failures, forget,
    health, jobs, keys, memory, nodes, queues, recordings, rest, schedules, search, searches, sources, tenants, usage,
    webhooks, workers,
};
use crate::app::App;
use crate::edge::edge;
use crate::terms::{Limit, WithTerms as _};
use crate::{realtime, ui};

pub(crate) fn build(app: App) -> Router {
    let body_limit = DefaultBodyLimit::max(app.env.config.request_max_bytes);
    let (api, _) = api().split_for_parts();
    api.merge(pages())
        .route("/api/v1/openapi.json", get(openapi_json))
        .route("/metrics", get(health::metrics))
        .route("/rest/v1/rpc/{name}", any(rest::rpc).open_to_pages())
        .route("/rest/v1/{table}", any(rest::table).open_to_pages())
        .route("/realtime/v1/websocket", get(realtime::socket::open))
        .fallback(async || ApiError::NotFound("page"))
        .method_not_allowed_fallback(async || ApiError::MethodNotAllowed)
        .layer(body_limit)
        .layer(from_fn_with_state(app.clone(), edge))
        .with_state(app)
}

fn api() -> OpenApiRouter<App> {
    OpenApiRouter::with_openapi(Api::openapi())
        .routes(routes!(health::healthz))
        .routes(routes!(health::readyz))
        .routes(routes!(search::search))
        .routes(routes!(answer::answer).limited(Limit::Answer))
        .routes(routes!(searches::list, searches::create))
        .routes(routes!(searches::delete))
        .routes(routes!(searches::see))
        .routes(routes!(documents::list))
        .routes(routes!(documents::create).limited(Limit::Document))
        .routes(routes!(documents::one))
        .routes(routes!(queues::list))
        .routes(routes!(queues::items))
        .routes(routes!(queues::item))
        .routes(routes!(queues::act))
        .routes(routes!(workers::list))
        .routes(routes!(workers::one))
        .routes(routes!(schedules::list))
        .routes(routes!(alerts::list))
        .routes(routes!(keys::list, keys::create))
        .routes(routes!(keys::revoke))
        .routes(routes!(channels::list, channels::create))
        .routes(routes!(channels::change, channels::delete))
        .routes(routes!(channels::rotate))
        .routes(routes!(channels::test))
        .routes(routes!(channels::refusals))
        .routes(routes!(channels::enable))
        .routes(routes!(channels::disable))
        .routes(routes!(activities::list))
        .routes(routes!(activities::one))
        .routes(routes!(activities::retry))
        .routes(routes!(activities::skip))
        .routes(routes!(activities::link))
        .routes(routes!(recordings::one).limited(Limit::Recording))
        .routes(routes!(dead_letters::list))
        .routes(routes!(dead_letters::replay))
        .routes(routes!(nodes::list))
        .routes(routes!(nodes::change))
        .routes(routes!(contacts::list, contacts::create))
        .routes(routes!(contacts::one, forget::forget_contact))
        .routes(routes!(forget::count_contact))
        .routes(routes!(forget::list))
        .routes(routes!(tenants::list))
        .routes(routes!(tenants::count))
        .routes(routes!(tenants::forget))
        .routes(routes!(sources::list))
        .routes(routes!(sources::create).limited(Limit::Connect))
        .routes(routes!(sources::one, sources::change, forget::delete))
        .routes(routes!(sources::sync))
        .routes(routes!(sources::pause))
        .routes(routes!(sources::resume))
        .routes(routes!(failures::list))
        .routes(routes!(failures::retry_all))
        .routes(routes!(failures::retry))
        .routes(routes!(failures::skip))
        .routes(routes!(jobs::list))
        .routes(routes!(jobs::one))
        .routes(routes!(jobs::retry))
        .routes(routes!(jobs::cancel))
        .routes(routes!(usage::show))
        .routes(routes!(memory::show))
        .routes(routes!(memory::estimate, memory::begin, memory::cancel))
        .routes(routes!(clients::list))
        .routes(routes!(clients::one))
        .routes(routes!(webhooks::ingest).limited(Limit::Webhook))
        .routes(routes!(webhooks::ingest_activity).limited(Limit::Webhook))
        .routes(routes!(events::stream))
        .routes(routes!(embed::embed).limited(Limit::Embed))
}

fn pages() -> Router<App> {
    Router::new()
        .route("/", get(ui::home::show))
        .route("/search", get(ui::search::show))
        .route("/ask", get(ui::ask::show).post(ui::ask::ask).limited(Limit::Answer))
        .route("/searches", post(ui::searches::save))
        .route("/searches/{id}", get(ui::searches::open))
        .route("/searches/{id}/{action}", post(ui::searches::act))
        .route("/documents/{id}", get(ui::document::show))
        .route("/documents/{id}/original", get(ui::document::original))
        .route("/activities", get(ui::feed::show))
        .route("/activities/{id}", get(ui::activities::show))
        .route("/activities/{id}/link", post(ui::activities::link))
        .route("/activities/{id}/recording", get(ui::activities::recording).limited(Limit::Recording))
        .route("/activities/{id}/attachments/{nth}", get(ui::activities::attachment))
        .route("/activities/{id}/{action}", post(ui::activities::act))
        .route("/unmatched", get(ui::activities::unmatched))
        .route("/dead-letters", get(ui::dead_letters::show))
        .route("/dead-letters/replay", post(ui::dead_letters::replay))
        .route("/sources", get(ui::sources::show))
        .route("/sources", post(ui::sources::connect).limited(Limit::Connect))
        .route("/sources/{id}", get(ui::source::show))
        .route("/sources/{id}/key", post(ui::source::replace_key).limited(Limit::Connect))
        .route("/sources/{id}/every", post(ui::source::set_cadence))
        .route("/sources/{id}/failures", post(ui::source::decide))
        .route("/sources/{id}/{action}", post(ui::source::act))
        .route("/settings/integrations", get(async || Redirect::to("/sources")))
        .route("/oauth/{provider}/authorize", get(ui::oauth::authorize))
        .route("/oauth/{provider}/callback", get(ui::oauth::callback).limited(Limit::Connect))
        .route("/jobs/{id}", get(ui::job::show))
        .route("/jobs/{id}/{action}", post(ui::job::act))
        .route("/clients", get(ui::clients::list))
        .route("/clients/{id}", get(ui::clients::show))
        .route("/nodes", get(ui::nodes::show))
        .route("/nodes/{id}", post(ui::nodes::change))
        .route("/contacts", get(ui::contacts::list).post(ui::contacts::create))
        .route("/contacts/{id}", get(ui::contacts::show))
        .route("/contacts/{id}/forget", post(ui::contacts::forget))
        .route("/forgotten", get(ui::forgotten::show))
        .route("/settings/tenants", get(ui::tenants::list))
        .route("/settings/tenants/{id}", get(ui::tenants::show))
        .route("/settings/tenants/{id}/forget", post(ui::tenants::forget))
        .route("/settings/channels", get(ui::channels::show).post(ui::channels::create))
        .route("/settings/channels/{id}", get(ui::channel::show).post(ui::channel::change))
        .route("/settings/channels/{id}/rotate", post(ui::channel::rotate))
        .route("/settings/channels/{id}/{action}", post(ui::channels::act))
        .route("/queues", get(ui::queues::show))
        .route("/queues/{lane}", get(ui::lane::show))
        .route("/queues/{lane}/items/{id}", get(ui::item::show))
        .route("/queues/{lane}/items/{id}/{action}", post(ui::item::act))
        .route("/workers", get(ui::workers::show))
        .route("/api", get(ui::reference::show))
        .route("/signin", get(ui::signin::show).post(ui::signin::with_key))
        .route("/signin/once", get(ui::signin::again).post(ui::signin::with_link))
        .route("/signout", post(ui::signin::sign_out))
        .route("/frame", post(ui::frame::tell))
        .route("/static/{hash}/{name}", get(ui::assets::serve))
}

/// The API's description.
pub fn openapi() -> utoipa::openapi::OpenApi {
    api().into_openapi()
}

async fn openapi_json() -> impl IntoResponse {
    ([(CONTENT_TYPE, "application/json")], openapi().to_json().unwrap_or_default())
}

#[derive(utoipa::OpenApi)]
#[openapi(
    info(
        title = "Tributary",
        description = "Every answer that is not 2xx is a problem (RFC 9457) with the id of the request. Lists hold what belongs to the \
                       key's tenant and nothing else; another tenant's id is answered with 404."
    ),
    components(schemas(Problem)),
    modifiers(&Keys),
    security(("key" = []), ("apikey" = []))
)]
struct Api;

struct Keys;

impl utoipa::Modify for Keys {
    fn modify(&self, openapi: &mut utoipa::openapi::OpenApi) {
        let components = openapi.components.get_or_insert_default();
        components.add_security_scheme("key", SecurityScheme::Http(Http::new(HttpAuthScheme::Bearer)));
        components.add_security_scheme("brain", SecurityScheme::Http(Http::new(HttpAuthScheme::Bearer)));
        components.add_security_scheme("apikey", SecurityScheme::ApiKey(ApiKey::Header(ApiKeyValue::new("apikey"))));
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn every_route_of_the_api_is_described() {
        let openapi = super::openapi();
        assert!(openapi.paths.paths.len() >= 12);
        for (path, item) in &openapi.paths.paths {
            for operation in [&item.get, &item.put, &item.post, &item.patch, &item.delete].into_iter().flatten() {
                assert!(operation.summary.is_some(), "{path} has no summary");
            }
        }
    }
}
