//! Paragraph styles of Word: which are headings, items of lists, or begin a page. A style has what the style has on which it is based.

use std::collections::HashMap;

use crate::Result;
use crate::xml::{Element, Step, walk};

/// Styles based on each other.
const LONGEST_CHAIN: usize = 20;

/// The part of a style that a page shows.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Style {
    /// The level of a heading.
    pub level: Option<usize>,
    pub is_item: Option<bool>,
    pub begins_page: Option<bool>,
}

impl Style {
    /// This style, and the other where this one says nothing.
    pub fn or(self, other: Self) -> Self {
        Self {
            level: self.level.or(other.level),
            is_item: self.is_item.or(other.is_item),
            begins_page: self.begins_page.or(other.begins_page),
        }
    }

    /// Takes what a property of a paragraph or of a style says.
    pub fn take(&mut self, property: &Element) {
        let value = property.get("val");
        match property.name.as_str() {
            // Number 9 is text of the body.
            "outlineLvl" => {
                self.level = value.and_then(|level| level.parse::<usize>().ok()).filter(|n| *n < 9).map(|n| n + 1);
            }
            "numPr" => self.is_item = self.is_item.or(Some(true)),
            "numId" => self.is_item = Some(value != Some("0")),
            "pageBreakBefore" => self.begins_page = Some(!matches!(value, Some("0" | "false" | "off"))),
            _ => {}
        }
    }
}

/// The styles by their ids. Ids are in the language of whoever wrote the document, names are not.
pub(super) fn read(styles: &[u8]) -> Result<HashMap<String, Style>> {
    let mut found: HashMap<String, (Style, Option<String>)> = HashMap::new();
    let mut id: Option<String> = None;
    walk(styles, |step| {
        let Step::Begin(element) = step else { return Ok(()) };
        if element.name == "style" {
            id = element.get("styleId").map(str::to_owned);
        }
        let Some(id) = &id else { return Ok(()) };
        let (style, based_on) = found.entry(id.clone()).or_default();
        match element.name.as_str() {
            "name" => {
                let name = element.get("val").unwrap_or_default().to_ascii_lowercase();
                style.level = match name.as_str() {
                    "title" => Some(1),
                    name => name.strip_prefix("heading ").and_then(|level| level.parse().ok()),
                };
            }
            "basedOn" => *based_on = element.get("val").map(str::to_owned),
            _ => style.take(&element),
        }
        Ok(())
    })?;
    let whole = |id: &String| {
        let (mut style, mut at) = (Style::default(), Some(id));
        for _ in 0..LONGEST_CHAIN {
            let Some((own, based_on)) = at.and_then(|id| found.get(id)) else { break };
            style = style.or(*own);
            at = based_on.as_ref();
        }
        style
    };
    Ok(found.keys().map(|id| (id.clone(), whole(id))).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_style_has_what_it_is_based_on() {
        let styles = r#"<w:styles>
            <w:style w:styleId="berschrift1"><w:name w:val="heading 1"/><w:pPr><w:pageBreakBefore/></w:pPr></w:style>
            <w:style w:styleId="Eigene"><w:name w:val="Own"/><w:basedOn w:val="berschrift1"/><w:pPr><w:pageBreakBefore w:val="0"/></w:pPr></w:style>
            <w:style w:styleId="Liste"><w:name w:val="List Bullet"/><w:pPr><w:numPr><w:numId w:val="3"/></w:numPr></w:pPr></w:style>
            <w:style w:styleId="Loop"><w:name w:val="x"/><w:basedOn w:val="Loop"/><w:pPr><w:outlineLvl w:val="2"/></w:pPr></w:style>
            </w:styles>"#;
        let styles = read(styles.as_bytes()).expect("styles");
        for (id, level, is_item, begins_page) in [
            ("berschrift1", Some(1), None, Some(true)),
            ("Eigene", Some(1), None, Some(false)),
            ("Liste", None, Some(true), None),
            ("Loop", Some(3), None, None),
        ] {
            assert_eq!(styles[id], Style { level, is_item, begins_page }, "{id}");
        }
    }
}
