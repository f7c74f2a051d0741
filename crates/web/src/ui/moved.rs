//! Pages that were at other addresses before: bookmarks, links in mails and open tabs still arrive.

use axum::Router;
use axum::http::Uri;
use axum::response::Redirect;
use axum::routing::any;

use crate::app::App;

/// Old addresses and the new ones. What follows an address, and its query, is kept.
const MOVED: &[(&str, &str)] = &[
    ("/sources", "/connections/accounts"),
    ("/settings/channels", "/connections/webhooks"),
    ("/contacts", "/clients/people"),
    ("/unmatched", "/inbox/unrecognised"),
    ("/queues", "/system/queues"),
    ("/workers", "/system/workers"),
    ("/nodes", "/system/agents"),
    ("/dead-letters", "/system/dead-letters"),
    ("/forgotten", "/settings/forgotten"),
];

/// Addresses of lists whose items are elsewhere: nothing may follow them.
const MOVED_ALONE: &[(&str, &str)] = &[("/activities", "/inbox"), ("/settings/integrations", "/connections/accounts")];

/// Addresses of sections, which lead to their first page.
const SECTIONS: &[(&str, &str)] = &[("/system", "/system/queues"), ("/settings", "/settings/people")];

/// The routes of all old addresses, for every method: a form of an open tab is sent again to the new one.
pub(crate) fn routes() -> Router<App> {
    let mut routes = Router::new();
    for (old, _) in MOVED {
        routes = routes.route(old, any(moved)).route(&format!("{old}/{{*rest}}"), any(moved));
    }
    for (old, _) in MOVED_ALONE {
        routes = routes.route(old, any(moved));
    }
    for (section, first) in SECTIONS {
        routes = routes.route(section, any(move || async move { Redirect::to(first) }));
    }
    routes
}

async fn moved(uri: Uri) -> Redirect {
    Redirect::permanent(&new_address(uri.path_and_query().map_or("/", |address| address.as_str())))
}

fn new_address(old: &str) -> String {
    let end = |rest: &str| rest.is_empty() || rest.starts_with(['/', '?']);
    MOVED
        .iter()
        .chain(MOVED_ALONE)
        .find_map(|(from, to)| old.strip_prefix(from).filter(|rest| end(rest)).map(|rest| format!("{to}{rest}")))
        .unwrap_or_else(|| "/".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_old_address_keeps_what_follows_it() {
        for (old, new) in [
            ("/sources", "/connections/accounts"),
            ("/sources/7f3a?done=saved", "/connections/accounts/7f3a?done=saved"),
            ("/queues/upkeep/items/m1?state=dead&before=m7", "/system/queues/upkeep/items/m1?state=dead&before=m7"),
            ("/settings/channels?add", "/connections/webhooks?add"),
            ("/activities?person=7", "/inbox?person=7"),
            ("/contacts/12", "/clients/people/12"),
            ("/sourcesful", "/"),
        ] {
            assert_eq!(new_address(old), new);
        }
    }

    #[test]
    fn nothing_leads_to_an_old_address() {
        for (_, new) in MOVED.iter().chain(MOVED_ALONE).chain(SECTIONS) {
            assert_eq!(new_address(new), "/", "{new} has moved itself");
        }
    }
}
