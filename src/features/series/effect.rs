//! What a change of a series means, before it is saved: the fields that differ, the effect on its
//! counters, its next numbers, and which other series read these. Also the output of the commands.

use std::collections::BTreeSet;
use std::sync::Arc;

use numbering::{Inputs, Series, SeriesDefinition, Succession, TemplateError, succession};
use serde::Serialize;
use serde_json::{Value, json};
use utoipa::ToSchema;

use crate::auth::Act;
use crate::engine::allocator::{AllocError, Catalog};
use crate::ledger::{COUNTERS_COUNTED_MAX, SeriesVersion};
use crate::web::App;
use crate::web::admission::compute;
use crate::web::middleware::Caller;
use crate::web::problem::Problem;

/// Numbers in a preview.
pub(crate) const PREVIEWED: u64 = 3;

/// A field that differs between two versions.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub(crate) struct FieldChange {
    /// JSON pointer (RFC 6901) into the answer for a version, such as `/definition/template`.
    pub(crate) path: String,
    /// Its value before; left out where it had none.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Value, required = false)]
    pub(crate) before: Option<Value>,
    /// Its value after; left out where it has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Value, required = false)]
    pub(crate) after: Option<Value>,
}

/// What a change does beside the text of the series.
#[derive(Clone, Debug, Default, PartialEq, Serialize, ToSchema)]
pub(crate) struct ConfigEffect {
    /// Counters that the series has, as far as 10,000.
    counters: u64,
    /// Serials that go on with them.
    go_on: Vec<String>,
    /// Serials whose counters begin anew.
    begin_anew: Vec<String>,
    /// The next numbers for a sample request by the version before.
    next_before: Vec<String>,
    /// The next numbers for a sample request by the version after.
    next_after: Vec<String>,
    /// Codes of other active series that read the next numbers as their own.
    readers: Vec<String>,
    /// The same in words.
    summary: Vec<String>,
}

/// The fields that differ between a version and its predecessor, if it has one. Lists of texts are
/// one field each: an entry inserted at the front moves all others.
pub(crate) fn changed_fields(
    before: Option<(&SeriesDefinition, bool)>,
    (after, active): (&SeriesDefinition, bool),
) -> Vec<FieldChange> {
    let shown = |definition: &SeriesDefinition, active: bool| {
        let once = definition.is_once_per_document();
        json!({ "active": active, "definition": definition, "once_per_document": once })
    };
    let before = before.map_or_else(|| json!({}), |(before, active)| shown(before, active));
    let mut changes = Vec::new();
    compare("", Some(&before), Some(&shown(after, active)), &mut changes);
    changes
}

fn compare(
    path: &str,
    before: Option<&Value>,
    after: Option<&Value>,
    changes: &mut Vec<FieldChange>,
) {
    let below = |name: &str| format!("{path}/{}", name.replace('~', "~0").replace('/', "~1"));
    match (before, after) {
        (before, after) if before == after => {}
        (Some(Value::Object(before)), Some(Value::Object(after))) => {
            let names: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
            for name in names {
                compare(&below(name), before.get(name), after.get(name), changes);
            }
        }
        (Some(Value::Array(before)), Some(Value::Array(after)))
            if before.iter().chain(after).all(Value::is_object) =>
        {
            for index in 0..before.len().max(after.len()) {
                compare(&below(&index.to_string()), before.get(index), after.get(index), changes);
            }
        }
        (before, after) => changes.push(FieldChange {
            path: path.to_owned(),
            before: before.cloned(),
            after: after.cloned(),
        }),
    }
}

/// The effect on the counters, in words.
pub(crate) fn counters_in_words(
    counters: u64,
    Succession { go_on, begin_anew }: &Succession,
) -> String {
    let many = match counters {
        0 => return "it has no counters yet".into(),
        1 => "its 1 counter".into(),
        COUNTERS_COUNTED_MAX.. => format!("its {COUNTERS_COUNTED_MAX} counters or more"),
        many => format!("its {many} counters"),
    };
    let verb = if counters == 1 { "goes" } else { "go" };
    match (go_on.is_empty(), begin_anew.is_empty()) {
        (_, true) => format!("{many} {verb} on"),
        (true, false) => format!("{many} {verb} on no more; others begin at the start"),
        (false, false) => format!(
            "of {many}, those of {} go on; those of {} begin at the start",
            go_on.join(", "),
            begin_anew.join(", ")
        ),
    }
}

/// The input for the effect of a change.
pub(crate) struct Compared {
    /// The series, if it exists.
    pub(crate) series_id: Option<i64>,
    /// The version before, if there is one that compiles.
    pub(crate) before: Option<Series>,
    /// The version after.
    pub(crate) after: Series,
    /// Whether the version after serves requests.
    pub(crate) is_active: bool,
    /// The request to show numbers for; without it, one is made up.
    pub(crate) asked: Option<Inputs>,
}

impl Compared {
    /// The effect, computed at one of the places for that.
    pub(crate) async fn effect(self, app: &App, caller: &Caller) -> Result<ConfigEffect, Problem> {
        let Compared { series_id, before, after, is_active, asked } = self;
        let counters = match series_id {
            Some(series_id) => app.service.ledger.counters().count_of(series_id).await?,
            None => 0,
        };
        let told = before.as_ref().map(|before| succession(before, &after)).unwrap_or_default();
        let mut next_before = Ok(Vec::new());
        if let Some(before) = &before {
            next_before = next_numbers(app, before, series_id, asked.as_ref()).await?;
        }
        let mut next_after = Ok(Vec::new());
        if is_active {
            next_after = next_numbers(app, &after, series_id, asked.as_ref()).await?;
        }
        let mut summary = vec![counters_in_words(counters, &told)];
        summary.extend(next_in_words(&next_before, &next_after, is_active));
        let (next_before, next_after) =
            (next_before.unwrap_or_default(), next_after.unwrap_or_default());
        let readers = readers(app, caller, &after, next_after.clone()).await?;
        if !readers.is_empty() {
            let codes = readers.join(", ");
            summary.push(format!("its next numbers are read as their own by {codes}, too"));
        }
        let Succession { go_on, begin_anew } = told;
        Ok(ConfigEffect { counters, go_on, begin_anew, next_before, next_after, readers, summary })
    }
}

/// The effect of going from one version of a series to another, for a caller that has it in reach
/// and may read its counters; `None` if one of them does not compile any more.
pub(crate) async fn effect_between(
    app: &App,
    caller: &Caller,
    before: Option<&SeriesVersion>,
    after: &SeriesVersion,
) -> Result<Option<ConfigEffect>, Problem> {
    let may_read = caller.identity.may(Act::ReadRegisters).is_some();
    let is_held = |version: &SeriesVersion| caller.must_hold(version).is_ok();
    if !may_read || !is_held(after) || !before.is_none_or(is_held) {
        return Ok(None);
    }
    let catalog = app.service.allocator.catalog();
    let was = before.map(|before| compiled(&catalog, &before.definition)).transpose();
    let (Ok(was), Ok(is)) = (was, compiled(&catalog, &after.definition)) else {
        return Ok(None);
    };
    let (series_id, is_active) = (Some(after.series_id), after.active);
    let compared = Compared { series_id, before: was, after: is, is_active, asked: None };
    compared.effect(app, caller).await.map(Some)
}

/// The compiled form of a definition of the ledger, with the tables of the catalog. One that the
/// catalog serves is not compiled again.
pub(crate) fn compiled(
    catalog: &Catalog,
    definition: &SeriesDefinition,
) -> Result<Series, TemplateError> {
    let mut known = catalog.all().filter(|served| served.version.definition == *definition);
    if let Some(served) = known.next() {
        return Ok(served.series.clone());
    }
    let series = Series::restore(definition.clone())?;
    Ok(series.with_reference(Arc::clone(catalog.reference())))
}

/// The next numbers of a version, or why its counter gives none.
pub(crate) type NextNumbers = Result<Vec<String>, String>;

/// The effect of a change on the next number, in words.
pub(crate) fn next_in_words(
    before: &NextNumbers,
    after: &NextNumbers,
    is_active: bool,
) -> Option<String> {
    let first =
        |numbers: &NextNumbers| numbers.as_ref().ok().and_then(|list| list.first().cloned());
    Some(match (first(before), first(after)) {
        (Some(before), Some(after)) if before == after => {
            format!("its next number stays {after}")
        }
        (Some(before), Some(after)) => {
            format!("its next number is {after} in the place of {before}")
        }
        (None, Some(after)) => format!("its next number is {after}"),
        (_, None) if !is_active => "it serves no requests".into(),
        (_, None) => format!("no number comes next: {}", after.as_ref().err()?),
    })
}

/// The next numbers for a request. It does not matter if a made-up request is refused; a requested
/// one may be refused only by another version.
async fn next_numbers(
    app: &App,
    series: &Series,
    series_id: Option<i64>,
    asked: Option<&Inputs>,
) -> Result<NextNumbers, Problem> {
    let sample = asked.cloned().unwrap_or_else(|| series.sample(app.service.clock.now()));
    let allocator = &app.service.allocator;
    match allocator.preview_series(series, series_id, &sample, PREVIEWED).await {
        Err(AllocError::Input(_)) => Ok(Ok(Vec::new())),
        Err(below @ AllocError::BelowStart { .. }) => Ok(Err(below.to_string())),
        numbers => Ok(Ok(numbers?)),
    }
}

/// Codes of other active series, as far as the caller sees them, that read one of these numbers.
async fn readers(
    app: &App,
    caller: &Caller,
    series: &Series,
    numbers: Vec<String>,
) -> Result<Vec<String>, Problem> {
    let (catalog, sees) = (app.service.allocator.catalog(), caller.series_visibility());
    catalog.know_earlier(&app.service.ledger).await?;
    let own = series.definition().code.clone();
    compute(move || {
        let mut codes = BTreeSet::new();
        for number in numbers {
            let readings = catalog.readings_seen(&number, &sees).unwrap_or_default();
            codes.extend(readings.iter().map(|it| it.served.version.definition.code.clone()));
        }
        codes.remove(&own);
        codes.into_iter().collect()
    })
    .await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_that_differ_are_told_by_their_place_and_lists_of_texts_as_a_whole() {
        let read =
            |value: Value| -> SeriesDefinition { serde_json::from_value(value).expect("one") };
        let before = read(json!({
            "code": "S", "name": "n", "serves": { "types": ["A", "B"] }, "template": "{SEQ:3}",
            "serials": [{ "counter": ["type"] }], "variables": { "X": {} },
        }));
        let after = read(json!({
            "code": "S", "name": "n", "serves": { "types": ["Z", "A", "B"] }, "template": "{SEQ:4}",
            "serials": [{ "counter": ["type"], "reset": "year" }], "policy": "durable",
        }));
        let told = changed_fields(Some((&before, true)), (&after, false));
        let paths: Vec<&str> = told.iter().map(|change| &*change.path).collect();
        assert_eq!(
            paths,
            [
                "/active",
                "/definition/policy",
                "/definition/serials/0/reset",
                "/definition/serves/types",
                "/definition/template",
                "/definition/variables",
                "/once_per_document",
            ]
        );
        assert_eq!(told[1].before, None);
        assert_eq!(told[4].before, Some(json!("{SEQ:3}")));
        assert_eq!(changed_fields(Some((&after, true)), (&after, true)), []);
        let mut odd = Vec::new();
        compare("", Some(&json!({ "a/b~c": 1 })), Some(&json!({})), &mut odd);
        assert_eq!(odd[0].path, "/a~1b~0c");
        assert!(changed_fields(None, (&after, true)).len() == 3);
    }

    #[test]
    fn what_becomes_of_counters_is_said_in_words() {
        let list = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
        let said = |count: u64, on: &[&str], anew: &[&str]| {
            let told = Succession { go_on: list(on), begin_anew: list(anew) };
            counters_in_words(count, &told)
        };
        assert_eq!(said(0, &["SEQ"], &[]), "it has no counters yet");
        assert_eq!(said(1, &["SEQ"], &[]), "its 1 counter goes on");
        assert_eq!(
            said(7, &[], &["SEQ"]),
            "its 7 counters go on no more; others begin at the start"
        );
        assert!(said(10_000, &["A"], &["B"]).contains("those of A go on; those of B begin"));
    }
}
