//! Outlook, for a person who connects a mailbox.

use crate::guide::{Advice, Gives, Group, Mark, Step};
use crate::pull::spec::Guide;

pub(super) const GUIDE: Guide = Guide {
    group: Group::Mail,
    mark: Mark(r#"<path class="soft" d="M3 6h18v12H3z"/><path d="M3 6l9 7 9-7M5.500 15.500h2"/>"#),
    also: "microsoft 365 exchange office mailbox e-mail inbox hotmail",
    steps: &[
        Step {
            title: "Register an app",
            text: "Open the Microsoft Entra admin center, `App registrations`, `New registration`. Choose the accounts that may connect: those of your organization, of any organization, or also personal ones such as Outlook.com.",
            gives: Gives::Nothing,
        },
        Step {
            title: "Register the redirect URL",
            text: "On the app's page `Authentication`, add the platform `Web` and paste this address. Not `Single-page application`: its sign-ins end after a day.",
            gives: Gives::RedirectUrl,
        },
        Step {
            title: "Choose the permissions",
            text: "On the page `API permissions`, add these as delegated permissions of Microsoft Graph. Only reading is asked for. If your organization lets administrators alone allow apps, press `Grant admin consent` there.",
            gives: Gives::Scopes,
        },
        Step {
            title: "Make a client secret",
            text: "On the page `Certificates & secrets`, make a client secret and copy its value at once: it is shown only then. Note the day on which it expires.",
            gives: Gives::Nothing,
        },
        Step {
            title: "Set the client id and secret",
            text: "The page `Overview` shows the client id. Put both into the environment of every server and worker, and restart them. An app of one organization also needs `OUTLOOK_AUTHORIZE_URL` and `OUTLOOK_TOKEN_URL` with its tenant id in the place of `common`.",
            gives: Gives::Settings,
        },
    ],
    key_steps: &[],
    codes: &[
        "InvalidAuthenticationToken",
        "ErrorAccessDenied",
        "MailboxNotEnabledForRESTAPI",
        "ErrorMailboxNotEnabledForRESTAPI",
        "ApplicationThrottled",
        "TooManyRequests",
        "ErrorItemNotFound",
        "InvalidRequest",
        "ValidationError",
        "interaction_required",
        "consent_required",
        "login_required",
    ],
    refusals: &[
        Advice {
            says: "InvalidAuthenticationToken",
            means: "Microsoft does not accept the token: it is too old, or of another cloud.",
            todo: "Press Sync now. If it comes back, press Reconnect, and check that the clock of this server is right and that OUTLOOK_API_URL belongs to the account's cloud.",
        },
        Advice {
            says: "ErrorAccessDenied",
            means: "The app may not read this mailbox: the permission Mail.Read is missing, or an administrator limits which mailboxes apps may read.",
            todo: "Add Mail.Read as a delegated permission of the app, ask an administrator to consent, then press Reconnect.",
        },
        Advice {
            says: "MailboxNotEnabledForRESTAPI",
            means: "The account has no mailbox at Exchange Online: it has no licence, is switched off, or its mail is on a server of its own.",
            todo: "Check in the Microsoft 365 admin center that the person has a licence with Exchange Online, then press Sync now. Mail on a server of your own cannot be read here.",
        },
        Advice {
            says: "ErrorMailboxNotEnabledForRESTAPI",
            means: "The account has no mailbox at Exchange Online: it has no licence, is switched off, or its mail is on a server of its own.",
            todo: "Check in the Microsoft 365 admin center that the person has a licence with Exchange Online, then press Sync now. Mail on a server of your own cannot be read here.",
        },
        Advice {
            says: "ApplicationThrottled",
            means: "We asked this mailbox more often than Microsoft allows.",
            todo: "Do nothing: the sync waits as long as it was told to, and goes on.",
        },
        Advice {
            says: "TooManyRequests",
            means: "We asked this mailbox more often than Microsoft allows.",
            todo: "Do nothing: the sync waits as long as it was told to, and goes on.",
        },
        Advice {
            says: "ErrorItemNotFound",
            means: "A folder or a message that was asked for went away meanwhile.",
            todo: "Press Sync now. The folders are read anew each time.",
        },
        Advice {
            says: "InvalidRequest",
            means: "Microsoft could not reach this server to check the address for notices, or does not understand a request of ours.",
            todo: "Check that PUBLIC_URL is an https address that the internet reaches, with a certificate that others trust. Without it the mailbox is still read, by asking regularly.",
        },
        Advice {
            says: "ValidationError",
            means: "The address for notices did not answer Microsoft's check as it should.",
            todo: "Check that no proxy changes requests to /webhooks/outlook or asks for a sign-in there. Until then the mailbox is read by asking regularly.",
        },
        Advice {
            says: "interaction_required",
            means: "Microsoft wants the person to sign in again, for example with a second factor or from a managed device.",
            todo: "Press Reconnect and sign in. If it comes back each time, ask an administrator which rule of conditional access applies to this app.",
        },
        Advice {
            says: "consent_required",
            means: "The person, or an administrator, has not allowed all that the app asks for, or has withdrawn it.",
            todo: "Press Reconnect and allow it. If Microsoft says that an administrator has to approve, an administrator presses Grant admin consent on the app's page API permissions.",
        },
        Advice {
            says: "login_required",
            means: "Microsoft wants the person to sign in again.",
            todo: "Press Reconnect and sign in. Nothing read so far is lost.",
        },
        Advice {
            says: "redirect_uri_mismatch",
            means: "Microsoft shows a page with AADSTS50011: the redirect URL does not match one of the app.",
            todo: "Paste the redirect URL from step 2 into the app's page Authentication, exactly, as the platform Web. Microsoft takes http addresses for localhost alone.",
        },
        Advice {
            says: "invalid_client",
            means: "Microsoft does not accept the client secret (AADSTS7000215 or AADSTS7000222): its id was copied and not its value, or it has expired. No mailbox is disconnected by that.",
            todo: "Make a new client secret in the app registration, copy its value, put it into the environment, and restart every server and worker. The syncs go on by themselves.",
        },
        Advice {
            says: "unauthorized_client",
            means: "The app is not known in the account's organization (AADSTS700016), or does not accept this kind of account.",
            todo: "Check the client id, and which accounts the app supports. An app of one organization needs OUTLOOK_AUTHORIZE_URL and OUTLOOK_TOKEN_URL with its tenant id (AADSTS50194).",
        },
        Advice {
            says: "access_denied",
            means: "The person did not allow it, or their organization lets administrators alone allow apps (AADSTS90094, AADSTS65004).",
            todo: "Press Connect again and accept. Otherwise an administrator presses Grant admin consent on the app's page API permissions, and the person connects afterwards.",
        },
        Advice {
            says: "invalid_grant",
            means: "The sign-in no longer counts: the password was reset, the sessions were ended, it was not used for 90 days, or the account was disabled.",
            todo: "Press Reconnect and sign in. Nothing read so far is lost, and nothing that came in meanwhile is missed.",
        },
    ],
};
