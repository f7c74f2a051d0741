use rand::SeedableRng as _;
use rand::seq::SliceRandom as _;

use super::*;

fn node(source: &str, id: &str, keys: &[&str]) -> Node {
    let mut node = Node { reference: format!("{source}/{id}"), source: source.into(), ..Node::default() };
    node.place = (if source == "crm" { 0 } else { 1 }, id.to_owned());
    node.read(&keys.iter().map(|key| (*key).to_owned()).collect::<Vec<_>>());
    node
}

fn person(source: &str, id: &str, of: &[&str], keys: &[&str]) -> Node {
    let of = of.iter().map(|of| format!("{source}/{of}")).collect();
    Node { kind: Kind::Person, of, ..node(source, id, keys) }
}

/// The groups, each sorted and named by its members; the same in every order of the nodes.
fn grouped(nodes: &[Node], decisions: &Decisions) -> Vec<Vec<String>> {
    let read = |nodes: &[Node]| {
        let mut by_leader: BTreeMap<String, Vec<String>> = BTreeMap::new();
        let found = group(nodes, decisions);
        for (nth, (leader, reason)) in found.iter().enumerate() {
            assert_eq!(reason.is_some(), nth != *leader, "who leads needs no reason, all others do");
            let told = format!("{} {:?}", nodes[nth].reference, reason);
            by_leader.entry(nodes[*leader].reference.clone()).or_default().push(told);
        }
        by_leader.values_mut().for_each(|members| members.sort());
        by_leader
    };
    let first = read(nodes);
    let mut rng = rand::rngs::StdRng::seed_from_u64(7);
    for _ in 0..20 {
        let mut shuffled = nodes.to_vec();
        shuffled.shuffle(&mut rng);
        assert_eq!(read(&shuffled), first, "another order, another answer");
    }
    let short = |told: &String| told.split(' ').next().unwrap_or_default().to_owned();
    first.values().map(|members| members.iter().map(short).collect()).collect()
}

fn plain(nodes: &[Node]) -> Vec<Vec<String>> {
    grouped(nodes, &Decisions::default())
}

#[test]
fn one_company_in_two_systems_is_one_by_any_key_that_is_its_own() {
    let crm = |keys: &[&str]| node("crm", "company:1", keys);
    let books = |keys: &[&str]| node("books", "customer:1", keys);
    for (a, b, is_one) in [
        (
            vec!["name:acme", "site:acme.test", "domain:acme.test"],
            vec!["name:acmeholding", "domain:acme.test", "email:ap@acme.test"],
            true,
        ),
        (vec!["name:acme"], vec!["name:acme"], true),
        (vec!["name:larkfieldgardens"], vec!["name:larkfeildgardens"], true),
        (vec!["name:larkfieldgardens"], vec!["name:larkfieldgarden"], true),
        (vec!["name:depot12storage"], vec!["name:depot13storage"], false),
        (vec!["name:acme"], vec!["name:acne"], false), // too short to be a slip
        (vec!["name:acme", "email:a@gmail.com"], vec!["name:bolt", "email:b@gmail.com"], false),
        (vec!["name:acme", "email:a@gmail.com"], vec!["name:bolt", "email:a@gmail.com"], true),
        (vec!["name:acme", "site:acme.test"], vec!["name:acme", "domain:other.test"], true),
        (vec!["name:acme", "site:acme-one.test"], vec!["name:acme", "site:other.test"], false),
        (vec!["name:acme", "site:larkfield.test"], vec!["name:acme", "site:larkfeild.test"], true),
    ] {
        let expected = if is_one { 1 } else { 2 };
        assert_eq!(plain(&[crm(&a), books(&b)]).len(), expected, "{a:?} {b:?}");
    }
}

#[test]
fn an_address_that_one_source_gives_to_several_joins_only_those_of_one_name() {
    let shared = "domain:books.test";
    let all = [
        node("books", "customer:1", &["name:bakery", shared]),
        node("books", "customer:2", &["name:masonry", shared]),
        node("crm", "company:1", &["name:bakery", "site:bakery.test", "domain:bakery.test"]),
        node("crm", "company:2", &["name:accountants", "site:books.test", shared]),
    ];
    assert_eq!(
        plain(&all),
        [vec!["books/customer:2"], vec!["books/customer:1", "crm/company:1"], vec!["crm/company:2"]]
    );
    // With one customer alone the address is that customer's.
    assert_eq!(plain(&[all[1].clone(), all[3].clone()]).len(), 1);
}

#[test]
fn people_go_where_their_record_their_address_or_their_company_says() {
    let acme = node("crm", "company:1", &["name:acme", "site:acme.test", "domain:acme.test"]);
    let bolt = node("crm", "company:2", &["name:bolt", "site:bolt.test", "domain:bolt.test"]);
    for (who, home) in [
        (person("crm", "contact:1", &["company:2"], &["domain:acme.test"]), Some("crm/company:2")),
        (person("crm", "contact:1", &["company:1", "company:2"], &["domain:bolt.test"]), Some("crm/company:2")),
        (person("crm", "contact:1", &["company:1", "company:2"], &[]), Some("crm/company:1")),
        (person("crm", "contact:1", &["company:9"], &["domain:acme.test"]), Some("crm/company:1")),
        (person("crm", "contact:1", &[], &["email:a@gmail.com", "name:bolt"]), Some("crm/company:2")),
        (person("crm", "contact:1", &[], &["email:a@gmail.com"]), None),
    ] {
        let told = format!("{who:?}");
        let all = [acme.clone(), bolt.clone(), who];
        let groups = plain(&all);
        let found = groups.iter().find(|group| group.iter().any(|name| name == "crm/contact:1")).expect("a group");
        assert_eq!(found.iter().find(|name| name.contains("company")).map(String::as_str), home, "{told}");
        assert_eq!(groups.len(), if home.is_some() { 2 } else { 3 }, "two companies became one: {groups:?}");
    }
}

#[test]
fn people_without_a_record_of_their_company_are_one_client_by_its_name() {
    let all = [
        person("crm", "contact:1", &[], &["name:acme", "domain:acme.test"]),
        person("crm", "contact:2", &[], &["name:acme", "email:a@gmail.com"]),
        person("crm", "contact:3", &[], &["domain:isp.test"]),
        person("crm", "contact:4", &[], &["domain:isp.test"]),
        person("two", "contact:1", &[], &["email:z@isp.test", "domain:isp.test"]),
        person("crm", "contact:5", &[], &["email:z@isp.test", "domain:isp.test"]),
    ];
    assert_eq!(
        plain(&all),
        [
            vec!["crm/contact:1", "crm/contact:2"],
            vec!["crm/contact:3"],
            vec!["crm/contact:4"],
            vec!["crm/contact:5", "two/contact:1"]
        ]
    );
}

#[test]
fn the_addresses_of_its_people_speak_for_a_company() {
    let all = [
        node("crm", "company:1", &["name:acme"]),
        person("crm", "contact:1", &["company:1"], &["email:bo@acme.test", "domain:acme.test"]),
        node("books", "customer:1", &["name:amalgamated", "email:ap@acme.test", "domain:acme.test"]),
    ];
    assert_eq!(plain(&all).len(), 1);
    // Two domains say nothing.
    let other = person("crm", "contact:2", &["company:1"], &["domain:bolt.test"]);
    assert_eq!(plain(&[all.to_vec(), vec![other]].concat()).len(), 2);
}

#[test]
fn a_persons_decision_is_honoured_and_leaves_nothing_behind() {
    let all = [
        node("crm", "company:1", &["name:acme", "domain:acme.test"]),
        node("books", "customer:1", &["name:acme", "domain:acme.test"]),
        node("books", "customer:2", &["name:bolt"]),
        person("crm", "contact:1", &["company:1"], &[]),
    ];
    let before = plain(&all);
    let merged = Decisions { merged: vec![("crm/company:1".into(), "books/customer:2".into())], apart: vec![] };
    assert_eq!(grouped(&all, &merged).len(), 1);
    let apart = Decisions { merged: vec![], apart: vec!["books/customer:1".into()] };
    assert_eq!(
        grouped(&all, &apart),
        [vec!["books/customer:1"], vec!["books/customer:2"], vec!["crm/company:1", "crm/contact:1"]]
    );
    let apart = Decisions { merged: vec![], apart: vec!["crm/contact:1".into()] };
    assert_eq!(grouped(&all, &apart).len(), 3);
    assert_eq!(plain(&all), before);
}

#[test]
fn people_of_a_company_without_a_record_follow_the_one_who_was_merged() {
    let all = [
        person("crm", "contact:1", &[], &["name:acme"]),
        person("crm", "contact:2", &[], &["name:acme"]),
        node("books", "customer:1", &["name:bolt"]),
        node("crm", "company:1", &["name:cole"]),
        person("crm", "contact:3", &["company:1"], &[]),
    ];
    let merged = |a: &str| Decisions { merged: vec![(a.into(), "books/customer:1".into())], apart: vec![] };
    let with_both = ["books/customer:1", "crm/contact:1", "crm/contact:2"];
    assert_eq!(grouped(&all, &merged("crm/contact:1"))[0], with_both);
    // One who was taken out of a company takes nobody along.
    let groups = grouped(&all, &merged("crm/contact:3"));
    assert!(groups.contains(&vec!["books/customer:1".into(), "crm/contact:3".into()]), "{groups:?}");
    assert!(groups.contains(&vec!["crm/company:1".into()]), "{groups:?}");
}

#[test]
fn domains_that_are_near_to_a_third_one_are_one_in_any_order() {
    let site = |id: &str, site: &str| node("crm", id, &["name:acme", &format!("site:{site}")]);
    let all = [site("1", "larkfields.test"), site("2", "larkfield.test"), site("3", "larkfeld.test")];
    assert!(!is_near("larkfields.test", "larkfeld.test"));
    assert_eq!(plain(&all).len(), 1);
}

#[test]
fn an_address_of_hundreds_joins_nobody_and_is_passed_over_quickly() {
    let nth = |n: usize| node("books", &format!("customer:{n}"), &[&format!("name:f{n}"), "domain:isp.test"]);
    let all: Vec<Node> = (0..5_000).map(nth).collect();
    let found = group(&all, &Decisions::default());
    assert!(found.iter().enumerate().all(|(nth, (leader, _))| nth == *leader));
}

#[test]
fn keys_belong_to_one_client_or_to_none() {
    let all = [
        node("crm", "company:1", &["name:acme", "domain:acme.test"]),
        node("books", "customer:1", &["name:baker", "domain:books.test"]),
        node("books", "customer:2", &["name:mason", "domain:books.test"]),
        person("crm", "contact:1", &["company:1"], &["email:bo@isp.test", "domain:isp.test"]),
    ];
    let found = group(&all, &Decisions::default());
    let leaders: Vec<usize> = found.iter().map(|(leader, _)| *leader).collect();
    let owned = owned(&all, &leaders);
    assert_eq!(owned[&0], ["domain:acme.test", "email:bo@isp.test", "name:acme"]);
    assert_eq!(owned[&1], ["name:baker"]);
}

#[test]
fn one_letter_is_a_slip_and_two_are_another_name() {
    for (a, b, expected) in [
        ("larkfield", "larkfeild", true),
        ("larkfield", "larkfields", true),
        ("larkfield", "larkfiald", true),
        ("larkfield", "larkfield", false),
        ("larkfield", "larchfeld", false),
        ("larkfield", "larkfi", false),
        ("unit42works", "unit43works", false),
        ("short", "shorts", false),
    ] {
        assert_eq!((is_near(a, b), is_near(b, a)), (expected, expected), "{a} {b}");
    }
}
