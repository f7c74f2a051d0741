//! Office documents of Microsoft's format: a zip of XML files that name each other by relations.

pub(crate) mod docx;
pub(crate) mod pptx;
mod shown;
mod styles;
pub(crate) mod xlsx;

use std::collections::HashMap;

use crate::Result;
use crate::sink::Sink;
use crate::unpack::Unpacked;
use crate::xml::{Step, walk};

/// The relations of a part: what each id names, below the archive's root.
fn relations(files: &mut Unpacked<'_>, part: &str, sink: &mut Sink<'_>) -> Result<Vec<Relation>> {
    let (folder, name) = part.rsplit_once('/').unwrap_or(("", part));
    let path = if folder.is_empty() { format!("_rels/{name}.rels") } else { format!("{folder}/_rels/{name}.rels") };
    let Some(bytes) = files.file(&path, sink)? else { return Ok(Vec::new()) };
    let mut relations = Vec::new();
    walk(&bytes, |step| {
        if let Step::Begin(element) = step
            && let (Some(id), Some(target)) = (element.get("Id"), element.get("Target"))
            && element.get("TargetMode") != Some("External")
        {
            let kind = element.get("Type").unwrap_or_default().rsplit('/').next().unwrap_or_default().to_owned();
            relations.push(Relation { id: id.to_owned(), kind, target: below(folder, target) });
        }
        Ok(())
    })?;
    Ok(relations)
}

struct Relation {
    id: String,
    /// The last word of its type: `worksheet`, `notesSlide`.
    kind: String,
    target: String,
}

/// A path from a folder, with `..` resolved.
fn below(folder: &str, target: &str) -> String {
    if let Some(rooted) = target.strip_prefix('/') {
        return rooted.to_owned();
    }
    let mut parts: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
    for part in target.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    parts.join("/")
}

fn by_id(relations: Vec<Relation>) -> HashMap<String, String> {
    relations.into_iter().map(|relation| (relation.id, relation.target)).collect()
}

/// The title in the document's own properties.
fn title(files: &mut Unpacked<'_>, sink: &mut Sink<'_>) -> Result<Option<String>> {
    let Some(bytes) = files.file("docProps/core.xml", sink)? else { return Ok(None) };
    let (mut is_title, mut title) = (false, String::new());
    let walked = walk(&bytes, |step| {
        match step {
            Step::Begin(element) => is_title = element.name == "title",
            Step::End(_) => is_title = false,
            Step::Text(text) if is_title => title.push_str(&text),
            Step::Text(_) => {}
        }
        Ok(())
    });
    // Nobody needs it to read the rest.
    Ok(walked.ok().map(|()| title).filter(|title| !title.trim().is_empty()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_is_below_its_folder_or_the_root() {
        for (folder, target, expected) in [
            ("xl", "worksheets/sheet1.xml", "xl/worksheets/sheet1.xml"),
            ("ppt/slides", "../notesSlides/notesSlide1.xml", "ppt/notesSlides/notesSlide1.xml"),
            ("xl", "/xl/worksheets/sheet1.xml", "xl/worksheets/sheet1.xml"),
            ("word", "../../../etc/passwd", "etc/passwd"),
        ] {
            assert_eq!(below(folder, target), expected);
        }
    }
}
