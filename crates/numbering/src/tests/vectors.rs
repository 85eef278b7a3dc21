//! The vectors of `tests/vectors`: requests in the order in which they are made, each with its
//! number or its refusal, derived from the rules of the source documents; and series with the rule
//! expressions that they are. Here the counters are a map; the same vectors go through the whole
//! service elsewhere.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use serde::Deserialize;

use super::super::testing::{self, member};
use super::super::*;

/// A file: requests, and the series that they need in addition to the built-in ones.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    vectors: Vec<Vector>,
    /// What is imported before the series are saved, in this order.
    #[serde(default)]
    imports: Vec<Import>,
    /// Whether every number of the file shows what its counter counts by.
    #[serde(default)]
    leads_back: bool,
    #[serde(default)]
    series: Vec<SeriesDefinition>,
    #[serde(default)]
    expressions: Vec<Written>,
}

/// Rows of one table, `id, code, active`; or memberships of its rows, `id, of_id, active`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Import {
    table: String,
    of: Option<String>,
    rows: Vec<[String; 3]>,
}

/// A series of the file as a rule expression.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    /// Code of the series.
    series: String,
    /// The expression's JSON.
    elements: String,
}

/// A request, and its result.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Vector {
    #[serde(default, rename = "type")]
    type_code: String,
    type_id: Option<String>,
    project: Option<String>,
    project_id: Option<String>,
    date: Option<String>,
    phase: Option<String>,
    #[serde(default)]
    context: BTreeMap<String, String>,
    #[serde(default)]
    recipients: Vec<Recipient>,
    /// How many numbers are taken; `number` is the last of them.
    #[serde(default = "one")]
    count: u64,
    /// The number.
    number: Option<String>,
    /// Key of the first serial's counter, if it is given.
    counter: Option<String>,
    /// Slug of the refusal.
    refused: Option<String>,
    /// The field that it names.
    field: Option<String>,
}

fn one() -> u64 {
    1
}

impl Vector {
    /// What the numbering language reads of the request.
    pub(super) fn inputs(&self) -> Inputs {
        Inputs {
            type_code: self.type_code.clone(),
            type_id: self.type_id.clone(),
            project: self.project.clone(),
            project_id: self.project_id.clone(),
            date: self.date.clone(),
            phase: self.phase.clone(),
            context: self.context.clone(),
            recipients: self.recipients.clone(),
            projects_within: None,
        }
    }
}

/// The files by name.
fn files() -> Vec<(String, File)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/vectors");
    let entries = folder.read_dir().unwrap().map(|entry| entry.unwrap().path());
    let read = |path: std::path::PathBuf| {
        let text = std::fs::read_to_string(&path).unwrap();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let file = toml::from_str(&text).unwrap_or_else(|error| panic!("{name}: {error}"));
        (name, file)
    };
    let mut files: Vec<_> = entries.map(read).collect();
    files.sort_by(|(a, _), (b, _)| a.cmp(b));
    files
}

/// What the ledger has after all imports.
fn reference(files: &[(String, File)]) -> Arc<ReferenceData> {
    let mut rows: BTreeMap<(String, String), ReferenceRow> = BTreeMap::new();
    let mut memberships = Vec::new();
    for Import { table, of, rows: imported } in files.iter().flat_map(|(_, file)| &file.imports) {
        for [id, other, active] in imported {
            let active = active == "true";
            if let Some(of) = of {
                let group = (of.as_str(), other.as_str());
                memberships.push(Membership { active, ..member((table, id), group) });
                continue;
            }
            let row = testing::reference(table, id, other, active);
            let before = rows.insert((table.clone(), id.clone()), row.clone());
            let former = before.into_iter().flat_map(|row| [row.former_codes, vec![row.code]]);
            let former_codes = former.flatten().collect();
            rows.insert((table.clone(), id.clone()), ReferenceRow { former_codes, ..row });
        }
    }
    Arc::new(ReferenceData::new(rows.into_values(), memberships))
}

/// Takes from counters that are kept in a map.
#[derive(Default)]
pub(super) struct Counters {
    pub(super) series: Vec<Series>,
    /// The highest value taken, by series, serial and counter key.
    taken: BTreeMap<(usize, usize, String), u64>,
}

impl Counters {
    /// Counters from which nothing was taken.
    pub(super) fn of(series: Vec<Series>) -> Self {
        Counters { series, taken: BTreeMap::new() }
    }

    /// The last number and the key of its first counter; or slug and field of the refusal.
    pub(super) fn take(
        &mut self,
        vector: &Vector,
        leads_back: bool,
    ) -> Result<(String, String), (String, Option<String>)> {
        let inputs = vector.inputs();
        let chosen = choose(&self.series, &inputs, testing::NOW).map_err(|error| match error {
            RuleError::UnknownType { .. } => ("unknown-type".into(), Some("type".into())),
            RuleError::TypeNotConfigured { .. } => {
                ("type-not-configured".into(), Some("type".into()))
            }
            RuleError::Ambiguous { .. } | RuleError::Unsettled { .. } | RuleError::Zones { .. } => {
                ("series-ambiguous".into(), Some("type".into()))
            }
        })?;
        let series = &self.series[chosen];
        let drafted = series.draft(&inputs, crate::testing::NOW);
        let refused = |error: InputError| (error.slug().to_owned(), Some(error.field()));
        let draft = drafted.map_err(refused)?;
        if let Some(closed) = draft.closed {
            return Err(refused(closed));
        }
        let mut values = Vec::new();
        for (index, serial) in series.serials().iter().enumerate() {
            let name = (chosen, index, draft.keys[index].to_string());
            let first = self.taken.get(&name).map_or(serial.start, |taken| taken + serial.step);
            let last = first + (vector.count - 1) * serial.step;
            if last > serial.max {
                return Err(("sequence-exhausted".into(), Some(serial.name.clone())));
            }
            values.push((name, last));
        }
        let last: Vec<u64> = values.iter().map(|(_, last)| *last).collect();
        self.taken.extend(values);
        let number = draft.partial.fill(&last).unwrap();
        let parsed = series.parse(&number).unwrap_or_else(|error| panic!("{number}: {error}"));
        let read: Vec<u64> = parsed.serials.iter().map(|serial| serial.value).collect();
        assert_eq!(read, last, "{number} is read back");
        let is_found = series.origins(&parsed).contains(&draft.keys[0]);
        assert!(is_found || !leads_back, "{number} does not lead back to {}", draft.keys[0]);
        Ok((number, draft.keys[0].to_string()))
    }
}

#[test]
fn every_vector_comes_out_exactly_and_is_read_back() {
    let files = files();
    let own = files.iter().flat_map(|(_, file)| file.series.clone());
    let definitions: Vec<SeriesDefinition> = builtin_series().into_iter().chain(own).collect();
    check_rules(&definitions).unwrap();
    let reference = reference(&files);
    let compile = |definition: SeriesDefinition| {
        let code = definition.code.clone();
        let compiled = Series::compile(definition);
        let series = compiled.unwrap_or_else(|error| panic!("{code}: {error}"));
        series.with_reference(Arc::clone(&reference))
    };
    let series = definitions.into_iter().map(compile).collect();
    let mut counters = Counters::of(series);
    let mut wrong = Vec::new();
    let mut count = 0;
    for (name, file, vector) in
        files.iter().flat_map(|(name, f)| f.vectors.iter().map(move |v| (name, f, v)))
    {
        count += 1;
        let taken = counters.take(vector, file.leads_back);
        let right = match (&taken, &vector.number, &vector.refused) {
            (Ok((number, key)), Some(expected), None) => {
                number == expected && vector.counter.as_ref().is_none_or(|told| told == key)
            }
            (Err((slug, field)), None, Some(expected)) => {
                slug == expected && *field == vector.field
            }
            _ => false,
        };
        if !right {
            wrong.push(format!("{name}: {vector:?}: {taken:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(count >= 600, "only {count} vectors were found");
}

#[test]
fn every_expression_makes_its_series_and_is_made_of_it() {
    let mut count = 0;
    for file in files().into_iter().map(|(_, file)| file) {
        for Written { series: code, elements } in file.expressions {
            let definition = file.series.iter().find(|series| series.code == code);
            let definition = definition.unwrap_or_else(|| panic!("{code} is no series"));
            let expression = Expression::parse(&elements).unwrap();
            let head = SeriesDefinition {
                template: String::new(),
                variables: BTreeMap::new(),
                serials: Vec::new(),
                ..definition.clone()
            };
            assert_eq!(expression.define(head).as_ref(), Ok(definition), "{code}");
            let series = Series::compile(definition.clone()).unwrap();
            assert_eq!(Expression::of(&series), Ok(expression), "{code}");
            count += 1;
        }
    }
    assert!(count >= 5, "only {count} expressions were found");
}
