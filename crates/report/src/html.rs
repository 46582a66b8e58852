//! The parts of a page that need no script: head, text, tables, and a place for each plot.

use crate::page::{Page, Section, Text, Tone};
use crate::table::{Emphasis, Kind, Table};
use std::fmt::{self, Display, Write as _};

/// Text in which nothing is markup, in elements and in attributes.
pub(crate) fn escaped(text: &str) -> String {
    Escaped(text).to_string()
}

/// The body of a page: the head, then its sections.
pub(crate) fn content(page: &Page<'_>) -> String {
    let mut html = String::new();
    write_content(&mut html, page).expect("writing into a string cannot fail");
    html
}

struct Escaped<'a>(&'a str);

impl Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for character in self.0.chars() {
            match character {
                '&' => f.write_str("&amp;")?,
                '<' => f.write_str("&lt;")?,
                '>' => f.write_str("&gt;")?,
                '"' => f.write_str("&quot;")?,
                '\'' => f.write_str("&#39;")?,
                character => f.write_char(character)?,
            }
        }
        Ok(())
    }
}

fn write_content(html: &mut String, page: &Page<'_>) -> fmt::Result {
    writeln!(html, "<header>\n<h1>{}</h1>", Escaped(&page.title))?;
    if !page.command.is_empty() {
        writeln!(html, "<p class=\"command\"><code>{}</code></p>", Escaped(&page.command))?;
    }
    if !page.version.is_empty() {
        writeln!(html, "<p class=\"version\">{}</p>", Escaped(&page.version))?;
    }
    writeln!(html, "</header>")?;
    let mut plots = 0;
    for section in &page.sections {
        match section {
            Section::Text(text) => write_text(html, text)?,
            Section::Table(table) => write_table(html, table)?,
            Section::Lines(lines) => write_place(html, &lines.title, &mut plots)?,
            Section::TimeSequence(graph) => write_place(html, &graph.title, &mut plots)?,
        }
    }
    Ok(())
}

fn write_text(html: &mut String, text: &Text) -> fmt::Result {
    let (class, role) = match text.tone {
        Tone::Note => ("note", "note"),
        Tone::Advice => ("advice", "note"),
        Tone::Warning => ("warning", "alert"),
    };
    writeln!(html, "<section class=\"text {class}\" role=\"{role}\">")?;
    if !text.title.is_empty() {
        writeln!(html, "<h2>{}</h2>", Escaped(&text.title))?;
    }
    for paragraph in &text.paragraphs {
        writeln!(html, "<p>{}</p>", Escaped(paragraph))?;
    }
    writeln!(html, "</section>")
}

fn write_table(html: &mut String, table: &Table) -> fmt::Result {
    writeln!(html, "<section class=\"table\">\n<h2>{}</h2>", Escaped(&table.caption))?;
    // Reachable with the keyboard, because it may scroll.
    write!(html, "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"")?;
    writeln!(html, "{}\">\n<table>\n<thead><tr>", Escaped(&table.caption))?;
    for column in &table.columns {
        let class = alignment(column.kind);
        write!(html, "<th scope=\"col\" class=\"{class}\"")?;
        if !column.explanation.is_empty() {
            write!(html, " title=\"{}\"", Escaped(&column.explanation))?;
        }
        write!(html, ">{}", Escaped(&column.name))?;
        if !column.unit.is_empty() {
            write!(html, "<span class=\"unit\">{}</span>", Escaped(&column.unit))?;
        }
        writeln!(html, "</th>")?;
    }
    writeln!(html, "</tr></thead>")?;
    let emphasis = table.emphasis();
    let mut start = 0;
    for group in table.rows.chunk_by(|a, b| a.group == b.group) {
        writeln!(html, "<tbody>")?;
        for (row, emphasis) in group.iter().zip(&emphasis[start..]) {
            write!(html, "<tr>")?;
            for (index, column) in table.columns.iter().enumerate() {
                let text = row.cells.get(index).map_or("", |cell| cell.text.as_str());
                let shown = emphasis.get(index).copied().unwrap_or_default();
                write_cell(html, text, column.kind, shown)?;
            }
            writeln!(html, "</tr>")?;
        }
        writeln!(html, "</tbody>")?;
        start += group.len();
    }
    writeln!(html, "</table>\n</div>")?;
    write_explanations(html, table)?;
    writeln!(html, "</section>")
}

fn write_cell(html: &mut String, text: &str, kind: Kind, emphasis: Emphasis) -> fmt::Result {
    let (element, scope) = match kind {
        Kind::Name => ("th", " scope=\"row\""),
        Kind::Value | Kind::HighestIsBest | Kind::LowestIsBest => ("td", ""),
    };
    let shown = match emphasis {
        Emphasis::None => "",
        Emphasis::Best => " best",
        Emphasis::Warning => " warning",
        Emphasis::Muted => " muted",
    };
    let class = alignment(kind);
    write!(html, "<{element}{scope} class=\"{class}{shown}\">{}</{element}>", Escaped(text))
}

/// What hovering over a column's head says, for those who cannot hover.
fn write_explanations(html: &mut String, table: &Table) -> fmt::Result {
    let mut explained = table.columns.iter().filter(|column| !column.explanation.is_empty());
    let mut next = explained.next();
    if next.is_none() {
        return Ok(());
    }
    writeln!(html, "<details><summary>What the columns mean</summary>\n<dl>")?;
    while let Some(column) = next {
        let (name, explanation) = (Escaped(&column.name), Escaped(&column.explanation));
        writeln!(html, "<dt>{name}</dt><dd>{explanation}</dd>")?;
        next = explained.next();
    }
    writeln!(html, "</dl></details>")
}

fn alignment(kind: Kind) -> &'static str {
    match kind {
        Kind::Name => "name",
        Kind::Value | Kind::HighestIsBest | Kind::LowestIsBest => "value",
    }
}

/// Where the script draws plot number `plots`.
fn write_place(html: &mut String, title: &str, plots: &mut usize) -> fmt::Result {
    writeln!(html, "<section class=\"plot\" data-plot=\"{plots}\">")?;
    writeln!(html, "<h2>{}</h2>", Escaped(title))?;
    writeln!(html, "<noscript><p>This plot needs JavaScript.</p></noscript>\n</section>")?;
    *plots += 1;
    Ok(())
}
