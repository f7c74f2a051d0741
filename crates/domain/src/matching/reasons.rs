//! The reasons why a record is of a client, as pages show them, and the keys that belong to one client alone.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde::{Deserialize, Serialize};

use super::{Kind, Node, bearers, is_near, is_shared};

/// A reason, with the key that it rests on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "by", content = "key", rename_all = "lowercase")]
pub enum Reason {
    /// A person said so.
    Person,
    /// Its record names another one of the client.
    Record,
    Email(String),
    Domain(String),
    Name(String),
    /// A name with one letter less, more or another.
    Near(String),
    /// The addresses of the people of one of them.
    People,
}

/// The reason of each node that does not lead its client.
pub(super) fn of(nodes: &[Node], leaders: &[usize], merged: &[(usize, usize)]) -> Vec<Option<Reason>> {
    let mut members: HashMap<usize, Vec<usize>> = HashMap::new();
    for (nth, leader) in leaders.iter().enumerate() {
        members.entry(*leader).or_default().push(nth);
    }
    let said: BTreeSet<usize> = merged.iter().flat_map(|(a, b)| [*a, *b]).collect();
    let mut reasons = vec![None; nodes.len()];
    for (leader, members) in members {
        let references: BTreeMap<&str, usize> =
            members.iter().map(|nth| (nodes[*nth].reference.as_str(), *nth)).collect();
        let counts = Counts::new(nodes, &members);
        for nth in members.iter().copied().filter(|nth| *nth != leader) {
            let node = &nodes[nth];
            let names_one = node.of.iter().any(|name| references.contains_key(name.as_str()));
            let is_named = members
                .iter()
                .any(|other| nodes[*other].kind != Kind::Curated && nodes[*other].of.contains(&node.reference));
            reasons[nth] = Some(if names_one && node.kind != Kind::Organisation {
                Reason::Record
            } else if let Some(email) = counts.shared(&counts.emails, &node.emails) {
                Reason::Email(email)
            } else if let Some(domain) = counts.shared(&counts.domains, &node.domains) {
                Reason::Domain(domain)
            } else if let Some(name) = counts.shared(&counts.names, &node.names) {
                Reason::Name(name)
            } else if let Some(name) = counts.near(&node.names) {
                Reason::Near(name)
            } else if said.contains(&nth) || said.contains(&leader) {
                Reason::Person
            } else if is_named {
                Reason::People
            } else {
                Reason::Record
            });
        }
        // A decision is told where it is the only reason, and at the records that it names.
        for nth in said.iter().filter(|nth| **nth != leader && leaders[**nth] == leader) {
            reasons[*nth] = Some(Reason::Person);
        }
    }
    reasons
}

/// The number of records of a client that have a key.
struct Counts<'a> {
    emails: BTreeMap<&'a str, usize>,
    domains: BTreeMap<&'a str, usize>,
    names: BTreeMap<&'a str, usize>,
}

impl<'a> Counts<'a> {
    fn new(nodes: &'a [Node], members: &[usize]) -> Self {
        let count = |keys: fn(&Node) -> &Vec<String>| {
            let found = bearers(nodes, members, keys);
            found.into_iter().map(|(key, bearers)| (key, bearers.len())).collect()
        };
        Self {
            emails: count(|node| &node.emails),
            domains: count(|node| &node.domains),
            names: count(|node| &node.names),
        }
    }

    fn shared(&self, counts: &BTreeMap<&str, usize>, keys: &[String]) -> Option<String> {
        keys.iter().find(|key| counts.get(key.as_str()).is_some_and(|n| *n > 1)).cloned()
    }

    fn near(&self, names: &[String]) -> Option<String> {
        let near =
            |name: &String| self.names.keys().find(|other| is_near(name, other)).map(|other| (*other).to_owned());
        names.iter().find_map(near)
    }
}

/// The keys that belong to one client alone, by its leader: contacts find their client by them. The keys have the form of `tributary.client_keys`.
pub fn owned(nodes: &[Node], leaders: &[usize]) -> HashMap<usize, Vec<String>> {
    let organisations: Vec<usize> = (0..nodes.len()).filter(|nth| nodes[*nth].kind == Kind::Organisation).collect();
    // People of a company that has no record stand for it.
    let people: Vec<usize> = (0..nodes.len()).filter(|nth| nodes[*nth].kind == Kind::Person).collect();
    let of_companies: Vec<usize> = people
        .iter()
        .copied()
        .filter(|nth| nodes[leaders[*nth]].kind == Kind::Person && !nodes[*nth].names.is_empty())
        .chain(organisations.iter().copied())
        .collect();
    let all: Vec<usize> = people.iter().chain(&organisations).copied().collect();
    let mut owned: HashMap<usize, Vec<String>> = HashMap::new();
    let mut add = |kind: &str, found: BTreeMap<&str, Vec<usize>>| {
        for (key, bearers) in found {
            let of: BTreeSet<usize> = bearers.iter().map(|nth| leaders[*nth]).collect();
            let own: Vec<usize> =
                bearers.iter().copied().filter(|nth| nodes[*nth].kind == Kind::Organisation).collect();
            if let (1, Some(leader)) = (of.len(), of.first())
                && !is_shared(nodes, &own)
            {
                owned.entry(*leader).or_default().push(format!("{kind}:{key}"));
            }
        }
    };
    add("email", bearers(nodes, &all, |node| &node.emails));
    add("domain", bearers(nodes, &of_companies, |node| &node.domains));
    add("name", bearers(nodes, &of_companies, |node| &node.names));
    owned.values_mut().for_each(|keys| keys.sort());
    owned
}
