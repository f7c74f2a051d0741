//! Thirty companies as three systems know them, with keys that are misspelt, shared and missing.

use fakes::Fakes;
use serde_json::{Value, json};

/// A company at HubSpot: its name and its domain.
type Company = (&'static str, &'static str);
/// A person at HubSpot: the name, the address, the company's name as text, and the companies by their place in the list.
type Person = (&'static str, &'static str, &'static str, &'static [usize]);
/// A customer at QuickBooks: the name, the address, the balance and its currency.
type Customer = (&'static str, &'static str, f64, &'static str);

/// One case: what the systems have, and which records are one client. A record is named `crm`, `person` or `books` and its name.
pub struct Case {
    pub crm: &'static [Company],
    pub people: &'static [Person],
    pub books: &'static [Customer],
    /// Titles at Drive.
    pub files: &'static [&'static str],
    pub clients: &'static [&'static [&'static str]],
}

const NOTHING: Case = Case { crm: &[], people: &[], books: &[], files: &[], clients: &[] };

pub const CASES: [Case; 30] = [
    Case {
        crm: &[("Alder Joinery", "alderjoinery.test")],
        people: &[("Ann Alder", "ann@alderjoinery.test", "", &[0])],
        books: &[("Alder Joinery", "ap@alderjoinery.test", 120.5, "USD")],
        files: &["Alder Joinery: frame contract"],
        clients: &[&["crm Alder Joinery", "person Ann Alder", "books Alder Joinery"]],
    },
    // Another name, the same domain.
    Case {
        crm: &[("Birch & Sons", "birchsons.test")],
        books: &[("B and S Carpentry", "ap@birchsons.test", 10.0, "USD")],
        clients: &[&["crm Birch & Sons", "books B and S Carpentry"]],
        ..NOTHING
    },
    // A misspelt name, and nothing else.
    Case {
        crm: &[("Cedarbrook Nurseries", "cedarbrook.test")],
        books: &[("Cedarbrok Nurseries", "", 1.0, "USD")],
        files: &["Offer for Cedarbrook Nurseries 2026"],
        clients: &[&["crm Cedarbrook Nurseries", "books Cedarbrok Nurseries"]],
        ..NOTHING
    },
    // Swapped letters, and an address that says nothing.
    Case {
        crm: &[("Dunlin Plumbing", "")],
        books: &[("Dunlin Plubming", "dunlinplumbing@gmail.com", 2.0, "USD")],
        clients: &[&["crm Dunlin Plumbing", "books Dunlin Plubming"]],
        ..NOTHING
    },
    // No domain: its people have one.
    Case {
        crm: &[("Elder Dairy", "")],
        people: &[("Dan Elder", "dan@elderdairy.test", "", &[0])],
        books: &[("E. D. Trading", "ap@elderdairy.test", 3.0, "USD")],
        clients: &[&["crm Elder Dairy", "person Dan Elder", "books E. D. Trading"]],
        ..NOTHING
    },
    // Legal form, capitals and hyphens.
    Case {
        crm: &[("FALCON-FOODS GmbH", "")],
        books: &[("Falcon Foods", "", 4.0, "EUR")],
        clients: &[&["crm FALCON-FOODS GmbH", "books Falcon Foods"]],
        ..NOTHING
    },
    // Accents.
    Case {
        crm: &[("Café Gentian", "")],
        books: &[("Cafe Gentian SARL", "", 5.0, "EUR")],
        clients: &[&["crm Café Gentian", "books Cafe Gentian SARL"]],
        ..NOTHING
    },
    Case {
        crm: &[("Heather & Ivy", "heatherivy.test")],
        books: &[("Heather and Ivy, Inc.", "", 6.0, "USD")],
        clients: &[&["crm Heather & Ivy", "books Heather and Ivy, Inc."]],
        ..NOTHING
    },
    // A bookkeeper's address, shared by two.
    Case {
        crm: &[("Iris Bakery", "irisbakery.test"), ("Jasper Masonry", "jaspermasonry.test")],
        books: &[
            ("Iris Bakery", "office@ledgerhouse.test", 7.0, "USD"),
            ("Jasper Masonry", "office@ledgerhouse.test", 8.0, "USD"),
        ],
        clients: &[&["crm Iris Bakery", "books Iris Bakery"], &["crm Jasper Masonry", "books Jasper Masonry"]],
        ..NOTHING
    },
    // Two companies of one name; the address tells which.
    Case {
        crm: &[("Kingfisher", "kingfisher-north.test"), ("Kingfisher", "kf-south.test")],
        books: &[("Kingfisher", "ap@kf-south.test", 9.0, "USD")],
        clients: &[&["crm Kingfisher"], &["crm Kingfisher", "books Kingfisher"]],
        ..NOTHING
    },
    // Twice in one system, once with a misspelt domain.
    Case {
        crm: &[("Lapwing Optics", "lapwingoptics.test"), ("Lapwing Optics", "lapwingoptcis.test")],
        books: &[("Lapwing Optics", "", 11.0, "USD")],
        clients: &[&["crm Lapwing Optics", "crm Lapwing Optics", "books Lapwing Optics"]],
        ..NOTHING
    },
    // Everybody has a mailbox there.
    Case {
        crm: &[("Marten Lighting", ""), ("Nuthatch Motors", "")],
        books: &[
            ("Marten Lighting", "marten@gmail.com", 12.0, "USD"),
            ("Nuthatch Motors", "nuthatch@gmail.com", 13.0, "USD"),
        ],
        clients: &[
            &["crm Marten Lighting", "books Marten Lighting"],
            &["crm Nuthatch Motors", "books Nuthatch Motors"],
        ],
        ..NOTHING
    },
    // The same mailbox, of one of its people.
    Case {
        crm: &[("Osprey Works", "ospreyworks.test")],
        people: &[("Nell Osprey", "nell.osprey@gmail.com", "", &[0])],
        books: &[("N. O. Repairs", "nell.osprey@gmail.com", 14.0, "USD")],
        clients: &[&["crm Osprey Works", "person Nell Osprey", "books N. O. Repairs"]],
        ..NOTHING
    },
    // A domain as an address on the web.
    Case {
        crm: &[("Plover Ridge", "https://www.ploverridge.test/home")],
        books: &[("PR Trading", "pay@ploverridge.test", 15.0, "USD")],
        clients: &[&["crm Plover Ridge", "books PR Trading"]],
        ..NOTHING
    },
    Case {
        crm: &[("Quail Hurst", "QUAILHURST.TEST")],
        books: &[("QH Group", "AP@QuailHurst.Test", 16.0, "USD")],
        clients: &[&["crm Quail Hurst", "books QH Group"]],
        ..NOTHING
    },
    // People of a company that has no record.
    Case {
        people: &[
            ("Rhea Moss", "rhea@redshank.test", "Redshank Legal", &[]),
            ("Rolf Fern", "rolf@redshank.test", "Redshank Legal", &[]),
        ],
        clients: &[&["person Rhea Moss", "person Rolf Fern"]],
        ..NOTHING
    },
    // A person who is a customer.
    Case {
        people: &[("Sorrel Ives", "sorrel.ives@gmail.com", "", &[])],
        books: &[("Sorrel Ives", "sorrel.ives@gmail.com", 17.0, "USD")],
        clients: &[&["person Sorrel Ives", "books Sorrel Ives"]],
        ..NOTHING
    },
    // One company, two accounts in two currencies.
    Case {
        crm: &[("Siskin Export", "siskin.test")],
        books: &[
            ("Siskin Export", "ap@siskin.test", 100.1, "EUR"),
            ("Siskin Export USD", "ap@siskin.test", 50.0, "USD"),
        ],
        clients: &[&["crm Siskin Export", "books Siskin Export", "books Siskin Export USD"]],
        ..NOTHING
    },
    // A digit is no slip.
    Case {
        crm: &[("Depot 12 Storage", ""), ("Depot 13 Storage", "")],
        clients: &[&["crm Depot 12 Storage"], &["crm Depot 13 Storage"]],
        ..NOTHING
    },
    Case { books: &[("Tern Tiles", "", 18.0, "USD")], clients: &[&["books Tern Tiles"]], ..NOTHING },
    Case { crm: &[("Thrush Textiles", "thrush.test")], clients: &[&["crm Thrush Textiles"]], ..NOTHING },
    // A person of two companies joins neither to the other.
    Case {
        crm: &[("Umber Paints", "umberpaints.test"), ("Violet Dyes", "violetdyes.test")],
        people: &[("Uma Voss", "uma@violetdyes.test", "", &[0, 1])],
        clients: &[&["crm Umber Paints"], &["crm Violet Dyes", "person Uma Voss"]],
        ..NOTHING
    },
    Case {
        crm: &[("Wagtail Weavers", "wagtail.test")],
        books: &[("Wagtail Weavers", "pay@wagtail.test", 19.0, "USD")],
        files: &["Frame contract - Wagtail Weavers", "Wagtails of Europe"],
        clients: &[&["crm Wagtail Weavers", "books Wagtail Weavers"]],
        ..NOTHING
    },
    Case {
        crm: &[("The Warbler Company", "")],
        books: &[("Warbler", "", 20.0, "USD")],
        clients: &[&["crm The Warbler Company", "books Warbler"]],
        ..NOTHING
    },
    // Words run together.
    Case {
        crm: &[("Yarrow Field Services", "")],
        books: &[("Yarrowfield Services", "", 21.0, "USD")],
        clients: &[&["crm Yarrow Field Services", "books Yarrowfield Services"]],
        ..NOTHING
    },
    // The right name, a misspelt address.
    Case {
        crm: &[("Zander Seeds", "zanderseeds.test")],
        books: &[("Zander Seeds", "ap@zandersees.test", 22.0, "USD")],
        clients: &[&["crm Zander Seeds", "books Zander Seeds"]],
        ..NOTHING
    },
    Case {
        crm: &[("Avocet Cabs.", "")],
        books: &[("  Avocet   Cabs", "", 23.0, "USD")],
        clients: &[&["crm Avocet Cabs.", "books   Avocet   Cabs"]],
        ..NOTHING
    },
    // Somebody wrote their mailbox where the domain belongs.
    Case {
        crm: &[("Bittern Taxi", "gmail.com"), ("Crake Taxi", "gmail.com")],
        books: &[("Bittern Taxi", "", 24.0, "USD")],
        clients: &[&["crm Bittern Taxi", "books Bittern Taxi"], &["crm Crake Taxi"]],
        ..NOTHING
    },
    // A person with another's address stays where their record says.
    Case {
        crm: &[("Dipper Design", "dipperdesign.test")],
        people: &[("Dita Roe", "dita@someagency.test", "", &[0])],
        clients: &[&["crm Dipper Design", "person Dita Roe"]],
        ..NOTHING
    },
    // No name at all.
    Case {
        crm: &[("", "eiderenergy.test")],
        books: &[("Eider Energy", "ap@eiderenergy.test", 25.0, "USD")],
        clients: &[&["crm eiderenergy.test", "books Eider Energy"]],
        ..NOTHING
    },
];

/// Puts all of it at the providers.
pub fn fill(fakes: &Fakes) {
    let (crm, books, drive) = (fakes.hubspot(), fakes.quickbooks(), fakes.drive());
    for case in &CASES {
        let companies: Vec<String> = case
            .crm
            .iter()
            .map(|(name, domain)| {
                let fields = given(&[("name", name), ("domain", domain), ("industry", "FACILITIES_SERVICES")]);
                crm.put("companies", json!({ "properties": fields }))
            })
            .collect();
        for (name, email, company, of) in case.people {
            let (first, last) = name.split_once(' ').expect("two names");
            let fields = given(&[("firstname", first), ("lastname", last), ("email", email), ("company", company)]);
            let id = crm.put("contacts", json!({ "properties": fields }));
            of.iter().for_each(|nth| crm.associate("contacts", &id, "companies", &companies[*nth]));
        }
        for (name, email, balance, currency) in case.books {
            let mut customer = json!({ "DisplayName": name, "CompanyName": name, "Balance": balance,
                "CurrencyRef": { "value": currency } });
            if !email.is_empty() {
                customer["PrimaryEmailAddr"] = json!({ "Address": email });
            }
            let id = books.put("Customer", customer);
            books.put(
                "Invoice",
                json!({ "CustomerRef": { "value": id }, "TotalAmt": balance, "Balance": balance,
                "DocNumber": format!("INV-{id}"), "TxnDate": "2026-10-01", "DueDate": "2026-10-31" }),
            );
        }
        for title in case.files {
            drive.put_doc(title, "Terms as agreed.");
        }
    }
}

/// The fields that have a value.
fn given(fields: &[(&str, &str)]) -> Value {
    let fields = fields.iter().filter(|(_, value)| !value.is_empty());
    fields.map(|(name, value)| ((*name).to_owned(), Value::from(*value))).collect::<serde_json::Map<_, _>>().into()
}
