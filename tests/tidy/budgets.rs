//! How much code each room may have: `tests/budgets.toml` has a line for each; growth beyond it by
//! more than a twentieth fails until the line is raised, with the reason next to it.

use std::collections::BTreeMap;

use crate::rooms::{is_test, module_of, room};
use crate::source::{Source, code, line_of};

/// The lines of code of every room: without blanks, comments and tests.
pub(crate) fn lines_of_rooms(sources: &[Source]) -> BTreeMap<String, usize> {
    let mut lines = BTreeMap::new();
    for source in sources {
        if let Some(room) = counted_in(&source.path) {
            *lines.entry(room).or_default() += lines_of_code(&source.text);
        }
    }
    lines
}

/// What is wrong with the budgets.
pub(crate) fn overdrawn(
    budgets: &BTreeMap<String, usize>,
    lines: &BTreeMap<String, usize>,
) -> Vec<String> {
    let mut findings = Vec::new();
    for (room, count) in lines {
        match budgets.get(room) {
            None => findings.push(format!("{room}: {count} lines, and no budget")),
            Some(budget) if *count > budget + budget / 20 => {
                findings.push(format!("{room}: {count} lines, and a budget of {budget}"));
            }
            Some(_) => {}
        }
    }
    let gone = budgets.keys().filter(|room| !lines.contains_key(*room));
    findings.extend(gone.map(|room| format!("{room}: a budget, and no room")));
    findings
}

/// The room in which a file counts; none if it is a test, or in no room.
fn counted_in(path: &str) -> Option<String> {
    if !path.ends_with(".rs") || is_test(path) {
        return None;
    }
    if let Some(module) = module_of(path) {
        return room(&module);
    }
    let mut names = path.split('/');
    match (names.next()?, names.next()?, names.next()) {
        ("crates", name, Some("src")) => Some(format!("crates/{name}")),
        ("loadtest", "src", _) => Some("loadtest".into()),
        _ => None,
    }
}

fn lines_of_code(text: &str) -> usize {
    let code = code(text);
    let tests = code.find("#[cfg(test)]\nmod tests {");
    let tests = tests.map_or(usize::MAX, |at| line_of(&code, at) - 1);
    let lines = text.lines().take(tests).map(str::trim);
    lines.filter(|line| !line.is_empty() && !line.starts_with("//")).count()
}

#[test]
fn a_room_that_grows_and_one_without_a_budget_are_found() {
    let sample = |path: &str, lines: usize| Source::sample(path, &"f();\n".repeat(lines));
    let mut text = sample("src/features/a/b.rs", 100);
    text.text += "\n// a comment\n    /// another\n#[cfg(test)]\nmod tests {\n    f();\n}\n";
    let sources = [
        text,
        sample("src/features/a/c.rs", 5),
        sample("src/features/a/tests.rs", 500),
        sample("src/routes.rs", 10),
        sample("crates/ledger/src/tests/a.rs", 9),
        sample("crates/ledger/src/a.rs", 1),
        sample("tests/it/a.rs", 10),
    ];
    let lines = lines_of_rooms(&sources);
    let counted: Vec<_> = lines.iter().map(|(room, lines)| (room.as_str(), *lines)).collect();
    assert_eq!(counted, [("crates/ledger", 1), ("features/a", 105), ("routes", 10)]);
    let budgets = |a, other: &str| -> BTreeMap<String, usize> {
        [("crates/ledger", 1), ("features/a", a), (other, 10)].map(|(r, n)| (r.into(), n)).into()
    };
    assert_eq!(overdrawn(&budgets(100, "routes"), &lines), Vec::<String>::new());
    assert_eq!(overdrawn(&budgets(99, "routes"), &lines).len(), 1);
    assert_eq!(overdrawn(&budgets(100, "gone"), &lines).len(), 2);
}
