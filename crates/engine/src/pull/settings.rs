//! Providers' settings on the command line and in the environment. Each provider declares its own; clap learns of them here, so that they
//! look and behave like every field of [`Config`](crate::Config).

use std::collections::BTreeSet;
use std::ops::{Deref, DerefMut};

use clap::builder::ValueParser;
use clap::{Arg, ArgMatches, Args, Command, Error, FromArgMatches};
use connectors::pull::settings::SettingKind;
use connectors::pull::{ALL, Setting, Settings};

use crate::config::base_url;

/// The settings of all providers.
#[derive(Clone, Debug, Default)]
pub struct ProviderSettings(Settings);

impl Deref for ProviderSettings {
    type Target = Settings;
    fn deref(&self) -> &Settings {
        &self.0
    }
}

impl DerefMut for ProviderSettings {
    fn deref_mut(&mut self) -> &mut Settings {
        &mut self.0
    }
}

/// Every setting that a provider declares, each once: providers of one company share some.
fn declared() -> Vec<&'static Setting> {
    let mut seen = BTreeSet::new();
    let all = ALL.iter().flat_map(|provider| provider.settings.iter().copied());
    all.filter(|setting| seen.insert(setting.env)).collect()
}

impl Args for ProviderSettings {
    fn augment_args(command: Command) -> Command {
        declared().into_iter().fold(command, |command, setting| command.arg(arg(setting)))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

/// The environment variable, and a flag of the same name: `--acme-api-url` for `ACME_API_URL`.
fn arg(setting: &'static Setting) -> Arg {
    let parser = match setting.kind {
        SettingKind::Text | SettingKind::Secret => ValueParser::string(),
        SettingKind::Url => ValueParser::new(base_url),
        SettingKind::Count => ValueParser::new(count),
    };
    // clap takes names that live as long as the program, and this one is made once or twice in its life.
    let flag: &'static str = setting.env.to_lowercase().replace('_', "-").leak();
    let value_name = setting.env;
    let arg = Arg::new(setting.env).long(flag).env(setting.env).value_name(value_name).value_parser(parser);
    let arg = arg.help(setting.help).global(true).hide_short_help(true);
    let arg = arg.hide_env_values(setting.kind == SettingKind::Secret);
    match setting.default {
        Some(default) => arg.default_value(default),
        None => arg,
    }
}

fn count(text: &str) -> Result<String, String> {
    text.parse::<usize>().map(|_| text.to_owned()).map_err(|_| "a whole number, such as 200".into())
}

impl FromArgMatches for ProviderSettings {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let mut settings = Self::default();
        settings.update_from_arg_matches(matches)?;
        Ok(settings)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        for setting in declared() {
            if let Some(value) = matches.get_one::<String>(setting.env) {
                self.0.set(setting.env, value.as_str());
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_setting_is_a_flag_and_an_environment_variable_with_its_default() {
        let command = ProviderSettings::augment_args(Command::new("x"));
        let names: Vec<&str> = command.get_arguments().filter_map(|arg| arg.get_env()?.to_str()).collect();
        for name in [
            "HUBSPOT_CLIENT_ID",
            "HUBSPOT_CLIENT_SECRET",
            "HUBSPOT_API_URL",
            "HUBSPOT_AUTHORIZE_URL",
            "HUBSPOT_TOKEN_URL",
            "HUBSPOT_API_VERSION",
            "HUBSPOT_MCP_URL",
            "GOOGLE_CLIENT_ID",
            "GOOGLE_CLIENT_SECRET",
            "DRIVE_API_URL",
            "GOOGLE_AUTHORIZE_URL",
            "GOOGLE_TOKEN_URL",
            "DRIVE_MCP_URL",
            "DRIVE_INITIAL_SYNC_MAX_FILES",
            "QUICKBOOKS_CLIENT_ID",
            "QUICKBOOKS_CLIENT_SECRET",
            "QUICKBOOKS_API_URL",
            "QUICKBOOKS_AUTHORIZE_URL",
            "QUICKBOOKS_TOKEN_URL",
            "QUICKBOOKS_MCP_URL",
            "GMAIL_API_URL",
            "GMAIL_INITIAL_SYNC_MAX_THREADS",
            "GMAIL_PUBSUB_TOPIC",
            "GMAIL_PUBSUB_SUBSCRIPTION",
            "GMAIL_PUBSUB_TOKEN",
            "GMAIL_PUBSUB_AUDIENCE",
            "GMAIL_PUBSUB_SERVICE_ACCOUNT",
            "OUTLOOK_CLIENT_ID",
            "OUTLOOK_CLIENT_SECRET",
            "OUTLOOK_API_URL",
            "OUTLOOK_AUTHORIZE_URL",
            "OUTLOOK_TOKEN_URL",
            "OUTLOOK_INITIAL_SYNC_MAX_MESSAGES",
        ] {
            assert!(names.contains(&name), "{name} is no setting any more");
        }
        let given = ["x", "--hubspot-api-url", "http://127.0.0.1:9/", "--drive-initial-sync-max-files", "3"];
        let matches = command.clone().try_get_matches_from(given).expect("settings");
        let settings = ProviderSettings::from_arg_matches(&matches).expect("settings");
        let value = |env: &str| settings.iter().find(|(name, _)| *name == env).map(|(_, value)| value.to_owned());
        assert_eq!(value("HUBSPOT_API_URL").as_deref(), Some("http://127.0.0.1:9"));
        assert_eq!(value("DRIVE_INITIAL_SYNC_MAX_FILES").as_deref(), Some("3"));
        assert_eq!(value("QUICKBOOKS_API_URL").as_deref(), Some("https://quickbooks.api.intuit.com"));
        for wrong in [["x", "--hubspot-api-url", "api.hubapi.com"], ["x", "--drive-initial-sync-max-files", "many"]] {
            assert!(command.clone().try_get_matches_from(wrong).is_err(), "{wrong:?}");
        }
    }
}
