//! Reference data: tables of ids and codes, and memberships between their rows.
//!
//! A snapshot: built once from the rows of the ledger, then shared and only read. A code belongs to
//! one id of its table forever, so a text that shows it never becomes ambiguous; the writers of
//! rows ensure that, and nothing here changes a row.

use std::collections::{BTreeMap, HashMap};
use std::sync::OnceLock;

use thiserror::Error;

use super::SeriesDefinition;
use super::draft::ABSENT;
use super::error::excerpt;
use super::field::{at, syntax};
use super::served::ORIGINATORS;
use super::template_error::{FieldFlaw, TemplateError};
use super::text::{Lines, check_printable, normalise};
use super::value::ValueRule;

/// Longest id and longest name of a table, in characters.
const NAME_CHARS_MAX: usize = 64;

/// Longest display name of a row, in characters.
const DISPLAY_CHARS_MAX: usize = 200;

/// One row of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReferenceRow {
    /// Name of the table.
    pub table: String,
    /// What counters and scopes hold; never changes.
    pub id: String,
    /// What numbers show.
    pub code: String,
    /// Display name.
    pub name: String,
    /// Whether new numbers may use it.
    pub active: bool,
    /// Codes that it had before; they still mean it.
    pub former_codes: Vec<String>,
}

/// A row of one table belongs to a row of another: an organization to a project, an organization to
/// a contract, a contract to a project.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Membership {
    /// Table of the member.
    pub table: String,
    /// Id of the member.
    pub id: String,
    /// Table of what it belongs to.
    pub of_table: String,
    /// Id of what it belongs to.
    pub of_id: String,
    /// Whether it still does.
    pub active: bool,
}

/// A row that no table takes.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{field} {value:?}: {reason}")]
pub struct ReferenceFlaw {
    /// `table`, `id`, `code` or `name`.
    pub field: &'static str,
    /// The value, shortened.
    pub value: String,
    /// What is wrong and the remedy.
    pub reason: String,
}

/// All tables and memberships at one moment.
#[derive(Debug, Default)]
pub struct ReferenceData {
    tables: BTreeMap<String, Table>,
    memberships: Vec<Membership>,
    /// What each member belongs to now, by its table and its id.
    groups: HashMap<String, HashMap<String, Groups>>,
}

/// What a member belongs to.
#[derive(Debug, Default)]
struct Groups {
    /// Directly: table and id.
    direct: Vec<(String, String)>,
    /// Codes in order, by table: directly and through others. Computed at the first request, and
    /// not for each one.
    codes: OnceLock<BTreeMap<String, Vec<String>>>,
}

#[derive(Debug, Default)]
struct Table {
    /// By id.
    rows: BTreeMap<String, ReferenceRow>,
    /// The id of every code, present or former.
    ids: HashMap<String, String>,
}

impl ReferenceData {
    /// The snapshot of some rows.
    #[must_use]
    pub fn new(
        rows: impl IntoIterator<Item = ReferenceRow>,
        memberships: impl IntoIterator<Item = Membership>,
    ) -> Self {
        let mut data = ReferenceData::default();
        for row in rows {
            let table = data.tables.entry(row.table.clone()).or_default();
            for code in row.former_codes.iter().chain([&row.code]) {
                table.ids.insert(code.clone(), row.id.clone());
            }
            table.rows.insert(row.id.clone(), row);
        }
        data.memberships = memberships.into_iter().collect();
        for membership in data.memberships.iter().filter(|membership| membership.active) {
            let Membership { table, id, of_table, of_id, .. } = membership.clone();
            let groups = data.groups.entry(table).or_default().entry(id).or_default();
            groups.direct.push((of_table, of_id));
        }
        data
    }

    /// The same with every row and every membership active: what was usable once.
    #[must_use]
    pub fn all_active(&self) -> Self {
        let rows = self.tables.values().flat_map(|table| table.rows.values());
        let rows = rows.map(|row| ReferenceRow { active: true, ..row.clone() });
        let memberships = self.memberships.iter().cloned();
        ReferenceData::new(rows, memberships.map(|member| Membership { active: true, ..member }))
    }

    /// Whether a table has any row.
    #[must_use]
    pub fn has(&self, table: &str) -> bool {
        self.tables.contains_key(table)
    }

    /// Names of all tables.
    pub fn tables(&self) -> impl Iterator<Item = &str> {
        self.tables.keys().map(String::as_str)
    }

    /// The rows of a table, by id.
    pub fn rows(&self, table: &str) -> impl Iterator<Item = &ReferenceRow> {
        self.tables.get(table).into_iter().flat_map(|table| table.rows.values())
    }

    /// Every membership, those that ended included.
    #[must_use]
    pub fn memberships(&self) -> &[Membership] {
        &self.memberships
    }

    /// The row of an id.
    #[must_use]
    pub fn by_id(&self, table: &str, id: &str) -> Option<&ReferenceRow> {
        self.tables.get(table)?.rows.get(id)
    }

    /// The row that has a code, or had it before. The code is in normal form C.
    #[must_use]
    pub fn by_code(&self, table: &str, code: &str) -> Option<&ReferenceRow> {
        let table = self.tables.get(table)?;
        table.rows.get(table.ids.get(code)?)
    }

    /// Present and former codes of what a code means; the code alone if the table has no row for
    /// it.
    pub(super) fn codes_of(&self, table: &str, code: &str) -> Vec<String> {
        match self.by_code(table, code) {
            Some(row) => row.former_codes.iter().chain([&row.code]).cloned().collect(),
            None => vec![code.to_owned()],
        }
    }

    /// The active rows of `of_table` that a row belongs to, by code: directly, or through an active
    /// row that belongs there itself, such as a contract of the project.
    #[must_use]
    pub fn groups(&self, row: &ReferenceRow, of_table: &str) -> Vec<&ReferenceRow> {
        let mut found: Vec<&ReferenceRow> = Vec::new();
        for group in self.active_groups(row) {
            if group.table == of_table {
                found.push(group);
            } else {
                found.extend(self.active_groups(group).filter(|next| next.table == of_table));
            }
        }
        found.sort_by(|a, b| a.code.cmp(&b.code));
        found.dedup_by(|a, b| a.id == b.id);
        found
    }

    /// The codes of these rows, in order.
    pub(super) fn group_codes(&self, row: &ReferenceRow, of_table: &str) -> &[String] {
        let Some(groups) = self.groups_of(row) else { return &[] };
        let codes = groups.codes.get_or_init(|| self.all_group_codes(row));
        codes.get(of_table).map(Vec::as_slice).unwrap_or_default()
    }

    /// The codes of all active rows that a row belongs to, by table.
    fn all_group_codes(&self, row: &ReferenceRow) -> BTreeMap<String, Vec<String>> {
        let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
        let mut add = |group: &ReferenceRow| {
            found.entry(group.table.clone()).or_default().push(group.code.clone());
        };
        for group in self.active_groups(row) {
            add(group);
            self.active_groups(group).filter(|next| next.table != group.table).for_each(&mut add);
        }
        for codes in found.values_mut() {
            codes.sort_unstable();
            codes.dedup();
        }
        found
    }

    /// The active rows that a row belongs to directly.
    fn active_groups<'d>(&'d self, row: &ReferenceRow) -> impl Iterator<Item = &'d ReferenceRow> {
        let groups = self.groups_of(row).into_iter().flat_map(|groups| &groups.direct);
        groups.filter_map(|(table, id)| self.by_id(table, id).filter(|group| group.active))
    }

    fn groups_of(&self, row: &ReferenceRow) -> Option<&Groups> {
        self.groups.get(&row.table)?.get(&row.id)
    }
}

/// Whether a text may name a table: a lower-case word, like a field.
#[must_use]
pub fn is_table_name(name: &str) -> bool {
    let word = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
    name.len() <= NAME_CHARS_MAX
        && name.bytes().all(word)
        && name.bytes().next().is_some_and(|first| first.is_ascii_lowercase())
}

/// Checks a row and brings its code and name into normal form C.
///
/// # Errors
/// The first field that no table takes.
pub fn check_reference(row: &mut ReferenceRow) -> Result<(), ReferenceFlaw> {
    if !is_table_name(&row.table) {
        let reason = "write a lower-case word such as organizations";
        return Err(flaw("table", &row.table, &reason));
    }
    check_reference_id("id", &row.id)?;
    let rule = ValueRule::printable();
    let code = rule.check("code", &row.code).map_err(|why| flaw("code", &row.code, &why))?;
    if code.is_empty() || code == ABSENT {
        let reason = "0 stands for none in counters, and a code has a character at least";
        return Err(flaw("code", &code, &reason));
    }
    let name = normalise(row.name.trim()).into_owned();
    if name.chars().count() > DISPLAY_CHARS_MAX || check_printable(&name, Lines::One).is_err() {
        let reason = format!("at most {DISPLAY_CHARS_MAX} characters, all of them printable");
        return Err(flaw("name", &name, &reason));
    }
    (row.code, row.name) = (code, name);
    Ok(())
}

/// Checks an id: letters, digits, `-` and `_`.
///
/// # Errors
/// What is wrong, with the field it came from.
pub fn check_reference_id(field: &'static str, id: &str) -> Result<(), ReferenceFlaw> {
    let sign = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
    if id.is_empty() || id.len() > NAME_CHARS_MAX || !id.bytes().all(sign) {
        return Err(flaw(field, id, &"write 1 to 64 letters A-Z a-z, digits, `-` and `_`"));
    }
    if id == ABSENT {
        return Err(flaw(field, id, &"0 stands for none in counters; use another id"));
    }
    Ok(())
}

fn flaw(field: &'static str, value: &str, reason: &impl ToString) -> ReferenceFlaw {
    ReferenceFlaw { field, value: excerpt(value), reason: reason.to_string() }
}

/// Checks the tables that a definition names, and what memberships are looked up for.
pub(super) fn check_references(definition: &SeriesDefinition) -> Result<(), TemplateError> {
    let references = &definition.references;
    let mut tables = vec![
        ("references.project".to_owned(), &references.project),
        ("references.type".to_owned(), &references.type_code),
    ];
    for (name, variable) in &definition.variables {
        tables.push((format!("variables.{}.reference", excerpt(name)), &variable.reference));
    }
    for (field, table) in tables {
        if let Some(table) = table.as_ref().filter(|table| !is_table_name(table)) {
            return syntax(&field, table, "a lower-case word such as organizations");
        }
    }
    let originator = |name: &&str| {
        definition.variables.get(*name).is_some_and(|variable| variable.reference.is_some())
    };
    if references.membership
        && (references.project.is_none() || !ORIGINATORS.iter().any(originator))
    {
        return at("references.membership", FieldFlaw::Membership);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::testing::{member, reference};
    use super::*;

    fn codes(rows: &[&ReferenceRow]) -> Vec<String> {
        rows.iter().map(|row| row.code.clone()).collect()
    }

    #[test]
    fn a_row_is_found_by_its_id_and_by_every_code_it_ever_had() {
        let mut renamed = reference("projects", "2", "LCBP3-C2", true);
        renamed.former_codes = vec!["C2".into()];
        let data = ReferenceData::new([renamed], []);
        for code in ["LCBP3-C2", "C2"] {
            assert_eq!(data.by_code("projects", code).map(|row| &*row.id), Some("2"), "{code}");
        }
        assert_eq!(data.by_id("projects", "2").map(|row| &*row.code), Some("LCBP3-C2"));
        assert!(data.by_code("projects", "2").is_none() && data.by_code("x", "C2").is_none());
        assert_eq!(data.codes_of("projects", "C2"), ["C2", "LCBP3-C2"]);
        assert_eq!(data.codes_of("projects", "C9"), ["C9"]);
    }

    #[test]
    fn a_member_belongs_to_projects_directly_and_through_active_contracts() {
        let rows = [
            reference("organizations", "22", "A", true),
            reference("projects", "1", "P1", true),
            reference("projects", "2", "P2", true),
            reference("projects", "3", "P3", false),
            reference("projects", "4", "P4", true),
            reference("contracts", "7", "K7", true),
            reference("contracts", "8", "K8", false),
        ];
        let mut ended = member(("organizations", "22"), ("projects", "4"));
        ended.active = false;
        let memberships = [
            member(("organizations", "22"), ("projects", "2")),
            member(("organizations", "22"), ("projects", "3")),
            member(("organizations", "22"), ("contracts", "7")),
            member(("organizations", "22"), ("contracts", "8")),
            member(("contracts", "7"), ("projects", "1")),
            member(("contracts", "7"), ("projects", "2")),
            member(("contracts", "8"), ("projects", "4")),
            ended,
        ];
        let data = ReferenceData::new(rows, memberships);
        let member = data.by_code("organizations", "A").unwrap();
        assert_eq!(codes(&data.groups(member, "projects")), ["P1", "P2"]);
        assert_eq!(codes(&data.groups(member, "contracts")), ["K7"]);
        for table in ["projects", "contracts", "organizations"] {
            assert_eq!(data.group_codes(member, table), codes(&data.groups(member, table)));
        }
    }

    #[test]
    fn a_row_that_no_table_takes_is_named() {
        let row = |table: &str, id: &str, code: &str| reference(table, id, code, true);
        for (mut wrong, field) in [
            (row("Projects", "1", "A"), "table"),
            (row("1x", "1", "A"), "table"),
            (row("projects", "", "A"), "id"),
            (row("projects", "0", "A"), "id"),
            (row("projects", "a b", "A"), "id"),
            (row("projects", "1", ""), "code"),
            (row("projects", "1", "0"), "code"),
            (row("projects", "1", " A"), "code"),
            (row("projects", "1", &"x".repeat(65)), "code"),
        ] {
            let flaw = check_reference(&mut wrong).expect_err(field);
            assert_eq!(flaw.field, field, "{flaw}");
        }
        let mut right = row("projects", "1", "e\u{301}");
        check_reference(&mut right).unwrap();
        assert_eq!(right.code, "é");
    }
}
