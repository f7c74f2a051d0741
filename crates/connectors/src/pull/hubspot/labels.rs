//! The words for HubSpot's codes: its types of record, facts, industries and stages.

use crate::pull::spec::{Labels, capitals_in_words};

pub(super) const LABELS: Labels = Labels {
    types: &[
        ("hubspot.contact", "HubSpot contact"),
        ("hubspot.company", "HubSpot company"),
        ("hubspot.deal", "HubSpot deal"),
    ],
    facts: &[
        ("contact_role", "Role"),
        ("lifecycle", "Lifecycle stage"),
        ("revenue", "Annual revenue"),
        ("deal_stage", "Stage of the latest deal"),
        ("deal_amount", "Amount of the latest deal"),
    ],
    value,
};

/// The names of HubSpot's own stages and industries, as its pages spell them. Those that an account defines itself are numbers there.
pub(super) fn value(field: &str, code: &str) -> Option<String> {
    let known: &[(&str, &str)] = match field {
        "industry" => return capitals_in_words(code),
        "lifecycle" => &[
            ("subscriber", "Subscriber"),
            ("lead", "Lead"),
            ("marketingqualifiedlead", "Marketing qualified lead"),
            ("salesqualifiedlead", "Sales qualified lead"),
            ("opportunity", "Opportunity"),
            ("customer", "Customer"),
            ("evangelist", "Evangelist"),
            ("other", "Other"),
        ],
        "deal_stage" => &[
            ("appointmentscheduled", "Appointment scheduled"),
            ("qualifiedtobuy", "Qualified to buy"),
            ("presentationscheduled", "Presentation scheduled"),
            ("decisionmakerboughtin", "Decision maker bought in"),
            ("contractsent", "Contract sent"),
            ("closedwon", "Closed won"),
            ("closedlost", "Closed lost"),
        ],
        "pipeline" => &[("default", "Sales pipeline")],
        _ => return None,
    };
    known.iter().find(|(known, _)| *known == code).map(|(_, words)| (*words).to_owned())
}
