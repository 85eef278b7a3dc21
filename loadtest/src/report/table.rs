//! The figures as a Markdown table, in columns that line up.

use super::{Goal, Row};

const HEADS: [&str; 6] = ["what", "measured", "ratio", "reach", "", "note"];

/// The table of some rows.
pub(crate) fn table<'a>(rows: impl IntoIterator<Item = &'a Row>) -> String {
    let cells: Vec<[String; 6]> = rows.into_iter().map(cells).collect();
    let width = |column: usize| {
        let texts = cells.iter().map(|row| row[column].chars().count());
        texts.chain([HEADS[column].len()]).max().unwrap_or_default()
    };
    let widths: Vec<usize> = (0..HEADS.len()).map(width).collect();
    let line = |texts: &[String]| {
        let cell = |(text, width): (&String, &usize)| format!(" {text:<width$} |");
        format!("|{}\n", texts.iter().zip(&widths).map(cell).collect::<String>())
    };
    let rule: String = widths.iter().map(|width| format!("{}|", "-".repeat(width + 2))).collect();
    let heads = HEADS.map(str::to_owned);
    let body: String = cells.iter().map(|row| line(row)).collect();
    format!("{}|{rule}\n{body}", line(&heads))
}

/// The texts of a row, in the order of the columns.
pub(super) fn cells(row: &Row) -> [String; 6] {
    let measured = format!("{} {}", figure(row.value), row.unit);
    let goal = row.goal.map(|goal| {
        let (sign, bound) = match goal {
            Goal::AtLeast(least) => ("≥", least),
            Goal::AtMost(most) => ("≤", most),
        };
        let unit = if row.ratio.is_some() { "×" } else { row.unit };
        format!("{sign} {} {unit}", figure(bound))
    });
    let verdict = row.is_met().map(|is_met| if is_met { "met" } else { "not met" });
    let ratio = row.ratio.map(|(quotient, to)| format!("{} × {to}", figure(quotient)));
    [
        row.what.clone(),
        measured.trim_end().to_owned(),
        ratio.unwrap_or_default(),
        goal.unwrap_or_default(),
        verdict.unwrap_or_default().to_owned(),
        row.note.clone(),
    ]
}

/// Three significant digits, thousands separated.
pub(crate) fn figure(value: f64) -> String {
    let digits = match value.abs() {
        size if size >= 100.0 => 0,
        size if size >= 10.0 => 1,
        size if size >= 0.1 || size == 0.0 => 2,
        _ => 3,
    };
    let text = format!("{value:.digits$}");
    let (whole, rest) = text.find('.').map_or((text.as_str(), ""), |dot| text.split_at(dot));
    let mut parted = String::new();
    for (index, digit) in whole.chars().enumerate() {
        if index > 0 && (whole.len() - index).is_multiple_of(3) && parted != "-" {
            parted.push(',');
        }
        parted.push(digit);
    }
    let rest = rest.trim_end_matches('0').trim_end_matches('.');
    parted + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_have_three_digits_and_parted_thousands() {
        let shown = [
            (0.0, "0"),
            (0.042, "0.042"),
            (0.5, "0.5"),
            (12.34, "12.3"),
            (999.6, "1,000"),
            (1_234_567.0, "1,234,567"),
            (-1_234.0, "-1,234"),
        ];
        for (value, text) in shown {
            assert_eq!(figure(value), text);
        }
    }

    #[test]
    fn a_row_is_judged_by_its_ratio_where_it_has_one() {
        let row = Row::new("rate", 60_000.0, "/s").per(0.6, "echo").goal(Goal::AtLeast(0.5));
        assert_eq!(row.is_met(), Some(true));
        let text = table([&row]);
        let cells = "| rate | 60,000 /s | 0.6 × echo | ≥ 0.5 × | met |      |";
        assert_eq!(text.lines().nth(2), Some(cells), "{text}");
        let late = Row::new("p99", 6.0, "ms").goal(Goal::AtMost(5.0));
        assert_eq!(late.is_met(), Some(false));
        assert_eq!(Row::new("p99", 6.0, "ms").is_met(), None);
    }
}
