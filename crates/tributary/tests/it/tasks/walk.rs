//! A person at the pages. They press what they see by its words, fill in what has a label, and every press is counted.

use std::path::Path;
use std::time::Duration;

use fantoccini::Locator;
use fantoccini::elements::Element;
use fantoccini::key::Key;
use serde_json::{Value, json};
use testkit::wait_until;

use crate::browser::Browser;

pub const SOON: Duration = Duration::from_secs(20);
/// Chromium's name for a reference to an element.
const ELEMENT: &str = "element-6066-11e4-a52e-4f735466cecf";
const FIND: &str = include_str!("find.js");

/// A task under way.
pub struct Walk<'a> {
    browser: &'a Browser,
    task: &'static str,
    clicks: u32,
}

impl<'a> Walk<'a> {
    /// Begins on Home, as after a bookmark.
    pub async fn begin(browser: &'a Browser, home: &str, task: &'static str) -> Self {
        browser.goto(home).await;
        Self { browser, task, clicks: 0 }
    }

    pub fn clicks(&self) -> u32 {
        self.clicks
    }

    /// Presses a button, a link, a fold or a box.
    pub async fn press(&mut self, name: &str) {
        self.press_in("", name).await;
    }

    /// Presses what has this name in the row, section or dialog that says `part`.
    pub async fn press_in(&mut self, part: &str, name: &str) {
        self.clicks += 1;
        self.on("press", part, name, async |element| element.click().await).await;
    }

    /// Types into a field, over what it has. Typing is no click.
    pub async fn fill(&mut self, name: &str, text: &str) {
        self.on("fill", "", name, async |field| {
            field.clear().await?;
            field.send_keys(text).await
        })
        .await;
    }

    /// Chooses the one of a list that is or begins so.
    pub async fn choose(&mut self, name: &str, choice: &str) {
        self.clicks += 1;
        let is_chosen = self.on("fill", "", name, async |list| {
            for option in list.find_all(Locator::Css("option")).await? {
                if option.prop("text").await?.is_some_and(|text| text.trim().starts_with(choice)) {
                    return option.click().await.map(|()| true);
                }
            }
            Ok(false)
        });
        assert!(is_chosen.await, "“{name}” has no choice “{choice}”");
    }

    /// Chooses a file, which is one click more in the dialog of the browser.
    pub async fn choose_file(&mut self, name: &str, file: &Path) {
        self.clicks += 1;
        self.on("fill", "", name, async |field| field.send_keys(&file.display().to_string()).await).await;
    }

    /// Presses keys, which count as a click.
    pub async fn keys(&mut self, keys: &str) {
        self.clicks += 1;
        self.types(keys).await;
    }

    pub async fn enter(&mut self) {
        self.keys(&Key::Enter.to_string()).await;
    }

    /// Types where the cursor is.
    pub async fn types(&mut self, text: &str) {
        let focused = self.browser.client.active_element().await.expect("something with the focus");
        focused.send_keys(text).await.expect("typed");
    }

    /// Opens a link that somebody was given.
    pub async fn open(&mut self, link: &str) {
        self.clicks += 1;
        self.browser.goto(link).await;
    }

    /// Waits until the page says so.
    pub async fn sees(&self, text: &str) {
        assert!(self.browser.shows(text, SOON).await, "“{text}” is not on the page:\n{}", self.browser.text().await);
    }

    /// Loads the page again: what it says afterwards is stored.
    pub async fn reload(&self) {
        self.browser.client.refresh().await.expect("a page");
    }

    pub async fn address(&self) -> String {
        self.browser.client.current_url().await.expect("a URL").to_string()
    }

    pub async fn arrives_at(&self, path: &str) {
        let is_there = wait_until(SOON, async || self.address().await.ends_with(path)).await;
        assert!(is_there, "at {} and not at {path}", self.address().await);
    }

    /// Reads a field.
    pub async fn value(&self, name: &str) -> String {
        self.value_in("", name).await
    }

    pub async fn value_in(&self, part: &str, name: &str) -> String {
        let value = self.on("fill", part, name, async |field| field.prop("value").await).await;
        value.unwrap_or_default()
    }

    /// Reads what was copied.
    pub async fn copied(&self) -> String {
        let permissions = json!({ "permissions": ["clipboardReadWrite"] });
        self.browser.devtools("Browser.grantPermissions", permissions).await;
        let read = "navigator.clipboard.readText().then(arguments[0], () => arguments[0](null))";
        let text = self.browser.client.execute_async(read, Vec::new()).await.expect("the clipboard");
        text.as_str().expect("a text").to_owned()
    }

    /// Acts on what has this name, as soon as it is there. A page that is drawn again meanwhile is looked at again.
    async fn on<T>(
        &self,
        kind: &str,
        part: &str,
        name: &str,
        act: impl AsyncFn(Element) -> Result<T, fantoccini::error::CmdError>,
    ) -> T {
        let (mut done, mut trouble) = (None, String::new());
        let is_done = wait_until(SOON, async || {
            match self.find(kind, part, name).await {
                Ok(element) => match act(element).await {
                    Ok(value) => done = Some(value),
                    Err(error) => trouble = format!("\"{name}\": {error}"),
                },
                Err(why) => trouble = why,
            }
            done.is_some()
        });
        assert!(is_done.await, "{trouble}");
        done.expect("it was done")
    }

    async fn find(&self, kind: &str, part: &str, name: &str) -> Result<Element, String> {
        let client = &self.browser.client;
        let found = client.execute(FIND, vec![json!(kind), json!(name), json!(part)]).await;
        match found.map_err(|error| error.to_string())? {
            Value::String(why) => Err(why),
            found => {
                let id = found[ELEMENT].as_str().ok_or("there is no page")?;
                Ok(Element::from_element_id(client.clone(), id.to_owned().into()))
            }
        }
    }
}

impl Drop for Walk<'_> {
    /// Names the task that an assertion ends.
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("in the task “{}”, after {} clicks", self.task, self.clicks);
        }
    }
}
