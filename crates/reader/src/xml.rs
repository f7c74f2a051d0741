//! XML as office documents have it: elements by their local names, texts with their entities resolved, and none that a document defines itself.

use quick_xml::events::{BytesStart, Event};
use quick_xml::reader::Reader;

use crate::{Result, damaged};

/// A step through a document.
#[derive(Debug)]
pub(crate) enum Step {
    Begin(Element),
    /// The local name of what ends.
    End(String),
    Text(String),
}

/// An element that begins.
#[derive(Debug)]
pub(crate) struct Element {
    pub name: String,
    attributes: Vec<(String, String)>,
}

impl Element {
    /// An attribute, by its local name.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.all(name).next()
    }

    /// All attributes of this local name: two may differ by what stands before it.
    pub fn all(&self, name: &str) -> impl Iterator<Item = &str> {
        self.attributes.iter().filter(move |(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

/// Elements inside each other. A document needs a few dozen.
const DEEPEST: usize = 500;
/// Attributes of an element. A document needs a dozen.
const MOST_ATTRIBUTES: usize = 200;

/// Goes through a document. An element without content begins and ends.
pub(crate) fn walk(bytes: &[u8], mut step: impl FnMut(Step) -> Result<()>) -> Result<()> {
    let mut reader = Reader::from_reader(bytes);
    reader.config_mut().expand_empty_elements = true;
    let mut depth = 0_usize;
    loop {
        match reader.read_event() {
            Err(_) => return Err(damaged("XML that is not well formed")),
            Ok(Event::Eof) => return Ok(()),
            Ok(Event::Start(start)) => {
                depth += 1;
                if depth > DEEPEST {
                    return Err(damaged("elements inside each other, hundreds deep"));
                }
                step(Step::Begin(element(&start)))?;
            }
            Ok(Event::End(end)) => {
                depth = depth.saturating_sub(1);
                step(Step::End(local(end.name().as_ref())))?;
            }
            Ok(Event::Text(text)) => step(Step::Text(String::from_utf8_lossy(&text).into_owned()))?,
            Ok(Event::CData(text)) => step(Step::Text(String::from_utf8_lossy(&text).into_owned()))?,
            // Five are everybody's, and numbers are characters. Any other is the document's own: it is not expanded.
            Ok(Event::GeneralRef(reference)) => {
                let name = String::from_utf8_lossy(&reference).into_owned();
                if let Some(c) = entity(&name) {
                    step(Step::Text(c.to_string()))?;
                }
            }
            Ok(_) => {}
        }
    }
}

fn element(start: &BytesStart<'_>) -> Element {
    // Nobody needs to know whether two have the same name, which would be compared with each other.
    let mut attributes = start.attributes();
    let attributes = attributes.with_checks(false).flatten().take(MOST_ATTRIBUTES).map(|attribute| {
        let value = String::from_utf8_lossy(&attribute.value).into_owned();
        (local(attribute.key.as_ref()), unescaped(&value))
    });
    Element { name: local(start.name().as_ref()), attributes: attributes.collect() }
}

fn local(name: &[u8]) -> String {
    let local = name.rsplit(|byte| *byte == b':').next().unwrap_or(name);
    String::from_utf8_lossy(local).into_owned()
}

fn entity(name: &str) -> Option<char> {
    match name {
        "amp" => Some('&'),
        "lt" => Some('<'),
        "gt" => Some('>'),
        "quot" => Some('"'),
        "apos" => Some('\''),
        _ => {
            let number = name.strip_prefix('#')?;
            let number = match number.strip_prefix(['x', 'X']) {
                Some(hex) => u32::from_str_radix(hex, 16).ok()?,
                None => number.parse().ok()?,
            };
            char::from_u32(number)
        }
    }
}

fn unescaped(value: &str) -> String {
    let mut parts = value.split('&');
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        match part.split_once(';').and_then(|(name, rest)| Some((entity(name)?, rest))) {
            Some((c, rest)) => {
                text.push(c);
                text.push_str(rest);
            }
            None => {
                text.push('&');
                text.push_str(part);
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(xml: &str) -> Result<String> {
        let mut told = String::new();
        walk(xml.as_bytes(), |step| {
            match step {
                Step::Begin(element) => told.push_str(&format!("<{} {:?}>", element.name, element.get("val"))),
                Step::End(name) => told.push_str(&format!("</{name}>")),
                Step::Text(text) => told.push_str(&text),
            }
            Ok(())
        })?;
        Ok(told)
    }

    #[test]
    fn names_are_local_and_only_everybodys_entities_are_resolved() {
        let xml = r#"<!DOCTYPE x [<!ENTITY lol "lollol">]><w:p w:val="a &amp; b"><w:t/>1 &lt; 2 &#233;&lol;</w:p>"#;
        assert_eq!(told(xml).expect("XML"), "<p Some(\"a & b\")><t None></t>1 < 2 é</p>");
        assert!(told("<a><b></a>").is_err());
        assert!(told(&"<a>".repeat(DEEPEST + 1)).is_err());
    }
}
