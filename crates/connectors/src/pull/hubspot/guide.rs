//! HubSpot, for a person who connects an account.

use crate::guide::{Advice, Gives, Group, Mark, Step};
use crate::pull::spec::Guide;

pub(super) const GUIDE: Guide = Guide {
    group: Group::Crm,
    mark: Mark(
        r#"<circle class="soft" cx="8.500" cy="8" r="3"/><path d="M3 18.500c.5-3.500 2.800-5 5.500-5s5 1.500 5.500 5M16 7h4.500M16 11h4.500M17 15h3.500"/>"#,
    ),
    also: "crm sales marketing contacts companies deals",
    steps: &[
        Step {
            title: "Create a public app",
            text: "Open a HubSpot developer account, choose `Apps`, then `Create app`. The name and description are what people see when they allow it.",
            gives: Gives::Nothing,
        },
        Step {
            title: "Register the redirect URL",
            text: "On the app's tab `Auth`, paste this address as the redirect URL.",
            gives: Gives::RedirectUrl,
        },
        Step {
            title: "Choose the scopes",
            text: "On the same tab, add these scopes as required ones, then save. Only reading is asked for.",
            gives: Gives::Scopes,
        },
        Step {
            title: "Copy the client id and secret",
            text: "The tab `Auth` shows both. Put them into the environment of every server and worker, and restart them.",
            gives: Gives::Settings,
        },
    ],
    key_steps: &[
        Step {
            title: "Create a private app",
            text: "In the HubSpot account itself, open `Settings`, `Integrations`, `Private Apps`, and create one. You need to be a super admin there.",
            gives: Gives::Nothing,
        },
        Step {
            title: "Choose the scopes",
            text: "Add `crm.objects.contacts.read`, `crm.objects.companies.read` and `crm.objects.deals.read`.",
            gives: Gives::Nothing,
        },
        Step {
            title: "Copy the access token",
            text: "Create the app and show its token. It begins with `pat-`. Paste it below.",
            gives: Gives::Nothing,
        },
    ],
    codes: &[
        "MISSING_SCOPES",
        "EXPIRED_AUTHENTICATION",
        "INVALID_AUTHENTICATION",
        "RATE_LIMIT",
        "RATE_LIMITS",
        "VALIDATION_ERROR",
        "OBJECT_NOT_FOUND",
        "bad_refresh_token",
        "bad_auth_code",
    ],
    refusals: &[
        Advice {
            says: "MISSING_SCOPES",
            means: "The app, or the private app's token, may not read contacts, companies or deals.",
            todo: "Add the missing scopes to the app in HubSpot. With a public app, press Reconnect afterwards, so that the account allows them.",
        },
        Advice {
            says: "EXPIRED_AUTHENTICATION",
            means: "The token is older than half an hour and was not renewed.",
            todo: "Press Sync now. If it comes back, press Reconnect, and check that the clock of this server is right.",
        },
        Advice {
            says: "INVALID_AUTHENTICATION",
            means: "HubSpot does not know the token: it was replaced, or cut off when it was pasted.",
            todo: "Copy the whole token of the private app again and enter it on the account's page, or press Reconnect.",
        },
        Advice {
            says: "RATE_LIMIT",
            means: "All apps of this HubSpot account together asked too often.",
            todo: "Do nothing: the sync waits and goes on. If it is slow for days, other apps use up the allowance.",
        },
        Advice {
            says: "RATE_LIMITS",
            means: "All apps of this HubSpot account together asked too often.",
            todo: "Do nothing: the sync waits and goes on. If it is slow for days, other apps use up the allowance.",
        },
        Advice {
            says: "VALIDATION_ERROR",
            means: "HubSpot does not understand a request of ours.",
            todo: "Check HUBSPOT_API_VERSION: it is a version that HubSpot no longer has, or does not have yet. Then press Sync now.",
        },
        Advice {
            says: "OBJECT_NOT_FOUND",
            means: "The account has no such objects, or they are hidden from the app.",
            todo: "Check in HubSpot that contacts, companies and deals are part of the account's plan, then press Sync now.",
        },
        Advice {
            says: "bad_refresh_token",
            means: "The account removed the app, or the token was replaced.",
            todo: "Press Reconnect and allow the app again. Nothing read so far is lost.",
        },
        Advice {
            says: "bad_auth_code",
            means: "HubSpot does not accept the code that it sent the person back with.",
            todo: "Press Connect again and finish within ten minutes. A code works once.",
        },
        Advice {
            says: "redirect_uri_mismatch",
            means: "HubSpot shows a page that says the redirect URL does not match the app.",
            todo: "Paste the redirect URL from step 2 into the app's tab Auth, exactly, and save. HubSpot takes http addresses for localhost alone.",
        },
    ],
};
