//! What a refusal tells of series that refer to tables, done step by step: the tables become what
//! it says, and then each of its two requests is made.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;

use super::super::super::testing::reference;
use super::super::super::*;
use super::table_worlds::{TABLES, bound};

/// Tables that are told to change, row by row.
struct Told(Vec<ReferenceRow>, Vec<Membership>);

impl Told {
    /// The row that has a code, or had it; or that of an id.
    fn row(&self, table: &str, code: Option<&str>, id: Option<&str>) -> Option<&ReferenceRow> {
        let has = |row: &&ReferenceRow, code: &str| {
            row.code == code || row.former_codes.iter().any(|former| former == code)
        };
        let is = |row: &&ReferenceRow| {
            row.table == table
                && code.is_none_or(|code| has(row, code))
                && id.is_none_or(|id| row.id == id)
        };
        let mut rows = self.0.iter().filter(is);
        let found = rows.next();
        assert!(rows.next().is_none(), "one row of {table} for {code:?} {id:?}");
        found
    }

    /// Imports a code that no row has.
    fn import(&mut self, table: &str, code: &str, id: Option<&String>) {
        if self.row(table, Some(code), None).is_none() {
            let id = id.cloned().unwrap_or_else(|| format!("new {code}"));
            self.0.push(reference(table, &id, code, true));
        }
    }

    fn change(&mut self, change: &TableChange) {
        let TableChange { table, id, from, to, .. } = change;
        self.import(table, from.as_ref().unwrap_or(to), id.as_ref());
        let Some(from) = from else { return };
        let id = self.row(table, Some(from), id.as_deref()).expect("it is told").id.clone();
        let taken = self.row(table, Some(to), None).is_some_and(|row| row.id != id);
        assert!(!taken, "{to} is another row's: {change}");
        let row = self.0.iter_mut().find(|row| row.table == *table && row.id == id);
        let row = row.expect("found above");
        assert_eq!(row.code, *from, "{change}");
        row.former_codes.push(std::mem::replace(&mut row.code, to.clone()));
    }

    /// The tables as a request finds them: they have what it names.
    fn world(&mut self, series: &Series, request: &CollidingRequest) -> Arc<ReferenceData> {
        let CollidingRequest { inputs, project_of_member, .. } = request;
        let SeriesDefinition { references, variables, .. } = series.definition();
        let named = |list: &BTreeMap<String, String>, name: &str| list.get(name).cloned();
        let originator = ["ORIGINATOR", "ORG_CODE"].iter().find_map(|name| {
            let table = variables.get(*name)?.reference.clone()?;
            let id = named(&inputs.context, &format!("{}_id", name.to_lowercase()));
            Some((table, named(&inputs.context, name), id))
        });
        let project = references.project.clone();
        let code_of_project = inputs.project.as_ref().or(project_of_member.as_ref()).cloned();
        let project =
            project.map(|table| (table, code_of_project.clone(), inputs.project_id.clone()));
        let type_code = references.type_code.clone().filter(|_| inputs.type_id.is_none());
        let type_code = type_code.map(|table| (table, Some(inputs.type_code.clone()), None));
        for (table, code, _) in [&originator, &project, &type_code].into_iter().flatten() {
            if let Some(code) = code {
                self.import(table, code, None);
            }
        }
        let found = |place: &Option<(String, Option<String>, Option<String>)>| {
            let (table, code, id) = place.as_ref()?;
            let is_named = code.is_some() || id.is_some();
            let row =
                is_named.then(|| self.row(table, code.as_deref(), id.as_deref())).flatten()?;
            Some((table.clone(), row.id.clone()))
        };
        let both = found(&originator).zip(found(&project));
        self.1.extend(both.map(|((table, id), (of_table, of_id))| Membership {
            table,
            id,
            of_table,
            of_id,
            active: true,
        }));
        Arc::new(ReferenceData::new(self.0.clone(), self.1.clone()))
    }
}

/// Whether two scopes are of the same things, where one knows something by a code that the other
/// knows by an id.
fn is_one_scope(first: &str, second: &str, told: &Told) -> bool {
    if first == second {
        return true;
    }
    let mut pairs = first.split(';').zip(second.split(';'));
    pairs.all(|(one, other)| {
        let of = |part: &str| -> (String, String) {
            let (name, value) = part.split_once('=').expect("a name and a value");
            (name.to_owned(), value.to_owned())
        };
        let ((name, value), (other_name, other_value)) = (of(one), of(other));
        let (ids, id, code) = match () {
            () if name == other_name => return value == other_value,
            () if name.ends_with("_id") => (name, value, other_value),
            () => (other_name, other_value, value),
        };
        let place = ["project_id", "type_id"].iter().position(|name| *name == ids);
        let table = TABLES[place.unwrap_or(2)];
        told.row(table, Some(&code), Some(&id)).is_some()
    })
}

/// Renders what a refusal tells, in tables that become what it says; whether it is a collision of
/// two requests that their series serve.
pub(super) fn collides(ambiguity: &Ambiguity, series: &[&Series], served: bool) -> bool {
    let Ambiguity::Collision { first, second, text, scope, changes, .. } = ambiguity else {
        return false;
    };
    let now = &series[0].reference;
    let rows = TABLES.iter().flat_map(|table| now.rows(table)).cloned().collect();
    let mut told = Told(rows, now.memberships().to_vec());
    let (mut taken, mut scopes) = (Vec::new(), Vec::new());
    for (request, between) in [(first, false), (second, true)] {
        for change in changes.iter().filter(|change| change.between == between) {
            told.change(change);
        }
        let at = series.iter().position(|series| series.definition().code == request.series);
        let at = at.expect("one of the series");
        let world = told.world(series[at], request);
        let all: Vec<Series> = series.iter().map(|series| bound(series, &world)).collect();
        assert!(!served || choose(&all, &request.inputs) == Ok(at), "{ambiguity}");
        let draft = all[at].draft(&request.inputs, Timestamp::UNIX_EPOCH);
        let draft = draft.unwrap_or_else(|error| panic!("{ambiguity}: {error}"));
        let values: Vec<u64> = request.values.iter().map(|(_, value)| *value).collect();
        assert_eq!(&draft.mask.fill(&values).expect("fits"), text, "{ambiguity}");
        scopes.push(draft.scope);
        taken.push((request.series.clone(), draft.keys[0].to_string(), values));
    }
    // Ids of rows that are new are made up.
    assert!(scopes[0] == *scope || scope.contains("=new "), "{ambiguity}");
    is_one_scope(&scopes[0], &scopes[1], &told) && taken[0] != taken[1]
}
