//! Gmail, for a person who connects a mailbox.

use crate::guide::{Advice, Gives, Group, Mark, Step};
use crate::pull::spec::Guide;

pub(super) const GUIDE: Guide = Guide {
    group: Group::Mail,
    mark: Mark(r#"<path class="soft" d="M3 6h18v12H3z"/><path d="M3 6l9 7 9-7M16.500 15.500h2"/>"#),
    also: "google workspace mailbox e-mail inbox",
    steps: &[
        Step {
            title: "Enable the Gmail API",
            text: "In the Google Cloud console, choose or create a project. Under `APIs & Services`, `Library`, find `Gmail API` and enable it.",
            gives: Gives::Nothing,
        },
        Step {
            title: "Fill in the consent screen",
            text: "Under `OAuth consent screen`, choose `Internal` if every mailbox is in your Google Workspace: then Google verifies nothing. Add this scope. Google calls it restricted: an `External` app needs its verification and a security assessment each year, and without them only 100 test users can connect, for seven days at a time.",
            gives: Gives::Scopes,
        },
        Step {
            title: "Create an OAuth client",
            text: "Under `Credentials`, create an OAuth client id of the type `Web application`, or take the one that you made for Google Drive. Paste this address among its authorised redirect URIs.",
            gives: Gives::RedirectUrl,
        },
        Step {
            title: "Copy the client id and secret",
            text: "Google shows both once the client is created. Put them into the environment of every server and worker, and restart them. Mailboxes work from here on: without the next steps they are asked for news every few minutes.",
            gives: Gives::Settings,
        },
        Step {
            title: "Create a topic for push",
            text: "In the same project, under `Pub/Sub`, `Topics`, create a topic. Under its permissions, add the principal `gmail-api-push@system.gserviceaccount.com` with the role `Pub/Sub Publisher`. Set `GMAIL_PUBSUB_TOPIC` to its name, `projects/PROJECT/topics/TOPIC`.",
            gives: Gives::Nothing,
        },
        Step {
            title: "Create a push subscription",
            text: "Under `Subscriptions`, create one of that topic with the delivery type `Push` and the endpoint `/webhooks/gmail` below PUBLIC_URL. Set the expiration to `Never expire`, and `GMAIL_PUBSUB_SUBSCRIPTION` to its name, `projects/PROJECT/subscriptions/SUBSCRIPTION`.",
            gives: Gives::Nothing,
        },
        Step {
            title: "Let the posts prove themselves",
            text: "Choose `Enable authentication` in that subscription with a service account of the project. Set `GMAIL_PUBSUB_AUDIENCE` to the audience that you enter there, and `GMAIL_PUBSUB_SERVICE_ACCOUNT` to the account's address. Otherwise choose a long random word, add `?token=WORD` to the endpoint and set `GMAIL_PUBSUB_TOKEN`. Restart every server and worker.",
            gives: Gives::Nothing,
        },
    ],
    key_steps: &[],
    codes: &[
        "userRateLimitExceeded",
        "rateLimitExceeded",
        "dailyLimitExceeded",
        "SERVICE_DISABLED",
        "accessNotConfigured",
        "PERMISSION_DENIED",
        "insufficientPermissions",
        "ACCESS_TOKEN_SCOPE_INSUFFICIENT",
        "domainPolicy",
        "failedPrecondition",
        "forbidden",
        "invalidArgument",
        "authError",
    ],
    refusals: &[
        Advice {
            says: "userRateLimitExceeded",
            means: "This mailbox was asked too often within a minute.",
            todo: "Do nothing: the sync waits and goes on. Other programs that read the mailbox by the same app share its allowance.",
        },
        Advice {
            says: "rateLimitExceeded",
            means: "The mailbox, or all mailboxes of your Google project together, were asked too often.",
            todo: "Do nothing: the sync waits and goes on. After very much traffic Gmail may refuse for hours. The project's quota can be raised in the Google Cloud console, that of one mailbox cannot.",
        },
        Advice {
            says: "dailyLimitExceeded",
            means: "The project's allowance for today is used up.",
            todo: "Do nothing: it is asked again every hour and goes on tomorrow. A higher quota can be asked for in the Google Cloud console.",
        },
        Advice {
            says: "SERVICE_DISABLED",
            means: "The Gmail API is not enabled in the project of your OAuth client.",
            todo: "Enable the Gmail API in the Google Cloud console, in the same project, wait five minutes, and press Sync now.",
        },
        Advice {
            says: "accessNotConfigured",
            means: "The Gmail API is not enabled in the project of your OAuth client.",
            todo: "Enable the Gmail API in the Google Cloud console, in the same project, wait five minutes, and press Sync now.",
        },
        Advice {
            says: "PERMISSION_DENIED",
            means: "Google does not let the app read this mailbox.",
            todo: "Check that the Gmail API is enabled and that an administrator of the Workspace trusts the app, then press Reconnect.",
        },
        Advice {
            says: "insufficientPermissions",
            means: "The person did not tick the box that allows reading their mail.",
            todo: "Press Reconnect, and tick every box on Google's page.",
        },
        Advice {
            says: "ACCESS_TOKEN_SCOPE_INSUFFICIENT",
            means: "The person did not tick the box that allows reading their mail.",
            todo: "Press Reconnect, and tick every box on Google's page.",
        },
        Advice {
            says: "domainPolicy",
            means: "The Workspace's administrator does not allow apps to use Gmail.",
            todo: "Ask the administrator to trust your OAuth client in the Google Admin console, then press Sync now.",
        },
        Advice {
            says: "failedPrecondition",
            means: "This Google account has no mailbox, or Gmail is switched off for it.",
            todo: "Connect an account that has Gmail, or ask the Workspace's administrator to switch Gmail on for it.",
        },
        Advice {
            says: "forbidden",
            means: "Gmail may not publish to the topic for push.",
            todo: "Give gmail-api-push@system.gserviceaccount.com the role Pub/Sub Publisher on the topic, in the project of your OAuth client. If your organisation restricts sharing by domain, its administrator has to allow this account.",
        },
        Advice {
            says: "invalidArgument",
            means: "Google does not take the topic for push, or another one is told of this mailbox already.",
            todo: "Check GMAIL_PUBSUB_TOPIC: it is projects/PROJECT/topics/TOPIC, in the project of your OAuth client. Two installations with one OAuth client cannot both be told of one mailbox.",
        },
        Advice {
            says: "no_topic",
            means: "No topic for push is set, so nobody tells us of changes.",
            todo: "Set GMAIL_PUBSUB_TOPIC as this page describes, or leave it: the mailbox is asked for news every few minutes.",
        },
        Advice {
            says: "authError",
            means: "Google no longer accepts the token.",
            todo: "Press Reconnect. A new password ends tokens for Gmail. While an external app is in testing, Google ends them after seven days: publish the app to keep them.",
        },
        Advice {
            says: "redirect_uri_mismatch",
            means: "Google shows Error 400: the redirect URI is not among those of the OAuth client.",
            todo: "Paste the redirect URL from step 3 among the authorised redirect URIs, exactly, and wait some minutes. Google takes http addresses for localhost alone.",
        },
        Advice {
            says: "access_denied",
            means: "The person pressed Cancel, or is no test user of an app that is in testing.",
            todo: "Add the person as a test user under OAuth consent screen, or publish the app, and connect again.",
        },
        Advice {
            says: "admin_policy_enforced",
            means: "The Workspace's administrator blocks this app.",
            todo: "Ask the administrator to trust your OAuth client in the Google Admin console, then connect again.",
        },
        Advice {
            says: "org_internal",
            means: "The app is for one organisation, and this account is outside it.",
            todo: "Connect an account of the same Google Workspace, or make the consent screen External.",
        },
    ],
};
