//! The page that shows the figures: text by people, and between marks the latest measurements.

use std::path::Path;

use super::machine::Circumstances;
use super::{Section, table};

/// The marks before and after the part of a page that is rewritten.
fn marks(name: &str) -> (String, String) {
    (format!("<!-- measured: {name} -->"), format!("<!-- end: {name} -->"))
}

/// Writes tables into a page, each with how and when it was measured.
///
/// A section that was not measured this time stays as it is.
///
/// # Errors
/// When a file cannot be written, or the page has no place for a section.
pub(super) fn write(
    page: &Path,
    circumstances: &Circumstances,
    sections: &[Section],
) -> Result<(), String> {
    let page = page.with_extension("md");
    let complain = |error: std::io::Error| format!("{}: {error}", page.display());
    let mut text = std::fs::read_to_string(&page).map_err(complain)?;
    text = replace(&text, "machine", &circumstances.machine)?;
    for section in sections {
        let part = format!("{}\n{}", table(&section.rows), circumstances.occasion);
        text = replace(&text, section.name, &part)?;
    }
    std::fs::write(&page, text).map_err(complain)
}

/// The text with the part between the marks of a name replaced.
fn replace(text: &str, name: &str, part: &str) -> Result<String, String> {
    let (begin, end) = marks(name);
    let split = text.split_once(&begin).and_then(|(before, rest)| {
        let (_, behind) = rest.split_once(&end)?;
        Some((before, behind))
    });
    let (before, behind) = split.ok_or_else(|| format!("the page has no {begin} … {end}"))?;
    Ok(format!("{before}{begin}\n\n{}\n\n{end}{behind}", part.trim_end()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Row;
    use crate::scenarios::SCENARIOS;

    #[test]
    fn only_what_was_measured_is_written_anew() {
        let folder = tempfile::tempdir().expect("temporary folder");
        let page = folder.path().join("speed.md");
        let empty = |name: &str| {
            let (begin, end) = marks(name);
            format!("About {name}.\n\n{begin}\nold {name}\n{end}\n\n")
        };
        let before: String = ["machine", "hot", "calm"].map(empty).concat();
        std::fs::write(&page, before).expect("a page");
        let measured = |name, rate| {
            let rows = vec![Row::new("one hot counter", rate, "/s")];
            Section { name, rows, ..Section::default() }
        };
        let at = |commit: &str| Circumstances {
            machine: "two cores".to_owned(),
            occasion: format!("Measured at {commit}."),
        };
        let into = folder.path().join("speed");
        for _ in 0..2 {
            write(&into, &at("early"), &[measured("hot", 60_000.0)]).expect("written");
        }
        let after = std::fs::read_to_string(&page).expect("a page");
        assert!(after.contains("60,000 /s") && after.contains("two cores"), "{after}");
        assert!(after.contains("old calm") && !after.contains("old hot"), "{after}");
        assert_eq!(after.matches("60,000 /s").count(), 1, "{after}");
        assert_eq!(after.matches("Measured at early.").count(), 1, "{after}");
        write(&into, &at("late"), &[measured("calm", 100.0)]).expect("written");
        let after = std::fs::read_to_string(&page).expect("a page");
        let (hot, calm) = after.split_once("About calm").expect("both sections");
        assert!(hot.contains("Measured at early.") && !hot.contains("late"), "{after}");
        assert!(calm.contains("Measured at late.") && !calm.contains("early"), "{after}");
        assert!(write(&into, &at("late"), &[measured("other", 1.0)]).is_err());
    }

    #[test]
    fn the_page_of_this_project_has_a_place_for_every_scenario() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let page = std::fs::read_to_string(root.join("../docs/performance.md")).expect("the page");
        let others = ["machine", "soak"];
        for name in SCENARIOS.iter().map(|scenario| scenario.name).chain(others) {
            assert!(replace(&page, name, "").is_ok(), "{name} has no place on the page");
        }
    }
}
