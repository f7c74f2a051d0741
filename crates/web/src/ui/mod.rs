//! The dashboard. A page is a struct with exactly what its template prints, already in words; the template lies beside it.

pub(crate) mod activities;
pub(crate) mod add;
pub(crate) mod alerts;
pub(crate) mod ask;
pub(crate) mod assets;
pub(crate) mod assistants;
mod card;
pub(crate) mod channel;
pub(crate) mod channels;
mod chart;
mod chosen;
pub(crate) mod client;
pub(crate) mod client_acts;
pub(crate) mod clients;
pub(crate) mod connect;
pub(crate) mod connections;
pub(crate) mod consent;
pub(crate) mod contact;
pub(crate) mod contacts;
pub(crate) mod dead_letters;
pub(crate) mod deleted;
pub(crate) mod document;
pub(crate) mod documents;
pub(crate) mod error;
mod examples;
pub(crate) mod export;
pub(crate) mod feed;
mod fields;
pub(crate) mod file;
pub(crate) mod file_acts;
pub(crate) mod files;
mod flash;
mod flow;
pub(crate) mod forgotten;
pub(crate) mod found;
pub(crate) mod frame;
mod gallery;
pub(crate) mod home;
pub(crate) mod item;
pub(crate) mod job;
pub(crate) mod keys;
pub(crate) mod lane;
mod layout;
pub(crate) mod mail;
pub(crate) mod mail_channel;
pub(crate) mod mailbox;
pub(crate) mod mailbox_acts;
mod marked;
pub(crate) mod message;
pub(crate) mod moved;
pub(crate) mod new_channel;
pub(crate) mod nodes;
pub(crate) mod oauth;
pub(crate) mod people;
pub(crate) mod person;
pub(crate) mod queues;
mod reading;
pub(crate) mod reference;
pub(crate) mod retention;
pub(crate) mod schedules;
pub(crate) mod search;
pub(crate) mod searches;
pub(crate) mod senders;
pub(crate) mod sessions;
pub(crate) mod signin;
pub(crate) mod source;
pub(crate) mod sources;
pub(crate) mod spend;
mod start;
pub(crate) mod tenants;
mod text;
pub(crate) mod thread;
pub(crate) mod use_with;
mod walk;
pub(crate) mod workers;

use std::ops::Deref;

use askama::Template;
use axum::extract::{FromRequest, FromRequestParts, Request};
use axum::http::Method;
use axum::http::request::Parts;
use axum::response::Html;
use domain::Scope;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::api::auth::{Caller, Credential, address_of};
use crate::api::error::ApiError;
use crate::api::extract::Form;
use crate::api::origin;
use crate::app::App;

fn html(page: &impl Template) -> Result<Html<String>, ApiError> {
    page.render()
        .map(Html)
        .map_err(|error| ApiError::Internal(anyhow::anyhow!("a template could not be filled: {error}")))
}

/// A caller who may look at pages. Refused for a request that changes something, which takes a [`Posted`].
pub(crate) struct Visitor(Caller);

impl Visitor {
    /// The token that this visitor's forms carry. Empty for a visitor with a key, who has the API.
    pub fn csrf(&self) -> String {
        match &self.0.credential {
            Credential::Session(session) => origin::csrf_token(session),
            Credential::Key(_) | Credential::Assistant(_) => String::new(),
        }
    }

    /// The browser's session, as sessions are stored. None for a visitor with a key.
    fn session(&self) -> Option<[u8; 32]> {
        self.0.session()
    }
}

impl Deref for Visitor {
    type Target = domain::Caller;
    fn deref(&self) -> &domain::Caller {
        &self.0
    }
}

impl FromRequestParts<App> for Visitor {
    type Rejection = ApiError;
    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, ApiError> {
        if !matches!(parts.method, Method::GET | Method::HEAD) {
            return Err(ApiError::MethodNotAllowed);
        }
        let caller = Caller::of(&parts.headers, address_of(&parts.extensions), app).await?;
        caller.need(Scope::Read)?;
        Ok(Self(caller))
    }
}

/// A form that a visitor sent from one of our pages, with the token that proves it.
pub(crate) struct Posted<T> {
    pub caller: Caller,
    pub form: T,
}

#[derive(Deserialize)]
struct Sent<T> {
    #[serde(default)]
    csrf: String,
    #[serde(flatten)]
    form: T,
}

impl<T: DeserializeOwned> FromRequest<App> for Posted<T> {
    type Rejection = ApiError;
    async fn from_request(request: Request, app: &App) -> Result<Self, ApiError> {
        let headers = request.headers().clone();
        let caller = Caller::of(&headers, address_of(request.extensions()), app).await?;
        let Credential::Session(session) = &caller.credential else { return Err(ApiError::CrossSite) };
        let Form(Sent { csrf, form }) = Form::from_request(request, app).await?;
        origin::check(&headers, app.env.config.public_url.as_deref(), session, &csrf)?;
        Ok(Self { caller, form })
    }
}
