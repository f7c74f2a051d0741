//! Paragraph styles of OpenDocument: which are headings, and which begin a page. A style has what its parent has.

use std::collections::HashMap;

use crate::xml::{Element, Step};

/// Styles based on each other.
const LONGEST_CHAIN: usize = 20;

/// The part of a style that a page shows.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Style {
    /// The level of a heading that is written as a paragraph, as titles are.
    pub level: Option<usize>,
    pub begins_page: bool,
}

#[derive(Default)]
pub(super) struct Styles {
    by_name: HashMap<String, Named>,
    open: Option<String>,
}

#[derive(Default)]
struct Named {
    parent: Option<String>,
    level: Option<usize>,
    /// It says so itself: parents do not count.
    begins_page: bool,
}

impl Styles {
    /// Takes what an element says of styles.
    pub fn take(&mut self, step: &Step) {
        let Step::Begin(element) = step else { return };
        match element.name.as_str() {
            "style" if element.get("family") == Some("paragraph") => self.begin(element),
            "style" => self.open = None,
            "paragraph-properties" => {
                let named = self.open.as_ref().and_then(|name| self.by_name.get_mut(name));
                if let Some(named) = named.filter(|_| element.get("break-before") == Some("page")) {
                    named.begins_page = true;
                }
            }
            _ => {}
        }
    }

    fn begin(&mut self, element: &Element) {
        let Some(name) = element.get("name") else { return };
        let named = Named {
            parent: element.get("parent-style-name").map(str::to_owned),
            level: level(name),
            // A page of another form begins there.
            begins_page: element.get("master-page-name").is_some_and(|page| !page.is_empty()),
        };
        self.by_name.insert(name.to_owned(), named);
        self.open = Some(name.to_owned());
    }

    pub fn of(&self, name: &str) -> Style {
        let own = self.by_name.get(name);
        let begins_page = own.is_some_and(|own| own.begins_page);
        let (mut at, mut name) = (own, name);
        for _ in 0..LONGEST_CHAIN {
            let level = at.and_then(|named| named.level).or_else(|| level(name));
            let parent = at.and_then(|named| named.parent.as_deref());
            let (None, Some(parent)) = (level, parent) else { return Style { level, begins_page } };
            (at, name) = (self.by_name.get(parent), parent);
        }
        Style { level: None, begins_page }
    }
}

/// The level of a style by its name, which is the same in all languages.
fn level(name: &str) -> Option<usize> {
    match name {
        "Title" => Some(1),
        name => {
            let level = name.strip_prefix("Heading_20_").or_else(|| name.strip_prefix("Heading "))?;
            level.parse().ok().filter(|level| (1..=10).contains(level))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::xml::walk;

    #[test]
    fn a_style_has_the_level_of_its_parents_and_its_own_break() {
        let xml = r#"<s><style:style style:name="P1" style:family="paragraph" style:parent-style-name="Title"/>
            <style:style style:name="P2" style:family="paragraph" style:parent-style-name="P1"><style:paragraph-properties fo:break-before="page"/></style:style>
            <style:style style:name="P3" style:family="paragraph" style:parent-style-name="P2" style:master-page-name=""/>
            <style:style style:name="P4" style:family="paragraph" style:parent-style-name="P4" style:master-page-name="Standard"/>
            <style:style style:name="T1" style:family="text"><style:paragraph-properties fo:break-before="page"/></style:style></s>"#;
        let mut styles = Styles::default();
        let walked = walk(xml.as_bytes(), |step| {
            styles.take(&step);
            Ok(())
        });
        assert!(walked.is_ok());
        for (name, level, begins_page) in [
            ("P1", Some(1), false),
            ("P2", Some(1), true),
            ("P3", Some(1), false),
            ("P4", None, true),
            ("T1", None, false),
            ("Heading_20_2", Some(2), false),
            ("Standard", None, false),
        ] {
            assert_eq!(styles.of(name), Style { level, begins_page }, "{name}");
        }
    }
}
