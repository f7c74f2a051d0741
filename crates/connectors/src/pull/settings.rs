//! Settings of providers. Each provider declares its own in its folder; the engine reads them from the environment and the command line,
//! and `tributary config` prints them.

use std::collections::BTreeMap;

use domain::Secret;

/// One setting of a provider: its environment variable, default and help.
#[derive(Debug)]
pub struct Setting {
    /// The name of its environment variable. Providers of one company may share a setting.
    pub env: &'static str,
    pub kind: SettingKind,
    /// The value while nobody sets it. None: there is none.
    pub default: Option<&'static str>,
    pub help: &'static str,
}

/// The values that a setting takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SettingKind {
    Text,
    /// A text that is never printed.
    Secret,
    /// An address of the web, without a slash at its end.
    Url,
    /// A whole number.
    Count,
}

impl Setting {
    pub const fn text(env: &'static str, default: Option<&'static str>, help: &'static str) -> Self {
        Self { env, kind: SettingKind::Text, default, help }
    }

    pub const fn secret(env: &'static str, help: &'static str) -> Self {
        Self { env, kind: SettingKind::Secret, default: None, help }
    }

    pub const fn url(env: &'static str, default: Option<&'static str>, help: &'static str) -> Self {
        Self { env, kind: SettingKind::Url, default, help }
    }

    /// `default` is a whole number.
    pub const fn count(env: &'static str, default: &'static str, help: &'static str) -> Self {
        Self { env, kind: SettingKind::Count, default: Some(default), help }
    }
}

/// The settings of all providers that somebody has set, by environment variable. Every value prints as `***`.
#[derive(Clone, Debug, Default)]
pub struct Settings(BTreeMap<String, Secret>);

impl Settings {
    pub fn set(&mut self, env: &str, value: impl Into<String>) {
        self.0.insert(env.to_owned(), Secret::new(value.into()));
    }

    /// Resets a setting to its default.
    pub fn remove(&mut self, env: &str) {
        self.0.remove(env);
    }

    /// The value in force: the one that was set, else the default.
    pub fn get(&self, setting: &Setting) -> Option<&str> {
        self.0.get(setting.env).map(Secret::reveal).or(setting.default)
    }

    /// The same of a setting that has a default; without one it is empty.
    pub fn text(&self, setting: &Setting) -> &str {
        self.get(setting).unwrap_or_default()
    }

    /// The same as a number. A value that is none is refused where it is read, so 0 stands for nothing here.
    pub fn count(&self, setting: &Setting) -> usize {
        self.text(setting).parse().unwrap_or_default()
    }

    /// Every value that was set, by environment variable.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(env, value)| (env.as_str(), value.reveal()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_has_the_value_that_was_set_else_its_default() {
        static URL: Setting = Setting::url("ACME_API_URL", Some("https://api.acme.example"), "Acme's API.");
        static MOST: Setting = Setting::count("ACME_MOST", "200", "Most records.");
        static KEY: Setting = Setting::secret("ACME_KEY", "Its key.");
        let mut settings = Settings::default();
        assert_eq!((settings.text(&URL), settings.count(&MOST)), ("https://api.acme.example", 200));
        assert_eq!((settings.get(&KEY), settings.text(&KEY)), (None, ""));
        settings.set("ACME_MOST", "3");
        settings.set("ACME_KEY", "canary");
        assert_eq!((settings.count(&MOST), settings.get(&KEY)), (3, Some("canary")));
        assert_eq!(settings.iter().collect::<Vec<_>>(), [("ACME_KEY", "canary"), ("ACME_MOST", "3")]);
        assert!(!format!("{settings:?}").contains("canary"));
    }
}
