//! Results as a text with tables and figures: one HTML page without any script, or Markdown.

use crate::figure::{self, Figure, escaped};
use crate::table::{Emphasis, Kind, Table};
use std::fmt::{self, Write as _};

/// A text.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Article {
    /// Title.
    pub title: String,
    /// The command that makes it again.
    pub command: String,
    /// The version of the program that wrote it.
    pub version: String,
    /// Its parts, from top to bottom.
    pub parts: Vec<Part>,
}

/// A part of a text.
#[derive(Clone, Debug, PartialEq)]
pub enum Part {
    /// A heading.
    Heading(String),
    /// A paragraph.
    Paragraph(String),
    /// A list: what is explained, and the explanation.
    List(Vec<(String, String)>),
    /// A table.
    Table(Table),
    /// A figure.
    Figure(Figure),
}

const STYLE: &str = "
:root{color-scheme:light dark;--ink:#1c1e21;--back:#fff;--line:#ccc;--soft:#666;--good:#00694b;
--bad:#b00020}
@media(prefers-color-scheme:dark){:root{--ink:#ddd;--back:#16181c;--line:#444;--soft:#999;
--good:#4fc79a;--bad:#ff7b85}}
body{font:15px/1.5 system-ui,sans-serif;color:var(--ink);background:var(--back);margin:0 auto;
max-width:62rem;padding:1rem 1.2rem 4rem}
h1{font-size:1.5rem;margin:.6rem 0}h2{font-size:1.15rem;margin:2rem 0 .4rem}
p{max-width:46rem}code{font:13px ui-monospace,monospace}.from{color:var(--soft);margin:.1rem 0}
dl{display:grid;grid-template-columns:max-content 1fr;gap:.15rem 1rem;margin:.6rem 0}
dt{color:var(--soft)}dd{margin:0;overflow-wrap:anywhere}
.scroll{overflow-x:auto}table{border-collapse:collapse;font-variant-numeric:tabular-nums}
caption{text-align:left;font-weight:600;padding:.4rem 0}
th,td{padding:.25rem .7rem .25rem 0;text-align:left;vertical-align:top;
border-bottom:1px solid var(--line)}
thead th{color:var(--soft);font-weight:500;border-bottom:2px solid var(--line)}
tbody th{font-weight:500;white-space:nowrap}
.value{text-align:right;white-space:nowrap}.best,.warning,.muted{white-space:nowrap}
.best{color:var(--good);font-weight:600}.warning{color:var(--bad);font-weight:600}
.muted{color:var(--soft)}
figure{margin:1rem 0}figure svg{width:100%;max-width:760px;height:auto}
figcaption{color:var(--soft);max-width:46rem;font-size:.92rem}
@media(max-width:40rem){dl{grid-template-columns:1fr}}
";

/// The text as one HTML page. It needs no network and no script.
pub fn html(article: &Article) -> String {
    let mut text = String::new();
    write_html(&mut text, article).expect("writing into a string cannot fail");
    text
}

/// Its parts in Markdown; a figure is the link to `NAME.svg` beside it.
pub fn markdown(parts: &[Part]) -> String {
    let mut text = String::new();
    for part in parts {
        write_markdown(&mut text, part).expect("writing into a string cannot fail");
    }
    text
}

fn write_html(out: &mut String, article: &Article) -> fmt::Result {
    let title = escaped(&article.title);
    writeln!(out, "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">")?;
    writeln!(out, "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">")?;
    writeln!(out, "<title>{title}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<header>")?;
    writeln!(out, "<h1>{title}</h1>")?;
    writeln!(out, "<p class=\"from\"><code>{}</code></p>", escaped(&article.command))?;
    writeln!(out, "<p class=\"from\">{}</p>\n</header>\n<main>", escaped(&article.version))?;
    for part in &article.parts {
        match part {
            Part::Heading(text) => writeln!(out, "<h2>{}</h2>", escaped(text))?,
            Part::Paragraph(text) => writeln!(out, "<p>{}</p>", escaped(text))?,
            Part::List(entries) => {
                writeln!(out, "<dl>")?;
                for (name, text) in entries {
                    writeln!(out, "<dt>{}</dt><dd>{}</dd>", escaped(name), escaped(text))?;
                }
                writeln!(out, "</dl>")?;
            }
            Part::Table(table) => write_table(out, table)?,
            Part::Figure(figure) => {
                write!(out, "<figure id=\"{}\">\n{}", figure.name, figure::svg(figure))?;
                let caption = escaped(&figure.caption);
                writeln!(out, "<figcaption>{caption}</figcaption>\n</figure>")?;
            }
        }
    }
    writeln!(out, "</main>\n</body>\n</html>")
}

fn write_table(out: &mut String, table: &Table) -> fmt::Result {
    let caption = escaped(&table.caption);
    // Reachable with the keyboard, because it may scroll.
    writeln!(
        out,
        "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"{caption}\">"
    )?;
    writeln!(out, "<table>\n<caption>{caption}</caption>\n<thead><tr>")?;
    for column in &table.columns {
        let class = if column.kind == Kind::Name { "" } else { " class=\"value\"" };
        let unit = if column.unit.is_empty() { "" } else { ", " };
        let (name, unit) = (escaped(&column.name), format!("{unit}{}", escaped(&column.unit)));
        writeln!(out, "<th scope=\"col\"{class}>{name}{unit}</th>")?;
    }
    writeln!(out, "</tr></thead>\n<tbody>")?;
    for (row, shown) in table.rows.iter().zip(table.emphasis()) {
        write!(out, "<tr>")?;
        for (index, column) in table.columns.iter().enumerate() {
            let text = row.cells.get(index).map_or("", |cell| cell.text.as_str());
            let emphasis = match shown.get(index) {
                Some(Emphasis::Best) => " best",
                Some(Emphasis::Warning) => " warning",
                Some(Emphasis::Muted) => " muted",
                _ => "",
            };
            let class = if column.kind == Kind::Name { "name" } else { "value" };
            let (open, close) = if index == 0 { ("th scope=\"row\"", "th") } else { ("td", "td") };
            write!(out, "<{open} class=\"{class}{emphasis}\">{}</{close}>", escaped(text))?;
        }
        writeln!(out, "</tr>")?;
    }
    writeln!(out, "</tbody>\n</table>\n</div>")
}

fn write_markdown(out: &mut String, part: &Part) -> fmt::Result {
    match part {
        Part::Heading(text) => writeln!(out, "## {text}\n"),
        Part::Paragraph(text) => writeln!(out, "{text}\n"),
        Part::List(entries) => {
            for (name, text) in entries {
                writeln!(out, "- *{name}*: {text}")?;
            }
            writeln!(out)
        }
        Part::Figure(figure) => {
            writeln!(out, "![{}]({}.svg)\n\n{}\n", figure.title, figure.name, figure.caption)
        }
        Part::Table(table) => {
            let cell = |text: &str| text.replace('|', "\\|");
            writeln!(out, "{}\n", table.caption)?;
            for column in &table.columns {
                let unit = if column.unit.is_empty() { "" } else { ", " };
                write!(out, "| {}{unit}{} ", cell(&column.name), cell(&column.unit))?;
            }
            writeln!(out, "|")?;
            for column in &table.columns {
                write!(out, "{}", if column.kind == Kind::Name { "|---" } else { "|--:" })?;
            }
            writeln!(out, "|")?;
            for row in &table.rows {
                for index in 0..table.columns.len() {
                    let text = row.cells.get(index).map_or("", |cell| cell.text.as_str());
                    write!(out, "| {} ", cell(text))?;
                }
                writeln!(out, "|")?;
            }
            writeln!(out)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::{Cell, Column, Row};

    fn parts() -> Vec<Part> {
        let columns = vec![Column::name("id"), Column::value("ours", "Mbit/s", Kind::Value)];
        let cells = vec![Cell::text("a|b"), Cell::number(1.5, "1.5")];
        let rows = vec![Row { cells, ..Row::default() }];
        let table = Table { caption: "A <table>".into(), columns, rows };
        vec![
            Part::Heading("Results".into()),
            Part::List(vec![("radio".into(), "2 Mbit/s".into())]),
            Part::Table(table),
        ]
    }

    #[test]
    fn markdown_is_a_list_and_a_table() {
        let expected = "## Results\n\n- *radio*: 2 Mbit/s\n\nA <table>\n\n\
                        | id | ours, Mbit/s |\n|---|--:|\n| a\\|b | 1.5 |\n\n";
        assert_eq!(markdown(&parts()), expected);
    }

    #[test]
    fn html_needs_nothing_from_outside_and_escapes_text() {
        let article = Article { title: "T".into(), parts: parts(), ..Article::default() };
        let text = html(&article);
        assert!(text.contains("A &lt;table&gt;") && !text.contains("<table>\n<caption>A <"));
        for foreign in ["<script", "http:", "https:", "<link", "@import", "url("] {
            assert!(!text.contains(foreign), "{foreign}");
        }
    }
}
