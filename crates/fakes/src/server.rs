//! The listener, and what happens to each request before and after a provider sees it.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::response::Response;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use crate::Shared;
use crate::faults::{self, HungUp};
use crate::ledger::Seen;
use crate::request::Asked;

type Routes = TowerToHyperService<Router>;

/// Serves until it is dropped, and its connections with it.
pub(crate) async fn serve(listener: TcpListener, shared: Arc<Shared>, router: Router) {
    let routes = TowerToHyperService::new(router);
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                if let Ok((stream, _)) = accepted {
                    connections.spawn(connection(stream, shared.clone(), routes.clone()));
                }
            }
            Some(_) = connections.join_next() => {}
        }
    }
}

async fn connection(stream: TcpStream, shared: Arc<Shared>, routes: Routes) {
    let _ = stream.set_nodelay(true); // only slower without
    let service = service_fn(move |request: hyper::Request<Incoming>| {
        answer(shared.clone(), routes.clone(), request.map(Body::new))
    });
    // An error here is a client that left, or an answer that was scripted to break off.
    let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
}

async fn answer(shared: Arc<Shared>, routes: Routes, request: hyper::Request<Body>) -> Result<Response, HungUp> {
    let now = shared.clock.now();
    let mut asked = Asked::read(request).await.ok_or(HungUp)?;
    let caller = asked.bearer().and_then(|token| shared.grants.caller(token, now));
    let number = shared.ledger.note(Seen {
        at: now,
        method: asked.parts.method.to_string(),
        path: asked.path.clone(),
        query: asked.plain_query(),
        account: caller.as_ref().map(|caller| caller.account.clone()),
        status: None,
    });
    let manner = shared.script.take(&asked);
    if let Some(latency) = shared.script.latency(&asked.path) {
        tokio::time::sleep(latency).await;
    }
    let instead = manner.as_ref().and_then(|manner| faults::instead(manner, &asked, now));
    let answered = match instead {
        Some(answered) => answered,
        None => {
            if let Some(caller) = caller {
                asked.parts.extensions.insert(caller);
            }
            if let Some(manner) = manner.clone() {
                asked.parts.extensions.insert(manner);
            }
            let Ok(response) = routes.call(asked.into_request()).await;
            match manner {
                Some(manner) => faults::spoil(manner, response).await,
                None => Ok(response),
            }
        }
    };
    if let Ok(response) = &answered {
        shared.ledger.answered(number, response.status().as_u16());
    }
    answered
}
