//! Google Drive, for a person who connects an account.

use crate::guide::{Advice, Gives, Group, Mark, Step};
use crate::pull::spec::Guide;

pub(super) const GUIDE: Guide = Guide {
    group: Group::Files,
    mark: Mark(
        r#"<path class="soft" d="M7 3.500h8l4 4V17H7z"/><path d="M15 3.500v4h4M5 7v13.500h11M10.500 11h5M10.500 14h5"/>"#,
    ),
    also: "google docs sheets documents files folder",
    steps: &[
        Step {
            title: "Enable the Drive API",
            text: "In the Google Cloud console, choose or create a project. Under `APIs & Services`, `Library`, find `Google Drive API` and enable it.",
            gives: Gives::Nothing,
        },
        Step {
            title: "Fill in the consent screen",
            text: "Under `OAuth consent screen`, choose `Internal` if everybody is in your Google Workspace, else `External`. Add this scope. While an external app is in testing, also add each person as a test user.",
            gives: Gives::Scopes,
        },
        Step {
            title: "Create an OAuth client",
            text: "Under `Credentials`, create an OAuth client id of the type `Web application`. Paste this address among its authorised redirect URIs.",
            gives: Gives::RedirectUrl,
        },
        Step {
            title: "Copy the client id and secret",
            text: "Google shows both once the client is created. Put them into the environment of every server and worker, and restart them.",
            gives: Gives::Settings,
        },
    ],
    key_steps: &[],
    codes: &[
        "userRateLimitExceeded",
        "rateLimitExceeded",
        "sharingRateLimitExceeded",
        "dailyLimitExceeded",
        "exportSizeLimitExceeded",
        "SERVICE_DISABLED",
        "accessNotConfigured",
        "PERMISSION_DENIED",
        "insufficientPermissions",
        "ACCESS_TOKEN_SCOPE_INSUFFICIENT",
        "insufficientFilePermissions",
        "appNotAuthorizedToFile",
        "domainPolicy",
        "cannotDownloadFile",
        "authError",
    ],
    refusals: &[
        Advice {
            says: "userRateLimitExceeded",
            means: "This account was asked too often within a minute.",
            todo: "Do nothing: the sync waits half a minute and goes on.",
        },
        Advice {
            says: "rateLimitExceeded",
            means: "All accounts of your Google project together were asked too often.",
            todo: "Do nothing: the sync waits and goes on. In the Google Cloud console you can ask for a higher quota.",
        },
        Advice {
            says: "sharingRateLimitExceeded",
            means: "Google holds back requests about shared files of this account.",
            todo: "Do nothing: the sync waits and goes on.",
        },
        Advice {
            says: "dailyLimitExceeded",
            means: "The project's allowance for today is used up.",
            todo: "Do nothing: it is asked again every hour and goes on tomorrow. A higher quota can be asked for in the Google Cloud console.",
        },
        Advice {
            says: "exportSizeLimitExceeded",
            means: "A document is too large for Google to export it.",
            todo: "Split the document in Drive, or skip the record on the account's page. All others are read.",
        },
        Advice {
            says: "SERVICE_DISABLED",
            means: "The Drive API is not enabled in the project of your OAuth client.",
            todo: "Enable the Google Drive API in the Google Cloud console, in the same project, wait five minutes, and press Sync now.",
        },
        Advice {
            says: "accessNotConfigured",
            means: "The Drive API is not enabled in the project of your OAuth client.",
            todo: "Enable the Google Drive API in the Google Cloud console, in the same project, wait five minutes, and press Sync now.",
        },
        Advice {
            says: "PERMISSION_DENIED",
            means: "Google does not let the app read this Drive.",
            todo: "Check that the Drive API is enabled and that an administrator of the Workspace trusts the app, then press Reconnect.",
        },
        Advice {
            says: "insufficientPermissions",
            means: "The person did not tick the box that allows reading their files.",
            todo: "Press Reconnect, and tick every box on Google's page.",
        },
        Advice {
            says: "ACCESS_TOKEN_SCOPE_INSUFFICIENT",
            means: "The person did not tick the box that allows reading their files.",
            todo: "Press Reconnect, and tick every box on Google's page.",
        },
        Advice {
            says: "insufficientFilePermissions",
            means: "The person who connected the account may see this file, but not read it.",
            todo: "Ask the file's owner to share it for reading, then retry the record on the account's page.",
        },
        Advice {
            says: "appNotAuthorizedToFile",
            means: "The app may read only files that it was given one by one.",
            todo: "Add the scope drive.readonly to the consent screen, then press Reconnect.",
        },
        Advice {
            says: "domainPolicy",
            means: "The Workspace's administrator does not allow apps to use Drive.",
            todo: "Ask the administrator to trust your OAuth client in the Google Admin console, then press Sync now.",
        },
        Advice {
            says: "cannotDownloadFile",
            means: "The file's owner does not let others download or copy it.",
            todo: "Ask the owner to allow it, or skip the record on the account's page.",
        },
        Advice {
            says: "authError",
            means: "Google no longer accepts the token.",
            todo: "Press Reconnect. While an external app is in testing, Google ends its tokens after seven days: publish the app to keep them.",
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
