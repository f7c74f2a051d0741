//! The frame of every page: heading, navigation, who is signed in.

use chrono::{DateTime, SecondsFormat, Utc};
use domain::shown::shown;

use super::{Visitor, assets};

/// The dashboard's pages. A new one is one line here.
const NAV: &[Section] = &[
    Section { href: "/", label: "Home", icon: "home", is_operators: false },
    Section { href: "/search", label: "Search", icon: "search", is_operators: false },
    Section { href: "/activities", label: "Activity", icon: "activity", is_operators: false },
    Section { href: "/sources", label: "Sources", icon: "sources", is_operators: false },
    Section { href: "/nodes", label: "Nodes", icon: "nodes", is_operators: false },
    Section { href: "/contacts", label: "Contacts", icon: "contacts", is_operators: false },
    Section { href: "/clients", label: "Clients", icon: "clients", is_operators: false },
    Section { href: "/settings/channels", label: "Channels", icon: "channels", is_operators: false },
    Section { href: "/settings/people", label: "People", icon: "people", is_operators: false },
    Section { href: "/queues", label: "Queues", icon: "queues", is_operators: false },
    Section { href: "/settings/tenants", label: "Tenants", icon: "tenants", is_operators: true },
    Section { href: "/workers", label: "Workers", icon: "workers", is_operators: true },
];

struct Section {
    href: &'static str,
    label: &'static str,
    icon: &'static str,
    /// About the installation, so shown to its operator alone.
    is_operators: bool,
}

pub(super) struct Layout {
    pub title: String,
    /// The path of style, script and icon.
    pub assets: &'static str,
    /// The server's time, by which the script tells ages.
    pub now: String,
    pub nav: Vec<Link>,
    /// None on pages that need no sign-in.
    pub visitor: Option<Who>,
}

pub(super) struct Who {
    pub tenant: String,
    pub key: String,
    pub csrf: String,
}

pub(super) struct Link {
    pub href: &'static str,
    pub label: &'static str,
    pub icon: &'static str,
    pub is_current: bool,
}

impl Layout {
    /// A page of the section `current` (its address in the list above).
    pub fn new(visitor: &Visitor, now: DateTime<Utc>, title: impl Into<String>, current: &str) -> Self {
        let visible = NAV.iter().filter(|section| !section.is_operators || visitor.operates());
        let link = |section: &Section| Link {
            href: section.href,
            label: section.label,
            icon: section.icon,
            is_current: section.href == current,
        };
        let who = Who { tenant: shown(&visitor.tenant_name), key: shown(&visitor.key_name), csrf: visitor.csrf() };
        Self { nav: visible.map(link).collect(), visitor: Some(who), now: exact(now), ..Self::bare(title) }
    }

    /// A page without navigation, for nobody in particular.
    pub fn bare(title: impl Into<String>) -> Self {
        Self { title: title.into(), assets: assets::base(), now: String::new(), nav: Vec::new(), visitor: None }
    }
}

fn exact(at: DateTime<Utc>) -> String {
    at.to_rfc3339_opts(SecondsFormat::Millis, true)
}
