//! The HTTP API under `/api/v1`, and what pages share with it: who is calling, what went wrong, which routes there are.

pub(crate) mod activities;
pub(crate) mod alerts;
pub(crate) mod auth;
pub(crate) mod channels;
pub(crate) mod clients;
pub(crate) mod contacts;
pub(crate) mod dead_letters;
pub(crate) mod documents;
pub(crate) mod error;
pub(crate) mod events;
pub(crate) mod extract;
pub(crate) mod health;
pub(crate) mod jobs;
pub(crate) mod keys;
pub(crate) mod nodes;
pub(crate) mod origin;
pub(crate) mod queues;
pub(crate) mod recordings;
pub(crate) mod rest;
pub(crate) mod router;
pub(crate) mod schedules;
pub(crate) mod search;
pub(crate) mod sources;
pub(crate) mod webhooks;
pub(crate) mod workers;
