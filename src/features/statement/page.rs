//! The paper as a page for the printer: one file of HTML, without scripts and without anything that
//! is fetched. Everything from the ledger is escaped.

use std::fmt::Write as _;

use numbering::escaped;

use super::messages::{
    COUNT, COUNTED, DATE, EVIDENCE, EXPLANATION, NUMBERS, SEAL, SIGNATURES, TITLE, WHAT,
};
use super::paper::{RunStatement, Statement, Verdict};
use super::text::Fact;
use crate::language::Locale;

/// Its style, on a screen and on paper.
const STYLE: &str = "\
body{font:11pt/1.45 'Noto Sans','Noto Sans Thai','Noto Sans CJK SC',sans-serif;color:#000;\
background:#fff;max-width:60em;margin:2em auto;padding:0 1em}\
h1{font-size:1.5em}h2{font-size:1.15em;border-bottom:1px solid #000;margin-top:1.6em}\
dl{display:grid;grid-template-columns:max-content 1fr;gap:.15em 1.2em}dt{font-weight:bold}\
dd{margin:0;overflow-wrap:anywhere}\
table{border-collapse:collapse;width:100%;margin:.6em 0}\
th,td{border:1px solid #888;padding:.25em .5em;text-align:left;vertical-align:top;\
overflow-wrap:anywhere}\
td.count{text-align:right;white-space:nowrap;font-variant-numeric:tabular-nums}\
tr.sum td{font-weight:bold;border-top:2px solid #000}\
.signatures{margin-top:2em;table-layout:fixed}\
.not-complete{border:2px solid #000;padding:.5em;font-weight:bold}\
@media print{@page{margin:18mm}body{margin:0;max-width:none;font-size:9.5pt}\
h2{break-after:avoid}tr{break-inside:avoid}thead{display:table-header-group}}";

impl Statement {
    /// The paper as a page.
    #[must_use]
    pub fn page(&self) -> String {
        let language = self.language;
        let title = language.choose(TITLE);
        let mut page = format!(
            "<!DOCTYPE html>\n<html lang=\"{}\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width\">\n\
             <title>{title}: {} {}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n\
             <h1>{title}</h1>\n",
            language.tag(),
            safe(&self.series),
            safe(&self.period),
        );
        let mut head = self.head();
        let result = head.pop();
        facts(&mut page, &head);
        if let Some((name, sentence)) = result {
            let class = if self.verdict == Verdict::NotComplete { "not-complete" } else { "whole" };
            let _ = writeln!(page, "<p class=\"{class}\">{name}: {}</p>", safe(&sentence));
        }
        for run in &self.runs {
            run.push_section(&mut page, language);
        }
        let _ = writeln!(page, "<h2>{}</h2>", language.choose(SEAL));
        paragraphs(&mut page, &self.seal.sentences);
        facts(&mut page, &self.seal_facts());
        page.push_str("<table class=\"signatures\"><tr>");
        for signature in SIGNATURES {
            let (name, date) = (language.choose(signature), language.choose(DATE));
            let _ = write!(page, "<td>{name}<br><br><br>{date}</td>");
        }
        page.push_str("</tr></table>\n");
        page.push_str("</body>\n</html>\n");
        page
    }
}

impl RunStatement {
    fn push_section(&self, page: &mut String, language: Locale) {
        let heading = language.choose(COUNTED);
        let _ = writeln!(page, "<section>\n<h2>{heading}: {}</h2>", safe(&self.label));
        facts(page, &self.head(language));
        page.push_str("<table>\n");
        let rows = self.arithmetic(language);
        for (index, (count, what)) in rows.iter().enumerate() {
            let class = if index + 1 == rows.len() { " class=\"sum\"" } else { "" };
            let _ = writeln!(
                page,
                "<tr{class}><td class=\"count\">{}</td><td>{}</td></tr>",
                safe(count),
                safe(what)
            );
        }
        page.push_str("</table>\n");
        if !self.entries.is_empty() {
            page.push_str("<table>\n<thead><tr>");
            for name in [NUMBERS, COUNT, WHAT, EXPLANATION, EVIDENCE] {
                let _ = write!(page, "<th>{}</th>", language.choose(name));
            }
            page.push_str("</tr></thead>\n<tbody>\n");
            for entry in &self.entries {
                page.push_str("<tr>");
                for (index, cell) in entry.cells().iter().enumerate() {
                    let class = if index == 1 { " class=\"count\"" } else { "" };
                    let _ = write!(page, "<td{class}>{}</td>", safe(cell));
                }
                page.push_str("</tr>\n");
            }
            page.push_str("</tbody>\n</table>\n");
        }
        paragraphs(page, &self.notes);
        page.push_str("</section>\n");
    }
}

fn facts(page: &mut String, facts: &[Fact]) {
    if facts.is_empty() {
        return;
    }
    page.push_str("<dl>\n");
    for (name, value) in facts {
        let _ = writeln!(page, "<dt>{name}</dt><dd>{}</dd>", safe(value));
    }
    page.push_str("</dl>\n");
}

fn paragraphs(page: &mut String, sentences: &[String]) {
    for sentence in sentences {
        let _ = writeln!(page, "<p>{}</p>", safe(sentence));
    }
}

/// A text in which no character is markup, and none changes how others are shown.
fn safe(text: &str) -> String {
    let text = escaped(text);
    let mut shown = String::with_capacity(text.len() + 8);
    for character in text.chars() {
        match character {
            '&' => shown.push_str("&amp;"),
            '<' => shown.push_str("&lt;"),
            '>' => shown.push_str("&gt;"),
            '"' => shown.push_str("&quot;"),
            '\'' => shown.push_str("&#39;"),
            _ => shown.push(character),
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_is_markup() {
        assert_eq!(safe("<b a='\"'>&\u{202e}"), "&lt;b a=&#39;&quot;&#39;&gt;&amp;\\u{202e}");
    }

    #[test]
    fn the_page_fetches_nothing_and_runs_nothing() {
        for word in ["url(", "@import", "<script", "http"] {
            assert!(!STYLE.contains(word), "{word}");
        }
        assert!(STYLE.contains("@media print"));
    }
}
