//! The gallery of everything that can be connected, and of what cannot yet, on shelves. All of it comes from the providers' descriptions.

use engine::intake::ChannelSpec;
use engine::mail::channel::CODE;
use engine::pull::Provider;
use engine::pull::guide::absent::{self, Absent, Way};
use engine::pull::guide::{Group, Mark};

use super::text::with_code;
use super::{channels, sources};
use crate::app::App;

/// One shelf.
pub(super) struct Shelf {
    pub label: &'static str,
    pub tiles: Vec<Tile>,
}

impl Shelf {
    pub fn n_shown(&self) -> usize {
        self.tiles.iter().filter(|tile| !tile.is_hidden).count()
    }

    pub fn is_hidden(&self) -> bool {
        self.n_shown() == 0
    }
}

/// Something that can be connected, or cannot yet.
pub(super) struct Tile {
    pub label: &'static str,
    pub mark: Mark,
    /// The content that it brings; of something that is absent, what to do instead, with what is typed set apart.
    pub text: Vec<(bool, String)>,
    /// The page that sets it up. None: it is not there yet.
    pub href: Option<String>,
    /// `Account`, `Webhook`, or `Events` for letters of an account.
    pub kind: &'static str,
    /// Links to what is there instead.
    pub instead: Vec<(String, &'static str)>,
    /// All words by which it is found, in lower case.
    pub words: String,
    pub is_hidden: bool,
}

/// The page that connects an account.
pub(super) fn of_provider(provider: Provider) -> String {
    format!("{}/new/{provider}", sources::HERE)
}

/// The page that adds a channel.
pub(super) fn of_channel(spec: &ChannelSpec) -> String {
    of_channel_code(spec.code)
}

fn of_channel_code(code: &str) -> String {
    format!("{}/new/{code}", channels::HERE)
}

/// All shelves. `has_gmail`: there is a mailbox whose letters can be events. What does not fit all words of the question is there and hidden, so that the page's script can show it.
pub(super) fn shelves(app: &App, asked: &str, has_gmail: bool) -> Vec<Shelf> {
    let asked = asked.to_lowercase();
    let mut shelves: Vec<Shelf> =
        Group::ALL.iter().map(|group| Shelf { label: group.label(), tiles: Vec::new() }).collect();
    for (group, mut tile) in tiles(app, has_gmail) {
        tile.is_hidden = !asked.split_whitespace().all(|word| tile.words.contains(word));
        if let Some(shelf) = shelves.iter_mut().find(|shelf| shelf.label == group.label()) {
            shelf.tiles.push(tile);
        }
    }
    shelves.retain(|shelf| !shelf.tiles.is_empty());
    shelves
}

/// Everything, what is there before what is not.
fn tiles(app: &App, has_gmail: bool) -> Vec<(Group, Tile)> {
    let mut tiles = Vec::new();
    for provider in app.env.providers.all().iter().copied() {
        let guide = &provider.guide;
        tiles.push((
            guide.group,
            tile(
                provider.label,
                guide.mark,
                provider.brings,
                "Account",
                of_provider(provider),
                guide.group,
                guide.also,
            ),
        ));
    }
    if has_gmail && let Ok(provider) = app.env.providers.named(CODE) {
        let (guide, href) = (&provider.guide, of_channel_code(CODE));
        let brings = "New messages of a connected mailbox, as events for agents";
        let label = "Letters of a Gmail mailbox";
        tiles.push((guide.group, tile(label, guide.mark, brings, "Events", href, guide.group, "mail email letters")));
    }
    for spec in app.env.channel_providers.all().iter().copied() {
        let guide = &spec.guide;
        let href = of_channel(spec);
        for sender in guide.senders {
            let href = format!("{href}?sender={}", sender.code);
            tiles.push((
                sender.group,
                tile(sender.label, sender.mark, sender.sends, "Webhook", href, sender.group, sender.also),
            ));
        }
        let sends = domain::shown::capitalised(spec.choice.1);
        tiles.push((guide.group, tile(spec.label, guide.mark, &sends, "Webhook", href, guide.group, guide.also)));
    }
    tiles.extend(absent::ALL.iter().map(|absent| (absent.group, missing(app, absent))));
    tiles
}

fn tile(
    label: &'static str,
    mark: Mark,
    brings: &str,
    kind: &'static str,
    href: String,
    group: Group,
    also: &str,
) -> Tile {
    let words = format!("{label} {brings} {kind} {} {also}", group.label()).to_lowercase();
    let text = vec![(false, format!("{brings}."))];
    Tile { label, mark, text, href: Some(href), kind, instead: Vec::new(), words, is_hidden: false }
}

fn missing(app: &App, absent: &'static Absent) -> Tile {
    let way = |way: &Way| match way {
        Way::Webhook(code) => {
            let spec = app.env.channel_providers.find(code).ok()?;
            Some((of_channel(spec), spec.label))
        }
        Way::Account(name) => {
            let provider = app.env.providers.named(name).ok()?;
            Some((of_provider(provider), provider.label))
        }
        Way::Files => Some(("/connections/files".to_owned(), "Files")),
    };
    Tile {
        label: absent.label,
        mark: absent.mark,
        text: with_code(absent.todo),
        href: None,
        kind: "Not yet",
        instead: absent.instead.iter().filter_map(way).collect(),
        words: format!("{} {} {}", absent.label, absent.group.label(), absent.also).to_lowercase(),
        is_hidden: false,
    }
}
