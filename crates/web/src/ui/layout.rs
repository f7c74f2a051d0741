//! The frame of every page: navigation by section, the pages of the section, and who is signed in.

use chrono::{DateTime, SecondsFormat, Utc};
use domain::shown::shown;

use super::{Visitor, assets};

/// The dashboard's pages, by section: first those for everybody's work, then those for running the installation. A new page is one line here.
const NAV: &[Section] = &[
    Section { label: "Home", icon: "home", is_below: false, pages: &[Page::new("/", "Home", "overview alerts chart")] },
    Section {
        label: "Search",
        icon: "search",
        is_below: false,
        pages: &[Page::new("/search", "Search", "find"), Page::new("/ask", "Ask", "question answer")],
    },
    Section {
        label: "Inbox",
        icon: "inbox",
        is_below: false,
        pages: &[
            Page::new("/inbox", "All", "activity events calls e-mails messages"),
            Page::new("/inbox/mine", "Mine", "own").seen_by(SeenBy::People),
            Page::new("/inbox/unrecognised", "Unrecognised", "unmatched unknown senders"),
            Page::new("/inbox/failed", "Failed", "errors"),
        ],
    },
    Section {
        label: "Mail",
        icon: "mail",
        is_below: false,
        pages: &[Page::new("/mail", "Mail", "e-mails messages mailboxes conversations threads letters")],
    },
    Section {
        label: "Clients",
        icon: "clients",
        is_below: false,
        pages: &[Page::new("/clients", "Companies", "customers"), Page::new("/clients/people", "People", "contacts")],
    },
    Section {
        label: "Documents",
        icon: "documents",
        is_below: false,
        pages: &[
            Page::new("/documents", "All", "memory records notes"),
            Page::new("/documents/deleted", "Deleted", "removed restore let in again"),
        ],
    },
    Section {
        label: "Connections",
        icon: "connections",
        is_below: false,
        pages: &[
            Page::new("/connections", "Overview", "gallery add connect providers mailboxes"),
            Page::new("/connections/accounts", "Accounts", "sources providers sync"),
            Page::new("/connections/webhooks", "Webhooks", "channels"),
            Page::new("/connections/files", "Files", "upload remember"),
        ],
    },
    Section {
        label: "System",
        icon: "system",
        is_below: true,
        pages: &[
            Page::new("/system/queues", "Queues", "lanes items work"),
            Page::new("/system/workers", "Workers", "processes").seen_by(SeenBy::Operators),
            Page::new("/system/agents", "Agents", "nodes devices"),
            Page::new("/system/schedules", "Schedules", "tasks").seen_by(SeenBy::Operators),
            Page::new("/system/dead-letters", "Dead letters", "given up failed"),
        ],
    },
    Section {
        label: "Settings",
        icon: "settings",
        is_below: true,
        pages: &[
            Page::new("/settings/people", "People", "team members roles owners invite"),
            Page::new("/settings/sessions", "Sessions", "browsers sign in devices"),
            Page::new("/settings/keys", "Keys", "tokens scopes").seen_by(SeenBy::Managers),
            Page::new("/settings/assistants", "Assistants", "mcp oauth connected claude chatgpt calls"),
            Page::new("/settings/assistants/use", "Use with…", "mcp set up claude chatgpt cursor vs code codex"),
            Page::new("/settings/spend", "Spend", "cost budget search model"),
            Page::new("/settings/retention", "Retention", "kept deleted"),
            Page::new("/settings/forgotten", "Forgotten", "removed erased"),
            Page::new("/settings/tenants", "Tenants", "customers").seen_by(SeenBy::Operators),
            Page::new("/api", "API and docs", "openapi reference"),
        ],
    },
];

/// The things that a person can add, and where. A new thing to add is one line here.
const ADD: &[Page] = &[
    Page::new("/add/note", "Note", "write"),
    Page::new("/add/task", "Task", "to do"),
    Page::new("/add/meeting", "Meeting", "appointment"),
    Page::new("/connections/files", "File", "upload"),
    Page::new("/clients/people#add", "Contact", "person"),
    Page::new("/connections/accounts#connect", "Account", "connect source"),
    Page::new("/connections/webhooks?add", "Webhook", "channel").seen_by(SeenBy::Managers),
    Page::new("/settings/keys#new", "Key", "token").seen_by(SeenBy::Managers),
];

struct Section {
    label: &'static str,
    icon: &'static str,
    pages: &'static [Page],
    /// About running the installation, so it stands below the others.
    is_below: bool,
}

struct Page {
    href: &'static str,
    label: &'static str,
    /// Other words by which somebody looks for it.
    also: &'static str,
    seen_by: SeenBy,
}

#[derive(Clone, Copy)]
enum SeenBy {
    Everyone,
    /// Visitors who are a person, or whose key is a person's.
    People,
    /// Visitors who may manage keys.
    Managers,
    /// The operator of the installation.
    Operators,
}

impl Section {
    fn seen_by(&self, visitor: &Visitor) -> Vec<&'static Page> {
        self.pages.iter().filter(|page| page.seen_by.includes(visitor)).collect()
    }
}

impl Page {
    const fn new(href: &'static str, label: &'static str, also: &'static str) -> Self {
        Self { href, label, also, seen_by: SeenBy::Everyone }
    }

    const fn seen_by(self, seen_by: SeenBy) -> Self {
        Self { seen_by, ..self }
    }
}

impl SeenBy {
    fn includes(self, visitor: &Visitor) -> bool {
        match self {
            Self::Everyone => true,
            Self::People => visitor.person_id.is_some(),
            Self::Managers => visitor.may(domain::Scope::Service),
            Self::Operators => visitor.operates(),
        }
    }
}

pub(super) struct Layout {
    pub title: String,
    /// The path of style, script and icon.
    pub assets: &'static str,
    /// The server's time, by which the script tells ages.
    pub now: String,
    /// The sections, each with its first page.
    pub nav: Vec<Link>,
    /// The pages of this section; empty where there is only one.
    pub tabs: Vec<Link>,
    /// All pages, for going anywhere by name.
    pub places: Vec<Place>,
    /// The things that this visitor can add; empty for those who may not write.
    pub adds: Vec<Place>,
    /// None on pages that need no sign-in.
    pub visitor: Option<Who>,
}

pub(super) struct Who {
    pub tenant: String,
    /// `as` a person, or `with key` and its name.
    pub how: String,
    pub csrf: String,
}

pub(super) struct Link {
    pub href: &'static str,
    pub label: &'static str,
    pub icon: &'static str,
    pub is_current: bool,
    pub is_below: bool,
}

pub(super) struct Place {
    pub href: &'static str,
    /// The section, where it has several pages.
    pub section: &'static str,
    pub label: &'static str,
    pub also: &'static str,
}

impl Place {
    fn new(section: &'static str, page: &Page) -> Self {
        Self { href: page.href, section, label: page.label, also: page.also }
    }
}

impl Layout {
    /// A page of the dashboard. `current` is the address in the list above that it is, or belongs to.
    pub fn new(visitor: &Visitor, now: DateTime<Utc>, title: impl Into<String>, current: &str) -> Self {
        let (mut nav, mut tabs, mut places) = (Vec::new(), Vec::new(), Vec::new());
        for section in NAV {
            let pages = section.seen_by(visitor);
            let Some(first) = pages.first() else { continue };
            let (icon, is_below) = (section.icon, section.is_below);
            let is_current = pages.iter().any(|page| page.href == current);
            nav.push(Link { href: first.href, label: section.label, icon, is_current, is_below });
            let has_several = pages.len() > 1;
            if is_current && has_several {
                let tab = |page: &&Page| Link {
                    href: page.href,
                    label: page.label,
                    icon,
                    is_current: page.href == current,
                    is_below,
                };
                tabs = pages.iter().map(tab).collect();
            }
            let label = if has_several { section.label } else { "" };
            places.extend(pages.iter().map(|page| Place::new(label, page)));
        }
        let may_add = visitor.may(domain::Scope::Write) && !visitor.csrf().is_empty();
        let adds = ADD.iter().filter(|page| may_add && page.seen_by.includes(visitor));
        let adds: Vec<Place> = adds.map(|page| Place::new("Add", page)).collect();
        let by = if visitor.is_signed_in { "as" } else { "with key" };
        let how = format!("{by} {}", shown(&visitor.key_name));
        let who = Who { tenant: shown(&visitor.tenant_name), how, csrf: visitor.csrf() };
        Self { nav, tabs, places, adds, visitor: Some(who), now: exact(now), ..Self::bare(title) }
    }

    /// A page without navigation, for nobody in particular.
    pub fn bare(title: impl Into<String>) -> Self {
        Self {
            title: title.into(),
            assets: assets::base(),
            now: String::new(),
            nav: Vec::new(),
            tabs: Vec::new(),
            places: Vec::new(),
            adds: Vec::new(),
            visitor: None,
        }
    }
}

fn exact(at: DateTime<Utc>) -> String {
    at.to_rfc3339_opts(SecondsFormat::Millis, true)
}

/// The address of every page in the navigation.
#[cfg(test)]
pub(crate) fn addresses() -> impl Iterator<Item = &'static str> {
    NAV.iter().flat_map(|section| section.pages).map(|page| page.href)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn every_page_is_in_one_section_and_every_section_has_a_page_that_all_see() {
        let all: Vec<&str> = addresses().collect();
        assert_eq!(all.iter().collect::<HashSet<_>>().len(), all.len(), "{all:?}");
        for section in NAV {
            assert!(section.pages.iter().any(|page| matches!(page.seen_by, SeenBy::Everyone)), "{}", section.label);
        }
    }

    #[test]
    fn what_runs_the_installation_stands_below() {
        let below = NAV.iter().skip_while(|section| !section.is_below);
        assert_eq!(below.map(|section| section.label).collect::<Vec<_>>(), ["System", "Settings"]);
    }
}
