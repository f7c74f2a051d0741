//! Facts that HubSpot's contacts, companies and deals tell of clients.

use serde_json::{Map, Value};

use crate::pull::clients::{ClientFacts, Facts, Told, in_order, moment};
use crate::pull::record::{put, said};

pub(super) fn contact(own: Told<'_>, related: &[Told<'_>]) -> Option<ClientFacts> {
    let property = |name: &str| property(&own, name);
    let ids = own.payload.pointer("/associations/companies").and_then(Value::as_array);
    let ids: Vec<String> =
        ids.into_iter().flatten().filter_map(|id| Some(format!("company:{}", id.as_str()?))).collect();
    // In the contact's own order, which is always the same.
    let companies = ids.iter().filter_map(|id| related.iter().find(|told| told.external_id == id));
    let of_company =
        |name: &str| companies.clone().find_map(|company| Some((self::property(company, name)?, company.external_id)));
    let full_name = [property("firstname"), property("lastname")].into_iter().flatten().collect::<Vec<_>>().join(" ");
    let client_name = property("company")
        .or_else(|| of_company("name").map(|(name, _)| name))
        .or_else(|| Some(full_name).filter(|name| !name.is_empty()))
        .or_else(|| property("email"))?;

    let mut facts = Facts::new(client_name);
    facts.person(property("company"), ids.clone());
    facts.email(property("email"));
    if let Some((industry, from)) = of_company("industry") {
        facts.industry(industry, from);
    }
    facts.key("contact_role", property("jobtitle"), &[own.external_id]);
    facts.key("lifecycle", property("lifecyclestage"), &[own.external_id]);
    Some(facts.0)
}

pub(super) fn company(own: Told<'_>, related: &[Told<'_>]) -> Option<ClientFacts> {
    let property = |name: &str| property(&own, name);
    let mut facts = Facts::new(property("name").or_else(|| property("domain"))?);
    facts.domain(property("domain"));
    if let Some(industry) = property("industry") {
        facts.industry(industry, own.external_id);
    }
    facts.summary(property("description"), own.external_id);
    facts.key("employees", property("numberofemployees"), &[own.external_id]);
    facts.key("revenue", property("annualrevenue"), &[own.external_id]);
    facts.key("domain", property("domain"), &[own.external_id]);

    let is_open = |told: &&Told<'_>| told.document_type == "hubspot.deal" && !is_closed(told);
    let mut open: Vec<&Told<'_>> = related.iter().filter(is_open).collect();
    open.sort_by_key(|deal| {
        let closes = self::property(deal, "closedate").and_then(|text| moment(&text));
        (closes.is_none(), closes, in_order(deal.external_id))
    });
    let ids: Vec<&str> = open.iter().map(|deal| deal.external_id).collect();
    let deals: Vec<Value> = open.iter().map(|deal| open_deal(deal)).collect();
    facts.key("open_deals", Some(deals).filter(|deals| !deals.is_empty()), &ids);
    if let Some(latest) = open.iter().max_by_key(|deal| (deal.source_updated_at, in_order(deal.external_id))) {
        facts.key("deal_stage", self::property(latest, "dealstage"), &[latest.external_id]);
        facts.key("deal_amount", self::property(latest, "amount"), &[latest.external_id]);
    }
    Some(facts.0)
}

/// Only the stages of HubSpot's own pipeline have names that say so.
fn is_closed(deal: &Told<'_>) -> bool {
    match property(deal, "hs_is_closed").as_deref() {
        Some("true") => true,
        Some("false") => false,
        _ => property(deal, "dealstage").is_some_and(|stage| stage.to_lowercase().starts_with("closed")),
    }
}

fn open_deal(deal: &Told<'_>) -> Value {
    let mut fields = Map::new();
    put(&mut fields, "id", said(deal.payload, "/id"));
    put(&mut fields, "name", property(deal, "dealname"));
    put(&mut fields, "amount", property(deal, "amount"));
    put(&mut fields, "stage", property(deal, "dealstage"));
    put(&mut fields, "close_date", property(deal, "closedate"));
    put(&mut fields, "pipeline", property(deal, "pipeline"));
    Value::Object(fields)
}

fn property(told: &Told<'_>, name: &str) -> Option<String> {
    said(told.payload, &format!("/properties/{name}"))
}

#[cfg(test)]
mod tests {
    use domain::matching::{Identity, Kind};
    use serde_json::json;

    use super::super::map;
    use super::*;
    use crate::pull::RawItem;
    use crate::pull::clients::tests::{evidence, facts};

    fn hub(object: &str, id: u32, properties: Value, companies: &[&str]) -> RawItem {
        let record =
            json!({ "id": id.to_string(), "properties": properties, "associations": { "companies": companies } });
        map::raw(object, record).expect("a record")
    }

    fn deal(id: u32, amount: &str, stage: &str, closes: Option<&str>, changed: &str) -> RawItem {
        let properties = json!({ "dealname": format!("Deal {id}"), "amount": amount, "dealstage": stage,
            "closedate": closes, "pipeline": "default", "hs_lastmodifieddate": changed });
        hub("deal", id, properties, &["9"])
    }

    #[test]
    fn a_contact_is_called_by_its_company_else_by_itself() {
        let acme = hub("company", 9, json!({ "name": "Acme Ltd", "industry": "RETAIL" }), &[]);
        let bare = hub("company", 4, json!({ "domain": "bare.example" }), &[]);
        let named = json!({ "firstname": "Ana", "lastname": "Diaz", "email": "a@x.example" });
        for (properties, companies, related, name, industry) in [
            (json!({ "company": "Acme" }), &["9"][..], vec![acme.clone()], Some("Acme"), Some("RETAIL")),
            (named.clone(), &["9"], vec![acme.clone()], Some("Acme Ltd"), Some("RETAIL")),
            (named.clone(), &["4", "9"], vec![acme.clone(), bare.clone()], Some("Acme Ltd"), Some("RETAIL")),
            (named.clone(), &["4"], vec![bare], Some("Ana Diaz"), None),
            (named, &["9"], vec![], Some("Ana Diaz"), None),
            (json!({ "email": "a@x.example" }), &[], vec![], Some("a@x.example"), None),
            (json!({ "lastname": "Diaz" }), &[], vec![acme], Some("Diaz"), None),
            (json!({}), &[], vec![], None, None),
        ] {
            let own = hub("contact", 51, properties, companies);
            let facts = facts(&own, &related);
            assert_eq!(facts.as_ref().map(|facts| facts.client_name.as_str()), name);
            assert_eq!(facts.and_then(|facts| facts.industry).as_deref(), industry, "of {name:?}");
        }
        let own = hub("contact", 51, json!({ "company": "Acme", "jobtitle": "CTO", "lifecyclestage": "lead" }), &["9"]);
        let acme = hub("company", 9, json!({ "industry": "RETAIL" }), &[]);
        let facts = facts(&own, &[acme]).expect("facts");
        assert_eq!(Value::Object(facts.key_facts.clone()), json!({ "contact_role": "CTO", "lifecycle": "lead" }));
        assert_eq!(evidence(&facts, "industry"), ["company:9"]);
        assert_eq!(evidence(&facts, "contact_role"), ["contact:51"]);
        let expected = Identity {
            kind: Kind::Person,
            names: vec!["Acme".into()],
            of: vec!["company:9".into()],
            ..Identity::default()
        };
        assert_eq!(facts.identity, expected);
    }

    #[test]
    fn a_company_has_its_open_deals_by_close_date() {
        let own = hub(
            "company",
            9,
            json!({ "name": "Acme", "domain": "acme.example", "industry": "RETAIL", "numberofemployees": "250",
                "annualrevenue": "1000000", "description": "Anvils." }),
            &[],
        );
        let related = [
            deal(7, "100", "closedwon", Some("2026-01-01T00:00:00Z"), "2026-11-09T00:00:00Z"),
            deal(8, "200", "closedlost", Some("2026-01-01T00:00:00Z"), "2026-11-09T00:00:00Z"),
            deal(6, "250", "Closed after trial", None, "2026-11-09T00:00:00Z"),
            deal(10, "300", "new", Some("2026-12-01T00:00:00Z"), "2026-11-01T00:00:00Z"),
            deal(9, "400", "new", Some("2026-12-01T00:00:00Z"), "2026-11-03T00:00:00Z"),
            deal(11, "500.50", "qualified", None, "2026-11-03T00:00:00Z"),
            deal(12, "600", "new", Some("2026-11-20"), "2026-11-02T00:00:00Z"),
            hub("contact", 51, json!({ "email": "a@acme.example" }), &["9"]),
        ];
        let facts = facts(&own, &related).expect("facts");
        assert_eq!((facts.client_name.as_str(), facts.industry.as_deref()), ("Acme", Some("RETAIL")));
        assert_eq!(facts.summary.as_deref(), Some("Anvils."));
        let key = |name: &str| facts.key_facts.get(name).cloned().unwrap_or_default();
        assert_eq!(
            (key("employees"), key("revenue"), key("domain")),
            (json!("250"), json!("1000000"), json!("acme.example"))
        );
        let ids: Vec<Value> =
            key("open_deals").as_array().expect("deals").iter().map(|deal| deal["id"].clone()).collect();
        assert_eq!(ids, ["12", "9", "10", "11"]);
        assert_eq!(
            key("open_deals")[1],
            json!({ "id": "9", "name": "Deal 9", "amount": "400", "stage": "new", "close_date": "2026-12-01T00:00:00Z",
                "pipeline": "default" })
        );
        // Changed at the same moment: the later id.
        assert_eq!((key("deal_stage"), key("deal_amount")), (json!("qualified"), json!("500.50")));
        assert_eq!(evidence(&facts, "open_deals"), ["deal:12", "deal:9", "deal:10", "deal:11"]);
        assert_eq!(evidence(&facts, "deal_stage"), ["deal:11"]);
        assert_eq!(evidence(&facts, "summary"), ["company:9"]);
        assert_eq!(facts.identity.domains, ["acme.example"]);
    }

    #[test]
    fn a_deal_of_any_pipeline_is_closed_when_hubspot_says_so() {
        let own = hub("company", 9, json!({ "name": "Acme" }), &[]);
        for (stage, said, is_open) in [
            ("189340026", Some("true"), false),
            ("189340021", Some("false"), true),
            ("closed for the winter", Some("false"), true),
            ("closedwon", None, false),
            ("closedwon", Some(""), false),
            ("contractsent", None, true),
        ] {
            let deal = hub("deal", 7, json!({ "dealstage": stage, "hs_is_closed": said }), &["9"]);
            let facts = facts(&own, &[deal]).expect("facts");
            assert_eq!(facts.key_facts.contains_key("open_deals"), is_open, "{stage} {said:?}");
        }
    }

    #[test]
    fn what_is_not_known_is_left_out() {
        let own = hub("company", 9, json!({ "domain": "acme.example" }), &[]);
        let facts = facts(&own, &[deal(7, "1", "closedwon", None, "2026-11-01T00:00:00Z")]).expect("facts");
        assert_eq!(facts.client_name, "acme.example");
        assert_eq!(Value::Object(facts.key_facts), json!({ "domain": "acme.example" }));
        assert_eq!((facts.industry, facts.summary, facts.evidence.len()), (None, None, 1));
        assert_eq!(self::facts(&hub("company", 1, json!({}), &[]), &[]), None);
    }
}
