//! Matching: which records are one client. The answer is a function of the set of records and of what people decided; the order in which records
//! arrived has no part in it.
//!
//! 1. Organisations that have an e-mail address or a domain in common are one. An address that one source gives to organisations of different names
//!    (a bookkeeper's, say) is shared, and joins only those whose names are alike.
//! 2. The addresses of the people of an organisation speak for it, too.
//! 3. Organisations of one name are one, unless their own domains say that they are two; also with one letter wrong.
//! 4. A person's decision joins; a record that a person set apart is joined by nothing else.
//! 5. People go to the organisation that their record names, else to that of their address, domain or company. Others are clients of their own.
//!
//! `tributary.client_keys` makes the keys, the only place that does: domains of mail providers such as gmail.com are never among them.

mod groups;
mod reasons;

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde::{Deserialize, Serialize};

use self::groups::Groups;
pub use self::reasons::{Reason, owned};

/// The kind of thing that a record describes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    #[default]
    Organisation,
    Person,
    /// Facts that a person wrote about a client.
    Curated,
}

/// The part of a record by which it is matched, as its provider's rules read it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Identity {
    pub kind: Kind,
    /// Names of the organisation; of a person, of the company.
    pub names: Vec<String>,
    /// The organisation's own domains.
    pub domains: Vec<String>,
    pub emails: Vec<String>,
    /// Records that it belongs to, the first one first: external ids of the same source, for curated facts whole references.
    pub of: Vec<String>,
}

/// A record with its keys.
#[derive(Clone, Debug, Default)]
pub struct Node {
    /// `{source}/{external id}`; of curated facts `hand/{id}`.
    pub reference: String,
    pub source: String,
    pub kind: Kind,
    pub names: Vec<String>,
    /// Domains of its own and of its addresses.
    pub domains: Vec<String>,
    /// Domains of its own.
    pub sites: Vec<String>,
    pub emails: Vec<String>,
    /// References of records that it belongs to.
    pub of: Vec<String>,
    /// Among the records of a client the smallest one leads: the client has its id and its name.
    pub place: (usize, String),
}

impl Node {
    /// Reads the keys that `tributary.client_keys` made.
    pub fn read(&mut self, keys: &[String]) {
        for key in keys {
            let Some((kind, value)) = key.split_once(':') else { continue };
            let list = match kind {
                "name" => &mut self.names,
                "domain" => &mut self.domains,
                "site" => &mut self.sites,
                "email" => &mut self.emails,
                _ => continue,
            };
            list.push(value.to_owned());
        }
    }
}

/// The decisions of people about records.
#[derive(Clone, Debug, Default)]
pub struct Decisions {
    /// Two records are one client.
    pub merged: Vec<(String, String)>,
    /// A record is matched with nothing.
    pub apart: Vec<String>,
}

/// The groups of records that are one client each: for every node the index of the node that leads its client, and why it is there.
pub fn group(nodes: &[Node], decisions: &Decisions) -> Vec<(usize, Option<Reason>)> {
    let at: HashMap<&str, usize> = nodes.iter().enumerate().map(|(nth, node)| (node.reference.as_str(), nth)).collect();
    let apart: BTreeSet<usize> = decisions.apart.iter().filter_map(|name| at.get(name.as_str()).copied()).collect();
    let free = |kind: Kind| -> Vec<usize> {
        (0..nodes.len()).filter(|nth| nodes[*nth].kind == kind && !apart.contains(nth)).collect()
    };
    let (organisations, people) = (free(Kind::Organisation), free(Kind::Person));
    let mut groups = Groups::new(nodes.len());
    by_address(nodes, &organisations, &mut groups);
    by_people(nodes, &at, &organisations, &people, &mut groups);
    by_name(nodes, &organisations, &mut groups, |node| &node.sites);
    by_near_name(nodes, &organisations, &mut groups);
    let merged: Vec<(usize, usize)> =
        decisions.merged.iter().filter_map(|(a, b)| Some((*at.get(a.as_str())?, *at.get(b.as_str())?))).collect();
    for (a, b) in &merged {
        groups.join(*a, *b);
    }
    let said: BTreeSet<usize> = merged.iter().flat_map(|(a, b)| [*a, *b]).collect();
    let homes = Homes::new(nodes, &organisations, &groups);
    let (mut placed, mut left) = (Vec::new(), Vec::new());
    for person in people {
        match homes.of(nodes, &at, person) {
            // A person's decision says where they are; those of their company who have no home follow them.
            Some(_) if said.contains(&person) => {}
            Some(home) => placed.push((person, home)),
            None => left.push(person),
        }
    }
    for (person, home) in placed {
        groups.join(person, home);
    }
    // People whose company has no record: one person is one, and those of one company are, unless their domains say that it is two.
    for bearers in bearers(nodes, &left, |node| &node.emails).values() {
        bearers.windows(2).for_each(|pair| groups.join(pair[0], pair[1]));
    }
    by_name(nodes, &left, &mut groups, |node| &node.domains);
    for nth in free(Kind::Curated) {
        if let Some(home) = nodes[nth].of.iter().find_map(|name| at.get(name.as_str())) {
            groups.join(nth, *home);
        }
    }
    let leaders = leaders(nodes, &groups);
    let reasons = reasons::of(nodes, &leaders, &merged);
    leaders.into_iter().zip(reasons).collect()
}

/// The nodes that have a key, by key.
fn bearers<'a>(
    nodes: &'a [Node],
    among: &[usize],
    keys: impl Fn(&'a Node) -> &'a Vec<String>,
) -> BTreeMap<&'a str, Vec<usize>> {
    let mut found: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for nth in among {
        for key in keys(&nodes[*nth]) {
            found.entry(key).or_default().push(*nth);
        }
    }
    found
}

fn by_address(nodes: &[Node], organisations: &[usize], groups: &mut Groups) {
    let emails = bearers(nodes, organisations, |node| &node.emails);
    let domains = bearers(nodes, organisations, |node| &node.domains);
    for bearers in emails.values().chain(domains.values()) {
        if !is_shared(nodes, bearers) {
            bearers.windows(2).for_each(|pair| groups.join(pair[0], pair[1]));
            continue;
        }
        // The names of so many are compared by `by_name` alone.
        let compared: &[usize] = if bearers.len() > MOST_COMPARED { &[] } else { bearers.as_slice() };
        for (i, a) in compared.iter().enumerate() {
            for b in compared[i + 1..].iter().filter(|b| are_alike(&nodes[*a], &nodes[**b])) {
                groups.join(*a, *b);
            }
        }
    }
}

/// The organisations of one shared address whose names are compared one by one. An address of more, at an internet provider, say, joins nobody.
const MOST_COMPARED: usize = 200;

/// Whether an address says nothing about which organisation it is: one source gives it to organisations of different names.
fn is_shared(nodes: &[Node], bearers: &[usize]) -> bool {
    bearers.iter().enumerate().any(|(i, a)| {
        let differs = |b: &usize| nodes[*a].source == nodes[*b].source && !are_alike(&nodes[*a], &nodes[*b]);
        bearers[i + 1..].iter().any(differs)
    })
}

/// A name of fewer characters begins many others.
const SHORTEST_BEGINNING: usize = 4;

/// Whether two records may be of one name, also with more words behind it. A record without a name is like every other.
fn are_alike(a: &Node, b: &Node) -> bool {
    let begins = |name: &String, other: &String| name.len() >= SHORTEST_BEGINNING && other.starts_with(name.as_str());
    let same = |name: &String| {
        b.names.iter().any(|other| name == other || is_near(name, other) || begins(name, other) || begins(other, name))
    };
    a.names.is_empty() || b.names.is_empty() || a.names.iter().any(same)
}

/// The addresses of its people speak for an organisation, and their domain where it has none.
fn by_people(
    nodes: &[Node],
    at: &HashMap<&str, usize>,
    organisations: &[usize],
    people: &[usize],
    groups: &mut Groups,
) {
    let emails = bearers(nodes, organisations, |node| &node.emails);
    let domains = bearers(nodes, organisations, |node| &node.domains);
    let is_organisation: BTreeSet<usize> = organisations.iter().copied().collect();
    let mut domains_of: BTreeMap<usize, BTreeSet<&str>> = BTreeMap::new();
    let mut edges = Vec::new();
    for person in people {
        // A person of several companies speaks for none of them.
        let homes: Vec<usize> = nodes[*person].of.iter().filter_map(|name| at.get(name.as_str()).copied()).collect();
        let [home] = homes.as_slice() else { continue };
        if !is_organisation.contains(home) {
            continue;
        }
        let known = nodes[*person].emails.iter().filter_map(|email| emails.get(email.as_str()));
        edges.extend(known.filter(|known| !is_shared(nodes, known)).map(|known| (*home, known[0])));
        domains_of.entry(*home).or_default().extend(nodes[*person].domains.iter().map(String::as_str));
    }
    for (home, told) in domains_of {
        let Some(domain) = told.first().filter(|_| told.len() == 1 && nodes[home].domains.is_empty()) else { continue };
        let known = domains.get(domain).filter(|known| !is_shared(nodes, known));
        edges.extend(known.map(|known| (home, known[0])));
    }
    edges.into_iter().for_each(|(a, b)| groups.join(a, b));
}

/// Joins records of one name, in the order of the names. Those with domains of their own are one if these are; the others go with them, unless there
/// are several.
fn by_name<'a>(nodes: &'a [Node], among: &[usize], groups: &mut Groups, of: impl Fn(&'a Node) -> &'a Vec<String>) {
    let mut sites = Sites::new(nodes, among, groups, of);
    for bearers in bearers(nodes, among, |node| &node.names).values().filter(|bearers| bearers.len() > 1) {
        let roots: BTreeSet<usize> = bearers.iter().map(|nth| groups.root(*nth)).collect();
        let (sited, others): (Vec<usize>, Vec<usize>) =
            roots.into_iter().partition(|root| sites.of(groups, *root).is_some());
        let mut known: BTreeMap<&str, usize> = BTreeMap::new();
        for root in &sited {
            for site in sites.of(groups, *root).cloned().unwrap_or_default() {
                // All of them: two sites that are near to a third one need not be near to each other.
                let near = known.iter().filter(|(other, _)| **other == site || is_near(other, site));
                for home in near.map(|(_, home)| *home).collect::<Vec<_>>() {
                    sites.join(groups, *root, home);
                }
                known.insert(site, *root);
            }
        }
        for pair in others.windows(2) {
            sites.join(groups, pair[0], pair[1]);
        }
        let homes: BTreeSet<usize> = sited.iter().map(|root| groups.root(*root)).collect();
        if let (Some(home), Some(other)) = (only(&homes), others.first()) {
            sites.join(groups, *other, home);
        }
    }
}

/// The domains of each group, as it grows.
struct Sites<'a>(HashMap<usize, BTreeSet<&'a str>>);

impl<'a> Sites<'a> {
    fn new(nodes: &'a [Node], among: &[usize], groups: &Groups, of: impl Fn(&'a Node) -> &'a Vec<String>) -> Self {
        let mut sites: HashMap<usize, BTreeSet<&str>> = HashMap::new();
        for nth in among.iter().filter(|nth| !of(&nodes[**nth]).is_empty()) {
            sites.entry(groups.root(*nth)).or_default().extend(of(&nodes[*nth]).iter().map(String::as_str));
        }
        Self(sites)
    }

    fn of(&self, groups: &Groups, nth: usize) -> Option<&BTreeSet<&'a str>> {
        self.0.get(&groups.root(nth))
    }

    fn join(&mut self, groups: &mut Groups, a: usize, b: usize) {
        let (a, b) = (groups.root(a), groups.root(b));
        if a == b {
            return;
        }
        groups.join(a, b);
        let all: BTreeSet<&str> = [a, b].into_iter().filter_map(|root| self.0.remove(&root)).flatten().collect();
        if !all.is_empty() {
            self.0.insert(groups.root(a), all);
        }
    }
}

/// Joins groups whose names differ by one letter, if neither is near to a third one and their domains do not say that they are two.
fn by_near_name(nodes: &[Node], organisations: &[usize], groups: &mut Groups) {
    let names = bearers(nodes, organisations, |node| &node.names);
    let mut shortened: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for name in names.keys() {
        for short in without_a_letter(name).into_iter().chain([(*name).to_owned()]) {
            shortened.entry(short).or_default().push(name);
        }
    }
    let mut near: BTreeMap<usize, BTreeSet<usize>> = BTreeMap::new();
    for alike in shortened.values() {
        for (i, a) in alike.iter().enumerate() {
            for b in alike[i + 1..].iter().filter(|b| is_near(a, b)) {
                // One name may be that of several clients.
                for (a, b) in names[a].iter().flat_map(|a| names[b].iter().map(move |b| (*a, *b))) {
                    let (a, b) = (groups.root(a), groups.root(b));
                    if a != b {
                        near.entry(a).or_default().insert(b);
                        near.entry(b).or_default().insert(a);
                    }
                }
            }
        }
    }
    let sites = Sites::new(nodes, organisations, groups, |node| &node.sites);
    let mut edges = Vec::new();
    for (a, of_a) in &near {
        let Some(b) = only(of_a).filter(|b| a < b && near[b].len() == 1) else { continue };
        let differ = match (sites.of(groups, *a), sites.of(groups, b)) {
            (Some(of_a), Some(of_b)) => !of_a.iter().any(|a| of_b.iter().any(|b| a == b || is_near(a, b))),
            _ => false,
        };
        edges.extend((!differ).then_some((*a, b)));
    }
    edges.into_iter().for_each(|(a, b)| groups.join(a, b));
}

/// The places to which people belong, by what organisations have.
struct Homes<'a> {
    emails: BTreeMap<&'a str, BTreeSet<usize>>,
    domains: BTreeMap<&'a str, BTreeSet<usize>>,
    names: BTreeMap<&'a str, BTreeSet<usize>>,
    roots: Vec<usize>,
}

impl<'a> Homes<'a> {
    fn new(nodes: &'a [Node], organisations: &[usize], groups: &Groups) -> Self {
        let rooted = |found: BTreeMap<&'a str, Vec<usize>>| {
            let roots = |bearers: Vec<usize>| bearers.into_iter().map(|nth| groups.root(nth)).collect();
            found.into_iter().map(|(key, bearers)| (key, roots(bearers))).collect()
        };
        Self {
            emails: rooted(bearers(nodes, organisations, |node| &node.emails)),
            domains: rooted(bearers(nodes, organisations, |node| &node.domains)),
            names: rooted(bearers(nodes, organisations, |node| &node.names)),
            roots: (0..nodes.len()).map(|nth| groups.root(nth)).collect(),
        }
    }

    /// The group of a person, by the first rule that names exactly one.
    fn of(&self, nodes: &[Node], at: &HashMap<&str, usize>, person: usize) -> Option<usize> {
        let person = &nodes[person];
        let named: Vec<usize> =
            person.of.iter().filter_map(|name| at.get(name.as_str())).map(|nth| self.roots[*nth]).collect();
        let of_domain: BTreeSet<usize> = groups_of(&self.domains, &person.domains);
        let at_domain = named.iter().copied().find(|root| of_domain.contains(root));
        at_domain
            .or_else(|| named.first().copied())
            .or_else(|| only(&groups_of(&self.emails, &person.emails)))
            .or_else(|| only(&of_domain))
            .or_else(|| only(&groups_of(&self.names, &person.names)))
    }
}

fn groups_of(known: &BTreeMap<&str, BTreeSet<usize>>, keys: &[String]) -> BTreeSet<usize> {
    keys.iter().filter_map(|key| known.get(key.as_str())).flatten().copied().collect()
}

fn only(groups: &BTreeSet<usize>) -> Option<usize> {
    groups.first().copied().filter(|_| groups.len() == 1)
}

/// The leading node of each node's group: an organisation before people, then by its place, then by its reference.
fn leaders(nodes: &[Node], groups: &Groups) -> Vec<usize> {
    let mut of_root: HashMap<usize, usize> = HashMap::new();
    let order = |nth: usize| (nodes[nth].kind, &nodes[nth].place, &nodes[nth].reference);
    for nth in 0..nodes.len() {
        let leader = of_root.entry(groups.root(nth)).or_insert(nth);
        if order(nth) < order(*leader) {
            *leader = nth;
        }
    }
    (0..nodes.len()).map(|nth| of_root[&groups.root(nth)]).collect()
}

/// Names and domains of fewer characters are never compared loosely.
const SHORTEST_NEAR: usize = 8;
const LONGEST_NEAR: usize = 60;

/// Whether two texts differ by one letter: added, left out, replaced, or swapped with its neighbour. Digits must be the same.
pub fn is_near(a: &str, b: &str) -> bool {
    let digits = |text: &str| -> String { text.chars().filter(char::is_ascii_digit).collect() };
    let (x, y): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let fits = |text: &[char]| (SHORTEST_NEAR..=LONGEST_NEAR).contains(&text.len());
    if a == b || !fits(&x) || !fits(&y) || digits(a) != digits(b) {
        return false;
    }
    let begin = x.iter().zip(&y).take_while(|(a, b)| a == b).count();
    let rest = x.len().min(y.len()) - begin;
    let end = x.iter().rev().zip(y.iter().rev()).take(rest).take_while(|(a, b)| a == b).count();
    let (x, y) = (&x[begin..x.len() - end], &y[begin..y.len() - end]);
    match (x, y) {
        ([], [_]) | ([_], []) | ([_], [_]) => true,
        ([a, b], [c, d]) => a == d && b == c,
        _ => false,
    }
}

/// Two names that are near have one of these in common, or one is among those of the other.
fn without_a_letter(name: &str) -> Vec<String> {
    let letters: Vec<char> = name.chars().collect();
    if !(SHORTEST_NEAR..=LONGEST_NEAR).contains(&letters.len()) {
        return Vec::new();
    }
    let without = |nth: usize| letters.iter().enumerate().filter(|(i, _)| *i != nth).map(|(_, c)| *c).collect();
    let mut all: Vec<String> = (0..letters.len()).map(without).collect();
    all.sort();
    all.dedup();
    all
}

#[cfg(test)]
mod tests;
