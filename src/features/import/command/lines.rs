//! The report of an import for people.

use crate::features::import::{Problem, Report};
use crate::terminal::words;

/// The report.
pub(super) fn report(report: &Report) -> Vec<String> {
    let Report { rows, skipped, numbers, counters_total, problems_total, .. } = report;
    let mut lines = vec![format!(
        "rows {rows}, skipped {skipped}, numbers {numbers}, counters {counters_total}, problems \
         {problems_total}"
    )];
    if !report.counters.is_empty() {
        let header =
            ["series", "serial", "key", "here", "first", "last", "numbers", "missing", "holes"];
        let mut table = words::table(header);
        for counter in &report.counters {
            let hole = |span: &crate::ledger::Span| match span.last - span.first {
                0 => span.first.to_string(),
                _ => format!("{}-{}", span.first, span.last),
            };
            table.add_row([
                counter.series.clone(),
                counter.serial.clone(),
                counter.counter_key.clone(),
                counter.stands_at.map_or_else(|| "new".to_owned(), |at| at.to_string()),
                counter.first.to_string(),
                counter.last.to_string(),
                counter.numbers.to_string(),
                counter.missing.to_string(),
                counter.holes.iter().map(hole).collect::<Vec<_>>().join(" "),
            ]);
        }
        lines.push(table.to_string());
    }
    lines.extend(more(*counters_total, report.counters.len(), "counters"));
    lines.extend(report.problems.iter().map(problem));
    lines.extend(more(*problems_total, report.problems.len(), "problems"));
    if report.into_closed > 0 {
        let closed = report.into_closed;
        lines.push(format!("{closed} of the numbers are dated in periods that are closed"));
    }
    if report.assigned > 0 {
        let assigned = report.assigned;
        lines.push(format!(
            "{assigned} numbers of ranges had documents, which are not imported: assign them again"
        ));
    }
    if report.applied {
        lines.push("imported".into());
    } else if *problems_total == 0 {
        lines.push("nothing is written yet; do it with --apply".into());
    }
    lines
}

/// One problem, on one line: text from a file never begins a line of a report.
pub(super) fn problem(problem: &Problem) -> String {
    let Problem { place, number, kind, detail } = problem;
    let number = number.as_ref().map_or(String::new(), |number| format!(" {number}:"));
    let line = format!("{place}:{number} {}: {detail}", kind.word());
    line.replace('\n', "\\n").replace('\t', "\\t")
}

/// The number of unlisted entries.
fn more(total: u64, listed: usize, what: &str) -> Option<String> {
    let rest = total.saturating_sub(listed as u64);
    (rest > 0).then(|| format!("and {rest} {what} more"))
}
