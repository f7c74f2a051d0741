//! A plain PDF with stored text, made by hand.

/// Makes a PDF with a page for each text, a line of the page for each of its lines. The texts are Latin-1, with the sign of the euro.
pub fn pdf(pages: &[&str]) -> Vec<u8> {
    let mut objects = vec![
        "<< /Type /Catalog /Pages 2 0 R >>".to_owned(),
        String::new(), // the tree of pages, once their numbers are known
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>".to_owned(),
    ];
    let mut kids = Vec::new();
    for page in pages {
        let lines = page.lines().map(|line| format!("({}) Tj T*\n", line.chars().map(escaped).collect::<String>()));
        let content = format!("BT /F1 11 Tf 14 TL 60 780 Td\n{}ET", lines.collect::<String>());
        objects.push(format!("<< /Length {} >>\nstream\n{content}\nendstream", content.len()));
        objects.push(format!(
            "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Resources << /Font << /F1 3 0 R >> >> /Contents {} 0 R >>",
            objects.len()
        ));
        kids.push(format!("{} 0 R", objects.len()));
    }
    objects[1] = format!("<< /Type /Pages /Kids [{}] /Count {} >>", kids.join(" "), kids.len());
    let mut file = "%PDF-1.4\n".to_owned();
    let mut places = Vec::new();
    for (nth, object) in objects.iter().enumerate() {
        places.push(file.len());
        file.push_str(&format!("{} 0 obj\n{object}\nendobj\n", nth + 1));
    }
    let table = file.len();
    file.push_str(&format!("xref\n0 {}\n0000000000 65535 f \n", objects.len() + 1));
    for place in &places {
        file.push_str(&format!("{place:010} 00000 n \n"));
    }
    file.push_str(&format!("trailer\n<< /Size {} /Root 1 0 R >>\nstartxref\n{table}\n%%EOF\n", objects.len() + 1));
    file.into_bytes()
}

/// A character as WinAnsiEncoding has it.
fn escaped(c: char) -> String {
    match c {
        '\\' | '(' | ')' => format!("\\{c}"),
        '€' => "\\200".into(),
        ' '..='~' => c.into(),
        c => format!("\\{:03o}", u8::try_from(c).unwrap_or(b'?')),
    }
}
