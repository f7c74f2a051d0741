//! The recorded files, and the text of each.

use crate::Fakes;
use crate::fixtures::records;

const FILES: &str = include_str!("../../../../fixtures/google_drive/files.json");
const SAMPLE: &str = include_str!("../../../../fixtures/google_drive/gdoc-export-sample.txt");

/// Loads the files in the order in which they were changed, which is the order of the feed of changes.
pub(super) fn load(fakes: &Fakes) {
    for file in records(FILES, "/files").into_iter().rev() {
        let text = text_of(file["name"].as_str().unwrap_or_default());
        fakes.drive().load(file, text);
    }
}

/// The text that a file exports as.
fn text_of(name: &str) -> &'static str {
    match name {
        "Stonebrook fleet service agreement 2027 (draft)" => SAMPLE,
        "Delivery and pick-up checklist" => CHECKLIST,
        "Winter rates: letter to customers" => WINTER_RATES,
        "Bayview site visit, notes" => SITE_VISIT,
        "Rental fleet utilisation 2026" => UTILISATION,
        "Hospital parking structure, equipment estimate" => ESTIMATE,
        "Old price list 2025" => "# Price list 2025\n\nReplaced by the list of February 2026. Do not send out.\n",
        _ => "",
    }
}

const CHECKLIST: &str = "\
# Delivery and pick-up checklist

1. Certificate of insurance on file, and not older than twelve months.
2. Photograph all four sides, the hour meter and the fuel gauge; attach them to the rental ticket.
3. Ask for the person who signs. No signature, no keys.
4. On pick-up: note new damage in front of the customer, before the machine is on the trailer.

Weekend deliveries cost $85 and are agreed with dispatch by Thursday noon.
";

const WINTER_RATES: &str = "\
# Winter rates 2026/27

Dear customer,

from 1 December to 15 March compact loaders with a snow pusher rent for **$1,900 a month**, down from $2,380. Three months booked together
include one change of cutting edges.

Larkfield Landscaping and Bayview have asked about stand-by machines: those are $40 a day, whether used or not.

Harrow Ridge Equipment, (802) 555-0101
";

const SITE_VISIT: &str = "\
# Bayview site visit, notes

Present: Josu\u{e9} Amberley and Priya Hollowell for Bayview, Wendell Strand for Stonebrook.

- Three campuses need aerial lifts from March: two of 45 ft and one of 60 ft, indoor tyres.
- The parking structure at the hospital is joint work with Stonebrook. Clearance on level 2 is 7 ft 2 in, so the 8-ton excavator stays outside.
- Priya wants one contract for both, with the certificate of insurance named in it.
- Decision by the board on 26 February.
";

const UTILISATION: &str = "\
Machine,Days owned,Days rented,Utilisation,Best customer
\"Excavator, 14 ton\",312,251,80%,Stonebrook Excavating
\"Excavator, 8 ton\",312,203,65%,Stonebrook Excavating
Compact track loader,312,268,86%,Larkfield Landscaping
Trencher,312,119,38%,Copperline Plumbing & Heating
\"Dozer, 10 ton\",312,187,60%,Stonebrook Excavating
Skid steer,312,94,30%,Millrace Farm Co-op
";

const ESTIMATE: &str = "\
Item,Quantity,Weeks,Rate,Amount
\"Aerial lift, 60 ft\",2,16,1350,43200
\"Excavator, 8 ton\",1,12,1450,17400
Compact track loader,2,16,620,19840
\"Transport, all moves\",1,,9560,9560
\"Operator hours, Stonebrook\",400,,95,38000
Total,,,,128000
";
