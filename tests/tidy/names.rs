//! Names of types: no two types of a room have the same name. Sees what is declared outside of
//! blocks; types that a macro declares, and those of tests, are not examined.

use std::collections::BTreeMap;

use crate::rooms::{is_test, module_of, room};
use crate::source::{Source, code, is_word, line_of};

/// What declares a type.
const DECLARATIONS: [&str; 5] = ["struct", "enum", "trait", "union", "type"];

/// The engines of the ledger: each gives the statements what the others give them too, under the
/// same names.
const ENGINES: [&str; 2] = ["crates/ledger/src/postgres/", "crates/ledger/src/sqlite/"];

/// Crates that are one room.
const ONE_ROOM: [&str; 2] = ["crates/redis/src", "crates/ledger/src"];

/// Types that share their name with another one of their room.
pub(crate) fn types_of_one_name(sources: &[Source]) -> Vec<String> {
    let mut rooms: BTreeMap<(String, String), Vec<(&str, usize)>> = BTreeMap::new();
    for source in sources {
        let Some(room) = room_of(&source.path) else { continue };
        let code = code(&source.text);
        for (at, name) in declared(&code) {
            let key = (room.clone(), name.to_owned());
            rooms.entry(key).or_default().push((&source.path, line_of(&code, at)));
        }
    }
    let engine = |path: &str| ENGINES.iter().position(|engine| path.starts_with(engine));
    rooms.retain(|_, places| {
        let mut engines: Vec<_> = places.iter().filter_map(|(path, _)| engine(path)).collect();
        engines.dedup();
        places.len() > 1 && engines.len() < places.len()
    });
    let place = |(path, line): &(&str, usize)| format!("{path}:{line}");
    let finding = |((room, name), places): ((String, String), Vec<(&str, usize)>)| {
        let places: Vec<_> = places.iter().map(place).collect();
        format!("{room} calls two types {name}: {}", places.join(", "))
    };
    rooms.into_iter().map(finding).collect()
}

/// The room of a file; in another crate the folder, or the crate for files next to its entrance.
fn room_of(path: &str) -> Option<String> {
    if !path.ends_with(".rs") || is_test(path) {
        return None;
    }
    if let Some(whole) = ONE_ROOM.iter().find(|whole| path.starts_with(*whole)) {
        return Some((*whole).to_owned());
    }
    if let Some(module) = module_of(path) {
        return room(&module).map(|room| format!("src/{room}"));
    }
    let inner = path.find("/src/")? + "/src/".len();
    let end = path[inner..].find('/').map_or(inner - 1, |end| inner + end);
    Some(path[..end].to_owned())
}

/// Types that begin a line, with their places.
fn declared(code: &str) -> impl Iterator<Item = (usize, &str)> {
    let starts = std::iter::once(0).chain(code.match_indices('\n').map(|(at, _)| at + 1));
    starts.filter_map(|at| {
        let line = code[at..].lines().next().unwrap_or_default();
        let public = line.strip_prefix("pub").map(|rest| match rest.strip_prefix('(') {
            Some(inner) => inner.split_once(')').map_or(inner, |(_, rest)| rest),
            None => rest,
        });
        let (keyword, rest) =
            public.map_or(line, |rest| &rest[1.min(rest.len())..]).split_once(' ')?;
        let name = rest.split(|c| !is_word(c)).next().filter(|name| !name.is_empty())?;
        DECLARATIONS.contains(&keyword).then_some((at, name))
    })
}

#[test]
fn two_types_of_one_name_are_found_in_a_room_and_nowhere_else() {
    let found = |files: &[(&str, &str)]| {
        let sources: Vec<_> = files.iter().map(|(path, text)| Source::sample(path, text)).collect();
        types_of_one_name(&sources)
    };
    let (one, two) = ("pub(super) struct Mark {}\n", "//! x\n\npub type Mark = u8;\n");
    let places = ("crates/ledger/src/a.rs", "crates/ledger/src/rows/b.rs");
    assert_eq!(
        found(&[(places.0, one), (places.1, two)]),
        [format!("crates/ledger/src calls two types Mark: {}:1, {}:3", places.0, places.1)]
    );
    assert_eq!(found(&[("src/engine/a.rs", one), ("src/engine/b/c.rs", two)]), [""; 0]);
    assert_eq!(found(&[("src/engine/a.rs", one), ("src/engine/a/c.rs", two)]).len(), 1);
    assert_eq!(found(&[("src/a.rs", one), ("src/a/b.rs", "enum Mark {}")]).len(), 1);
    assert_eq!(
        found(&[("crates/model/src/a.rs", one), ("crates/model/src/b.rs", "trait Mark {}")]).len(),
        1
    );
    let engines = ("crates/ledger/src/postgres/a.rs", "crates/ledger/src/sqlite/a.rs");
    assert_eq!(found(&[(engines.0, one), (engines.1, two)]), [""; 0], "one for each engine");
    assert_eq!(
        found(&[(engines.0, one), (engines.1, two), ("crates/ledger/src/a.rs", two)]).len(),
        1
    );
    assert_eq!(found(&[("src/a.rs", one), ("src/b.rs", two)]), [""; 0], "two rooms");
    let others = "mod tests {\n    struct Mark;\n}\n// struct Mark;\nstruct Marks;\nfn mark() {}";
    assert_eq!(found(&[("src/a.rs", one), ("src/a/b.rs", others)]), [""; 0]);
    assert_eq!(found(&[("src/a.rs", one), ("src/a/tests.rs", two)]), [""; 0], "a test's own");
}
