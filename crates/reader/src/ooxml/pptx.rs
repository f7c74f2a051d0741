//! Presentations: each slide is a page, with its title, its texts, its tables and the notes of the speaker.

use super::{by_id, relations, title};
use crate::sink::Sink;
use crate::unpack::Unpacked;
use crate::xml::{Step, walk};
use crate::{Result, markdown};

const PRESENTATION: &str = "ppt/presentation.xml";

pub(crate) fn read(bytes: &[u8], sink: &mut Sink<'_>) -> Result<()> {
    let mut files = Unpacked::open(bytes)?;
    let title = title(&mut files, sink)?;
    let presentation = files.needed(PRESENTATION, sink)?;
    let parts = by_id(relations(&mut files, PRESENTATION, sink)?);
    let mut slides = Vec::new();
    walk(&presentation, |step| {
        if let Step::Begin(element) = step
            && element.name == "sldId"
        {
            // `id` is a number, and the relation's id has the same local name: it is the one that is a relation.
            let part = element.all("id").find_map(|id| parts.get(id));
            slides.extend(part.cloned());
        }
        Ok(())
    })?;
    sink.head(title, u32::try_from(slides.len()).ok())?;
    for part in slides {
        let slide = Slide::read(&files.needed(&part, sink)?)?;
        let notes = relations(&mut files, &part, sink)?.into_iter().find(|relation| relation.kind == "notesSlide");
        let notes = match notes {
            Some(notes) => files.file(&notes.target, sink)?.map(|bytes| Slide::read(&bytes)).transpose()?,
            None => None,
        };
        let label =
            Some(slide.title.split_whitespace().collect::<Vec<_>>().join(" ")).filter(|label| !label.is_empty());
        let mut text = match &label {
            Some(label) => markdown::heading(2, label),
            None => String::new(),
        };
        text.push_str(&slide.text);
        if let Some(notes) = notes.filter(|notes| !notes.text.trim().is_empty()) {
            text.push('\n');
            text.push_str(&markdown::heading(3, "Notes"));
            text.push_str(&notes.text);
        }
        sink.text(label, &text)?;
    }
    Ok(())
}

#[derive(Default)]
struct Slide {
    title: String,
    text: String,
}

impl Slide {
    fn read(bytes: &[u8]) -> Result<Self> {
        let mut slide = Self::default();
        let (mut paragraph, mut is_text) = (String::new(), false);
        // Of the shape that is open: whether it is the title, or what repeats on every slide.
        let (mut is_title, mut is_passed_over) = (false, false);
        let mut rows: Vec<Vec<String>> = Vec::new();
        let mut cell: Option<String> = None;
        walk(bytes, |step| {
            match step {
                Step::Begin(element) => match element.name.as_str() {
                    "sp" => (is_title, is_passed_over) = (false, false),
                    "ph" => {
                        let kind = element.get("type").unwrap_or_default();
                        is_title = matches!(kind, "title" | "ctrTitle");
                        is_passed_over = matches!(kind, "sldNum" | "dt" | "ftr" | "hdr" | "sldImg");
                    }
                    "t" => is_text = true,
                    "br" => paragraph.push('\n'),
                    "tr" => rows.push(Vec::new()),
                    "tc" => cell = Some(String::new()),
                    _ => {}
                },
                Step::Text(text) if is_text => paragraph.push_str(&text),
                Step::Text(_) => {}
                Step::End(name) => match name.as_str() {
                    "t" => is_text = false,
                    "p" => {
                        let text = std::mem::take(&mut paragraph);
                        if text.trim().is_empty() || is_passed_over {
                        } else if let Some(cell) = &mut cell {
                            cell.push_str(text.trim());
                            cell.push(' ');
                        } else if is_title {
                            slide.title.push_str(text.trim());
                            slide.title.push(' ');
                        } else {
                            slide.text.push_str(text.trim());
                            slide.text.push('\n');
                        }
                    }
                    "tc" => rows.last_mut().into_iter().for_each(|row| row.extend(cell.take())),
                    "tbl" => slide.text.push_str(&format!("\n{}\n", markdown::table(&std::mem::take(&mut rows)))),
                    _ => {}
                },
            }
            Ok(())
        })?;
        Ok(slide)
    }
}
