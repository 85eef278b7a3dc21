//! What the statements of the ledger do to each table, read from their texts, and what roles.sql
//! grants for it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::ARCHIVERS;

const ROLES: &str = include_str!("../../../deploy/postgres/roles.sql");

/// A table whose rows are locked and never changed, which takes a right to some column.
const LOCKED: &str = "journal";

/// What a role may do to a table in addition to reading it, or needs to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Rights {
    pub(super) insert: bool,
    pub(super) delete: bool,
    /// The columns; none named: all.
    pub(super) update: Option<BTreeSet<String>>,
}

impl Rights {
    /// Reads them as SQL grants them: `insert, update (a, b), delete`.
    pub(super) fn read(text: &str) -> Self {
        let columns = text.split_once("update (").and_then(|(_, rest)| rest.split_once(')'));
        let names = |list: &str| list.split(',').map(|name| name.trim().to_owned()).collect();
        let words = columns
            .map_or_else(|| text.to_owned(), |(list, _)| text.replace(&format!("({list})"), ""));
        let has = |word: &str| words.split(|c: char| !c.is_alphanumeric()).any(|one| one == word);
        Rights {
            insert: has("insert"),
            delete: has("delete"),
            update: match columns {
                Some((list, _)) => Some(names(list)),
                None => has("update").then(BTreeSet::new),
            },
        }
    }
}

/// The tables of the file, each with what a writer may do there, and why no less.
pub(super) fn granted() -> BTreeMap<String, (Rights, String)> {
    let (_, list) = ROLES.split_once("select * from (values").expect("the list");
    let (list, _) = list.split_once(") as granted (name, rights, why)").expect("its end");
    let mut rows = BTreeMap::new();
    let (mut fields, mut text, mut rest) = (Vec::<String>::new(), String::new(), list.chars());
    let (mut within, mut is_row) = (false, false);
    while let Some(character) = rest.next() {
        match (character, within) {
            ('\'', true) if rest.as_str().starts_with('\'') => {
                text.push('\'');
                rest.next();
            }
            ('\'', _) => within = !within,
            (character, true) => text.push(character),
            ('(', false) => is_row = true,
            (',', false) if is_row => fields.push(std::mem::take(&mut text)),
            (')', false) => {
                fields.push(std::mem::take(&mut text));
                let [table, rights, why] = &fields[..] else { panic!("{fields:?}") };
                let twice = rows.insert(table.clone(), (Rights::read(rights), why.clone()));
                assert!(twice.is_none(), "{table} stands twice");
                fields.clear();
                is_row = false;
            }
            _ => {}
        }
    }
    rows
}

/// A right that no statement needs is a gift to a stolen password.
#[test]
fn every_right_of_the_writer_has_a_statement_and_every_statement_its_right() {
    let (granted, needed) = (granted(), needed());
    assert!(needed.len() > 30, "the statements are not found: {needed:?}");
    for (table, (rights, why)) in &granted {
        assert!(why.len() > 5, "{table} says no reason");
        if ARCHIVERS.contains(&table.as_str()) {
            assert_eq!(*rights, Rights::default(), "{table}");
            continue;
        }
        let needed = needed.get(table).cloned().unwrap_or_default();
        assert_eq!((rights.insert, rights.delete), (needed.insert, needed.delete), "{table}");
        match (&rights.update, &needed.update) {
            (Some(all), Some(_)) if all.is_empty() => {}
            (Some(one), None) if table == LOCKED => assert_eq!(one.len(), 1, "{table}"),
            (rights, needed) => assert_eq!(rights, needed, "{table}: columns that are updated"),
        }
    }
    for table in needed.keys() {
        assert!(granted.contains_key(table), "{table} is written to, and roles.sql lacks it");
    }
}

/// What the statements for PostgreSQL need, by table.
pub(super) fn needed() -> BTreeMap<String, Rights> {
    let mut needed = BTreeMap::new();
    read_folder(&Path::new(env!("CARGO_MANIFEST_DIR")).join("crates/ledger/src"), &mut needed);
    needed
}

fn read_folder(folder: &Path, needed: &mut BTreeMap<String, Rights>) {
    for entry in folder.read_dir().unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true if path.ends_with("sqlite") => {}
            true => read_folder(&path, needed),
            false => read_text(&statements(&std::fs::read_to_string(&path).unwrap()), needed),
        }
    }
}

/// A file without its tests and comments, and with each text in one piece.
fn statements(file: &str) -> String {
    let file = file.split("#[cfg(test)]").next().unwrap_or_default();
    let mut text = String::new();
    for line in file.lines().map(str::trim).filter(|line| !line.starts_with("//")) {
        match line.strip_suffix('\\') {
            Some(line) => text.push_str(line),
            None => text.extend([line, "\n"]),
        }
    }
    // A text may go on over lines, each of which is a blank to SQL.
    text.replace("\",\n\"", " ").replace('\n', " ")
}

fn read_text(text: &str, needed: &mut BTreeMap<String, Rights>) {
    let words = |text: &str| -> String {
        text.chars().take_while(|c| c.is_ascii_lowercase() || *c == '_').collect()
    };
    for (place, _) in text.match_indices("insert into ") {
        let rest = &text[place + "insert into ".len()..];
        let rights = needed.entry(words(rest)).or_default();
        rights.insert = true;
        let whole = rest.split('"').next().unwrap_or_default();
        if let Some((_, set)) = whole.split_once("do update set ") {
            rights.update.get_or_insert_default().extend(columns(set));
        }
    }
    for (place, _) in text.match_indices("delete from ") {
        needed.entry(words(&text[place + "delete from ".len()..])).or_default().delete = true;
    }
    for (place, _) in text.match_indices("update ") {
        let rest = &text[place + "update ".len()..];
        let table = words(rest);
        let after = &rest[table.len()..];
        // `update counter c set …`
        let after = match after.as_bytes() {
            [b' ', _, b' ', ..] => &after[2..],
            _ => after,
        };
        if let Some(set) = after.strip_prefix(" set ").filter(|_| !table.is_empty()) {
            let rights = needed.entry(table).or_default();
            rights.update.get_or_insert_default().extend(columns(set));
            // What is pushed on to it, up to its condition.
            let whole = set.split(" where ").next().unwrap_or_default();
            let pushed = whole.split("push(\", ").skip(1);
            let pushed = pushed.filter_map(|it| it.split_once(" = \"").map(|(name, _)| name));
            let pushed = pushed.filter(|name| words(name) == **name).map(str::to_owned);
            rights.update.get_or_insert_default().extend(pushed);
        }
    }
    needed.retain(|table, rights| !table.is_empty() && *rights != Rights::default());
}

/// The columns that an update sets.
fn columns(set: &str) -> BTreeSet<String> {
    let (mut depth, mut column, mut columns) = (0, String::new(), BTreeSet::new());
    for (place, character) in set.char_indices() {
        let ends =
            [" where ", " from ", " returning "].iter().any(|it| set[place..].starts_with(it));
        match character {
            '(' => depth += 1,
            ')' if depth == 0 => break,
            ')' => depth -= 1,
            '"' => break,
            ' ' if depth == 0 && ends => break,
            ',' if depth == 0 => {
                columns.insert(std::mem::take(&mut column));
                continue;
            }
            _ => {}
        }
        column.push(character);
    }
    columns.insert(column);
    let name = |set: &String| set.split('=').next().unwrap_or_default().trim().to_owned();
    columns.iter().map(name).collect()
}

#[test]
fn statements_are_read_as_they_are_written() {
    let file = [
        "fn f() {",
        "    query(",
        "        \"update gap set a = case when x then y else z end, \\",
        "         b = (select c, d from e) where i = 1\",",
        "    );",
        "    // delete from nothing",
        "    q(\"insert into token (name) values ($1) on conflict (name) do update set n = \\",
        "       excluded.n\");",
        "}",
        "#[cfg(test)]",
        "mod tests { delete from node }",
    ];
    let file = file.join("\n");
    let mut needed = BTreeMap::new();
    read_text(&statements(&file), &mut needed);
    let of = |text| Rights::read(text);
    let wanted = [("gap", of("update (a, b)")), ("token", of("insert, update (n)"))];
    assert_eq!(needed, wanted.map(|(table, rights)| (table.to_owned(), rights)).into());
}
