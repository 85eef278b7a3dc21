//! Reference data for examples: the tables as they may stand at each of two requests. A code that
//! no table has yet may be imported at any time, and a row may be renamed; a code never passes to
//! another row. So two requests are rendered each in its own world.
//!
//! Only for examples. No proof rests on what is made up here.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Deref;
use std::sync::Arc;

use super::super::draft::ABSENT;
use super::super::served::ORIGINATORS;
use super::super::text::normalise;
use super::super::{Membership, ReferenceData, ReferenceRow, Series};
use super::ambiguity::TableChange;
use super::witness::{Asked, dimension_of, scope_names};

/// A table and a code in it, or the id of a row.
type Place = (String, String);

/// The tables as the first of two requests finds them, and as the second does.
pub(super) struct Worlds {
    pub(super) tables: [Arc<ReferenceData>; 2],
    /// What is to be told of how they come to be.
    pub(super) changes: Vec<TableChange>,
}

/// A series with the tables of a world.
pub(super) enum Bound<'s> {
    /// It refers to none: it is what it was.
    Same(&'s Series),
    /// It has these instead of its own.
    Other(Box<Series>),
}

impl Deref for Bound<'_> {
    type Target = Series;

    fn deref(&self) -> &Series {
        match self {
            Bound::Same(series) => series,
            Bound::Other(series) => series,
        }
    }
}

/// A code of a table that a request shows, or that its series puts in its place.
struct Use<'a> {
    request: usize,
    table: &'a str,
    code: &'a str,
    /// A code that the row has had by then.
    before: Option<&'a str>,
    /// Whether the request names the row by its id.
    by_id: bool,
}

impl Use<'_> {
    fn place(&self) -> Place {
        (self.table.to_owned(), self.code.to_owned())
    }
}

impl Worlds {
    /// Worlds in which the first and then the second request show what they are to show; `None`
    /// where a row would need two codes at once, or a code two rows.
    pub(super) fn of(asked: [&Asked<'_>; 2]) -> Option<Self> {
        // All series have the same tables, whether they refer to them or not.
        let now = &*asked[0].series.reference;
        let mut uses: Vec<Use<'_>> =
            asked.iter().enumerate().flat_map(|(request, asked)| uses(request, asked)).collect();
        let mut linked = Vec::new();
        for name in scope_names(asked[0].series) {
            link(name, asked, &mut uses, &mut linked);
        }
        // Tables hold codes in normal form C alone.
        let is_normal = |code: &str| normalise(code) == code;
        if !uses.iter().all(|one| is_normal(one.code) && one.before.is_none_or(is_normal)) {
            return None;
        }
        let ids = ids(&uses, linked, now)?;
        let mut history = History { now, rows: BTreeMap::new(), changes: Vec::new() };
        let mut memberships = now.memberships().to_vec();
        let mut world = |request: usize| {
            let of_request = || uses.iter().filter(|one| one.request == request);
            for one in of_request() {
                let place = &ids[&one.place()];
                if let Some(before) = one.before.filter(|code| !history.has(&place.row, code)) {
                    history.name(request, &place.row, before, place.is_told);
                }
            }
            for one in of_request() {
                let place = &ids[&one.place()];
                history.name(request, &place.row, one.code, place.is_told);
            }
            // Another series may look up, or list, what this one takes as it is sent.
            for code in asked[request].known.values() {
                for row in now.tables().filter_map(|table| now.by_code(table, code)) {
                    history.row(&(row.table.clone(), row.id.clone()));
                }
            }
            history.add_groups();
            let is_shown = |one: &Use<'_>| history.rows[&ids[&one.place()].row].code == one.code;
            if !of_request().all(is_shown) {
                return None;
            }
            memberships.extend(membership(asked[request], &ids));
            let rows = history.rows.values().cloned();
            Some(Arc::new(ReferenceData::new(rows, memberships.iter().cloned())))
        };
        let tables = [world(0)?, world(1)?];
        Some(Worlds { tables, changes: history.changes })
    }

    /// A series as one of the requests finds it.
    pub(super) fn bound<'s>(&self, request: usize, series: &'s Series) -> Bound<'s> {
        if !series.refers() {
            return Bound::Same(series);
        }
        let tables = Arc::clone(&self.tables[request]);
        Bound::Other(Box::new(series.clone().with_reference(tables)))
    }
}

/// The codes of a request.
fn uses<'a>(request: usize, asked: &'a Asked<'_>) -> Vec<Use<'a>> {
    let (series, references) = (asked.series, &asked.series.definition.references);
    let plain =
        [("type", references.type_code.as_deref()), ("project", references.project.as_deref())];
    let plain = plain.into_iter().map(|(name, table)| (name, table, None));
    let variables = series.variables.iter().map(|variable| {
        (variable.name.as_str(), variable.reference.as_deref(), variable.default.as_ref())
    });
    let of = |(name, table, default): (&str, Option<&'a str>, Option<&'a String>)| {
        let (table, code) = (table?, asked.known.get(name).or(default)?);
        let before = asked.before.get(name).map(String::as_str);
        let by_id = asked.by_id && asked.is_asked_by_id(name);
        (code != ABSENT).then_some(Use { request, table, code, before, by_id })
    };
    plain.chain(variables).filter_map(of).collect()
}

/// That both requests have one value of a dimension of their scope.
fn link<'a>(
    name: &str,
    asked: [&'a Asked<'_>; 2],
    uses: &mut Vec<Use<'a>>,
    linked: &mut Vec<BTreeSet<Place>>,
) {
    let of = |asked: &'a Asked<'_>| {
        let table = asked.series.table_of(dimension_of(asked.series, name)?);
        Some((table, asked.known.get(name)?.as_str()))
    };
    let [Some((of_first, first)), Some((of_second, second))] = asked.map(of) else { return };
    if first == ABSENT || second == ABSENT {
        return;
    }
    let by_id = false;
    match (of_first, of_second) {
        (Some(one), Some(other)) => {
            let place = |table: &str, code: &str| (table.to_owned(), code.to_owned());
            linked.push([place(one, first), place(other, second)].into());
        }
        // The one knows the value by a code that the row has had.
        (Some(table), None) if first != second => {
            let (code, before) = (first, Some(second));
            uses.push(Use { request: 0, table, code, before, by_id });
        }
        (None, Some(table)) if first != second => {
            let (code, before) = (second, Some(first));
            uses.push(Use { request: 1, table, code, before, by_id });
        }
        _ => {}
    }
}

/// The row of a code.
struct Row {
    /// Its table and id.
    row: Place,
    /// Whether its id matters.
    is_told: bool,
}

/// The row of each code: that of the tables, or a new one. Codes that belong together have one id,
/// in whatever tables.
fn ids(
    uses: &[Use<'_>],
    linked: Vec<BTreeSet<Place>>,
    now: &ReferenceData,
) -> Option<HashMap<Place, Row>> {
    let of_use = |one: &Use<'_>| -> BTreeSet<Place> {
        let before = one.before.map(|code| (one.table.to_owned(), code.to_owned()));
        before.into_iter().chain([one.place()]).collect()
    };
    let mut groups: Vec<BTreeSet<Place>> = Vec::new();
    for mut group in uses.iter().map(of_use).chain(linked) {
        let (apart, joined) = groups.into_iter().partition(|other| other.is_disjoint(&group));
        groups = apart;
        group.extend(Vec::into_iter(joined).flatten());
        groups.push(group);
    }
    let mut taken: BTreeSet<String> = BTreeSet::new();
    let mut rows = HashMap::new();
    for group in groups {
        let tables: BTreeSet<&str> = group.iter().map(|(table, _)| table.as_str()).collect();
        let found = group.iter().filter_map(|(table, code)| now.by_code(table, code));
        let found: BTreeSet<&str> = found.map(|row| row.id.as_str()).collect();
        let is_free = |id: &String| {
            !taken.contains(id) && tables.iter().all(|table| now.by_id(table, id).is_none())
        };
        let is_told =
            tables.len() > 1 || uses.iter().any(|one| one.by_id && group.contains(&one.place()));
        let id = match (found.len(), group.first()) {
            (1, _) => found.first().map(ToString::to_string)?,
            (0, _) if is_told => (1..).map(|id: u32| id.to_string()).find(is_free)?,
            // No row of a table has such an id.
            (0, Some((_, code))) => format!("new {code}"),
            // A code never passes to another row.
            _ => return None,
        };
        for place in &group {
            rows.insert(place.clone(), Row { row: (place.0.clone(), id.clone()), is_told });
        }
        taken.insert(id);
    }
    Some(rows)
}

/// That the originator of a request belongs to its project.
fn membership(asked: &Asked<'_>, ids: &HashMap<Place, Row>) -> Option<Membership> {
    let row = |table: &str, code: &String| {
        ids.get(&(table.to_owned(), code.clone())).map(|found| found.row.clone())
    };
    let originator = ORIGINATORS.iter().find_map(|name| asked.known.get(*name))?;
    let (table, id) = row(asked.series.originator_table()?, originator)?;
    let projects = asked.series.definition.references.project.as_deref()?;
    let (of_table, of_id) = row(projects, asked.known.get("project")?)?;
    Some(Membership { table, id, of_table, of_id, active: true })
}

/// How rows come to have their codes, from the tables of now on.
struct History<'a> {
    now: &'a ReferenceData,
    rows: BTreeMap<Place, ReferenceRow>,
    changes: Vec<TableChange>,
}

impl History<'_> {
    /// A row as it stands, if there is one.
    fn row(&mut self, place: &Place) -> Option<&mut ReferenceRow> {
        if !self.rows.contains_key(place) {
            let found = self.now.by_id(&place.0, &place.1)?;
            self.rows.insert(place.clone(), found.clone());
        }
        self.rows.get_mut(place)
    }

    /// Adds what rows are members of, directly or through another row.
    fn add_groups(&mut self) {
        let memberships = self.now.memberships();
        for _ in 0..2 {
            for Membership { table, id, of_table, of_id, .. } in memberships {
                if self.rows.contains_key(&(table.clone(), id.clone())) {
                    self.row(&(of_table.clone(), of_id.clone()));
                }
            }
        }
    }

    /// Whether a row has a code, or had it.
    fn has(&mut self, place: &Place, code: &str) -> bool {
        let row = self.row(place);
        row.is_some_and(|row| row.code == code || row.former_codes.iter().any(|one| one == code))
    }

    /// Gives a row a code.
    fn name(&mut self, request: usize, place: &Place, code: &str, id_matters: bool) {
        let is_new = self.now.by_id(&place.0, &place.1).is_none();
        let from = match self.row(place) {
            Some(row) if row.code == code => return,
            Some(row) => {
                row.former_codes.retain(|former| former != code);
                let from = std::mem::replace(&mut row.code, code.to_owned());
                row.former_codes.push(from.clone());
                Some(from)
            }
            None => {
                let (table, id) = place.clone();
                let (code, name, former_codes) = (code.to_owned(), String::new(), Vec::new());
                let row = ReferenceRow { table, id, code, name, active: true, former_codes };
                self.rows.insert(place.clone(), row);
                None
            }
        };
        if from.is_none() && !id_matters {
            return;
        }
        let id = (!is_new || id_matters).then(|| place.1.clone());
        let (table, to, between) = (place.0.clone(), code.to_owned(), request == 1);
        self.changes.push(TableChange { table, id, from, to, between });
    }
}
