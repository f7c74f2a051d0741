//! QuickBooks Online, for a person who connects a company.

use crate::guide::{Advice, Gives, Group, Mark, Step};
use crate::pull::spec::Guide;

pub(super) const GUIDE: Guide = Guide {
    group: Group::Accounting,
    mark: Mark(
        r#"<path class="soft" d="M4 4.500h12V20H4z"/><path d="M7 8.500h6M7 12h6M7 15.500h3"/><circle cx="17.500" cy="16.500" r="3.500"/>"#,
    ),
    also: "intuit invoices customers bookkeeping accounting",
    steps: &[
        Step {
            title: "Create an app",
            text: "Sign in at developer.intuit.com, open the dashboard and create an app for `QuickBooks Online and Payments`.",
            gives: Gives::Nothing,
        },
        Step {
            title: "Choose the scope",
            text: "Choose the accounting scope. Payments are not needed.",
            gives: Gives::Scopes,
        },
        Step {
            title: "Register the redirect URL",
            text: "Under `Keys & credentials`, choose `Production` for a real company or `Development` for a sandbox, and paste this address among the redirect URIs. Intuit takes https alone for production.",
            gives: Gives::RedirectUrl,
        },
        Step {
            title: "Copy the client id and secret",
            text: "The same page shows both, other ones for production than for development. Put them into the environment of every server and worker, and restart them. For a sandbox company also set `QUICKBOOKS_API_URL=https://sandbox-quickbooks.api.intuit.com`.",
            gives: Gives::Settings,
        },
    ],
    key_steps: &[],
    codes: &["3001", "3100", "3200", "5020", "610", "4000", "4001", "5010", "10000"],
    refusals: &[
        Advice {
            says: "3001",
            means: "The company was asked too often within a minute, or the app used up its calls of this month.",
            todo: "Do nothing: the sync waits and goes on. If it lasts for days, look at the app's usage in the Intuit dashboard.",
        },
        Advice {
            says: "3100",
            means: "The app or the person may not read this company.",
            todo: "Let a company administrator connect it. If the keys are for development, only sandbox companies work with them.",
        },
        Advice {
            says: "3200",
            means: "The token is not good, or belongs to the other environment.",
            todo: "Press Reconnect. Check that production keys go with the usual API address, and development keys with the sandbox's.",
        },
        Advice {
            says: "5020",
            means: "The person who connected the company may not see customers or invoices.",
            todo: "Give them the right in QuickBooks under Manage users, or let an administrator press Reconnect.",
        },
        Advice {
            says: "610",
            means: "A record is gone in QuickBooks, or was made inactive.",
            todo: "Do nothing: the next full sync removes it here. Press Read everything again to do it now.",
        },
        Advice {
            says: "4000",
            means: "QuickBooks does not understand a question of ours.",
            todo: "Press Sync now. If it comes back, the company's edition of QuickBooks may lack invoices: report it with the code.",
        },
        Advice {
            says: "4001",
            means: "QuickBooks does not understand a question of ours.",
            todo: "Press Sync now. If it comes back, the company's edition of QuickBooks may lack invoices: report it with the code.",
        },
        Advice {
            says: "5010",
            means: "A record was changed in QuickBooks while it was read.",
            todo: "Do nothing: the next sync reads it again.",
        },
        Advice {
            says: "10000",
            means: "QuickBooks had a fault of its own.",
            todo: "Do nothing: the request is tried again. Intuit's status page says whether it is known.",
        },
        Advice {
            says: "redirect_uri_mismatch",
            means: "Intuit says that the redirect_uri is invalid: it is not among the app's, or among those of the other environment.",
            todo: "Paste the redirect URL from step 3 under Keys & credentials, for the environment whose client id you use.",
        },
        Advice {
            says: "access_denied",
            means: "The person pressed Cancel, or is no administrator of the company.",
            todo: "Sign in as the company's primary or company administrator, and connect again.",
        },
    ],
};
