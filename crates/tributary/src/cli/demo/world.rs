//! The data of the providers: the recorded world of a small equipment business, and enough contacts around it that a sync takes a moment.

use fakes::Fakes;
use serde_json::json;

const GIVEN: [&str; 24] = [
    "Ada", "Bram", "Celia", "Dov", "Edda", "Faisal", "Greta", "Hollis", "Ines", "Jonah", "Keiko", "Lorne", "Mirela",
    "Nils", "Oona", "Pavel", "Quinn", "Rosa", "Silas", "Tamsin", "Umar", "Vera", "Wyatt", "Yara",
];
const FAMILY: [&str; 25] = [
    "Ashdown",
    "Bellweather",
    "Castellan",
    "Dunmore",
    "Eastlake",
    "Farrow",
    "Grantham",
    "Hightower",
    "Inskeep",
    "Jarvis",
    "Kettering",
    "Lindqvist",
    "Marlowe",
    "Northcott",
    "Okafor",
    "Pemberton",
    "Quillfeather",
    "Rasmussen",
    "Sandoval",
    "Thackeray",
    "Underhill",
    "Vasquez",
    "Whitcombe",
    "Yarrow",
    "Zielinski",
];
const COMPANIES: [&str; 12] = [
    "Alder Creek Builders",
    "Birchmont Roofing",
    "Cedar & Sons Masonry",
    "Dry Fork Paving",
    "Elm Street Electric",
    "Foxglove Gardens",
    "Granite Hill Quarry",
    "Hawthorn Property Care",
    "Ironbridge Welding",
    "Juniper Ridge Resort",
    "Kestrel Events",
    "Lower Falls Township",
];
const JOBS: [&str; 4] = ["Owner", "Site manager", "Bookkeeper", "Buyer"];
const STAGES: [&str; 3] = ["lead", "opportunity", "customer"];

pub fn fill(fakes: &Fakes) {
    fakes.load_fixtures();
    let names = GIVEN.iter().flat_map(|given| FAMILY.iter().map(move |family| (given, family)));
    for (nth, (given, family)) in names.enumerate() {
        let company = COMPANIES[nth % COMPANIES.len()];
        let host: String = company.to_lowercase().chars().filter(char::is_ascii_lowercase).collect();
        fakes.hubspot().put(
            "contacts",
            json!({
                "firstname": given,
                "lastname": family,
                "email": format!("{}.{}@{host}.example", given.to_lowercase(), family.to_lowercase()),
                "company": company,
                "jobtitle": JOBS[nth % JOBS.len()],
                "lifecyclestage": STAGES[nth % STAGES.len()],
            }),
        );
    }
}
