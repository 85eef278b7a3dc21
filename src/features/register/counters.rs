//! `GET /api/v1/document-numbering/counters`: counters by what they count, with how full they are.

use std::collections::{BTreeMap, HashMap};

use axum::Extension;
use axum::extract::State;
use clap::Args;
use numbering::{Series, SeriesDefinition, hexadecimal};
use serde::{Deserialize, Serialize, Serializer};
use sha2::{Digest, Sha256};
use unicode_normalization::UnicodeNormalization;
use utoipa::ToSchema;

use crate::engine::allocator::Catalog;
use crate::features::numbers::answer::CounterKeyAnswer;
use crate::features::register::whole::{Whole, whole_series};
use crate::ledger::{
    CounterFilter, KeyCondition, KeyPart, ListedCounter, SeriesVersion, SharedLedger,
};
use crate::web::App;
use crate::web::body::QueryOf;
use crate::web::body::must_be_storable;
use crate::web::instant::instant;
use crate::web::middleware::Caller;
use crate::web::paging::limit;
use crate::web::paging::rows_of_page;
use crate::web::problem::Problem;
use crate::web::visibility::unknown_series;

/// Periods whose names are a year.
const YEARS: [&str; 2] = ["year", "fiscal-year"];
/// Periods whose names begin with one.
const PARTS_OF_YEARS: [&str; 7] = ["quarter", "month", "week", "day", "hour", "minute", "second"];
/// Years A.D. that are accepted: 2568 belongs to another era.
const YEAR_MAX: u16 = 2399;

/// Which counters to list; all that is given must match.
#[derive(Clone, Debug, Default, Args, Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct CounterQuery {
    /// Code of the series, active or not.
    #[arg(long, value_name = "CODE", help = "Only of this series, active or not")]
    pub(crate) series: Option<String>,
    /// Document type that they count; of counters that count no type apart, one that their series
    /// serves by name.
    #[arg(long = "type", value_name = "TYPE", help = "Only of this document type")]
    #[serde(rename = "type")]
    pub(crate) type_code: Option<String>,
    /// Project, likewise.
    #[arg(long, help = "Only of this project")]
    pub(crate) project: Option<String>,
    /// Originator, likewise: `ORIGINATOR` or `ORG_CODE`.
    #[arg(long, help = "Only of this originator")]
    pub(crate) originator: Option<String>,
    /// Year A.D. of their period; counters that never begin anew have none.
    #[arg(long, help = "Only of periods in this year A.D")]
    pub(crate) year: Option<String>,
    /// The `next` of the page before, whose question was the same.
    #[arg(long, value_name = "NEXT", help = "Go on behind a page: its `next`")]
    pub(crate) after: Option<String>,
    /// At most so many counters, 1 to 1,000; 100 without it.
    #[arg(skip)]
    #[serde(default, deserialize_with = "limit")]
    pub(crate) limit: Option<u32>,
    /// Of which series a counter that counts no project apart is shown to who asks for a project.
    #[arg(skip)]
    #[serde(skip)]
    pub(crate) whole: Whole,
}

/// Counters by series, serial and key.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct CounterList {
    /// The counters.
    pub(crate) counters: Vec<CounterAnswer>,
    /// What to send as `after` for the next page, where there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) next: Option<String>,
}

/// A counter as the ledger knows it.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct CounterAnswer {
    /// Its id, as in `gaps` and in the columns `counter_id`.
    pub(crate) counter_id: i64,
    /// Its series.
    config_id: i64,
    /// Code of its series.
    pub(crate) series: Option<String>,
    /// Whether the series serves requests.
    active: Option<bool>,
    /// Name of the serial.
    pub(crate) serial: String,
    /// Dimensions and period with their values.
    #[serde(serialize_with = "parts")]
    #[schema(value_type = Object)]
    pub(crate) counter_key: String,
    /// Highest value that is taken or lost, as far as the ledger knows; none while no value is.
    pub(crate) value: Option<String>,
    /// First value.
    pub(crate) first: String,
    /// Distance between two values.
    step: String,
    /// What nobody takes past before the ledger raises it.
    pub(crate) ceiling: String,
    /// Last value that may be issued; none where the series has the serial no more.
    max: Option<String>,
    /// Characters of `value` but for leading zeros.
    pub(crate) width_used: Option<usize>,
    /// Most characters that the template gives it.
    pub(crate) width_max: Option<usize>,
    /// When the highest of its values that the journal has was issued.
    #[schema(format = DateTime)]
    pub(crate) last_used_at: Option<String>,
}

pub(crate) fn parts<S: Serializer>(key: &str, serializer: S) -> Result<S::Ok, S::Error> {
    CounterKeyAnswer::of(key).serialize(serializer)
}

/// Lists counters by series, serial and key, page by page.
#[utoipa::path(
    get, path = "", tag = "numbers",
    params(CounterQuery),
    responses(
        (status = 200, body = CounterList),
    )
)]
pub(crate) async fn list_counters(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    QueryOf(query): QueryOf<CounterQuery>,
) -> Result<axum::Json<CounterList>, Problem> {
    let catalog = app.service.allocator.catalog();
    caller.must_know(&catalog, query.series.as_deref())?;
    let asked = (query.series.as_deref(), query.project.as_deref());
    if !caller.must_be_in_scope(asked.0, asked.1)? {
        return Ok(axum::Json(CounterList { counters: Vec::new(), next: None }));
    }
    let limit = rows_of_page(query.limit)?;
    let whole = whole_series(&app, &caller, &catalog, asked).await?;
    let query = CounterQuery { whole, ..query };
    let looking = app
        .read(&caller, |ledger| async move { find_counters(ledger, &catalog, query, limit).await });
    looking.await.map(axum::Json)
}

/// A page of `limit` counters.
///
/// # Errors
/// An invalid question, by its field; a ledger that does not answer.
pub(crate) async fn find_counters(
    ledger: SharedLedger,
    catalog: &Catalog,
    query: CounterQuery,
    limit: u32,
) -> Result<CounterList, Problem> {
    let query = query.normalised()?;
    // One row more than requested shows whether there is another page.
    let filter = CounterFilter { limit: limit + 1, ..query.filter(catalog)? };
    let mut found = ledger.counters().list(&filter).await?.ok_or_else(not_a_next)?;
    let mut next = None;
    if found.len() > limit as usize {
        found.truncate(limit as usize);
        next = found.last().map(|last| query.position_text(last.counter.counter_id));
    }
    let series: HashMap<i64, _> = catalog.known().map(|known| (known.0.series_id, known)).collect();
    let answer =
        |listed: ListedCounter| CounterAnswer::of(series.get(&listed.counter.series_id), listed);
    Ok(CounterList { counters: found.into_iter().map(answer).collect(), next })
}

fn not_a_next() -> Problem {
    Problem::field("after", "must be the `next` of a page of this same list, as it was given")
}

impl CounterAnswer {
    fn of(series: Option<&(&SeriesVersion, Option<&Series>)>, listed: ListedCounter) -> Self {
        let ListedCounter { counter, last_used_at_us } = listed;
        let value = (counter.taken > counter.origin).then_some(counter.taken);
        let first = i128::from(counter.origin) + i128::from(counter.step);
        let version = series.map(|(version, _)| *version);
        let compiled = series.and_then(|(_, compiled)| *compiled);
        let serial = compiled.and_then(|compiled| {
            compiled.serials().iter().find(|serial| serial.name == counter.serial)
        });
        let width = compiled.and_then(|compiled| {
            compiled.width_of(&counter.serial, u64::try_from(value.unwrap_or(0)).ok()?)
        });
        CounterAnswer {
            counter_id: counter.counter_id,
            config_id: counter.series_id,
            series: version.map(|version| version.definition.code.clone()),
            active: version.map(|version| version.active),
            value: value.map(|value| value.to_string()),
            first: first.to_string(),
            step: counter.step.to_string(),
            ceiling: counter.ceiling.to_string(),
            max: serial.map(|serial| serial.max.to_string()),
            width_used: width.map(|width| if value.is_some() { width.used } else { 0 }),
            width_max: width.map(|width| width.max),
            last_used_at: last_used_at_us.map(instant),
            serial: counter.serial,
            counter_key: counter.key,
        }
    }
}

impl CounterQuery {
    /// The question in the form in which keys are written.
    fn normalised(self) -> Result<Self, Problem> {
        let CounterQuery { series, type_code, project, originator, year, after, limit, whole } =
            self;
        let normal = |text: Option<String>| text.map(|text| text.nfc().collect::<String>());
        let texts = [
            ("series", &series),
            ("type", &type_code),
            ("project", &project),
            ("originator", &originator),
        ];
        must_be_storable(&texts)?;
        Ok(CounterQuery {
            series: normal(series),
            type_code: normal(type_code),
            project: normal(project),
            originator: normal(originator),
            year,
            after,
            limit,
            whole,
        })
    }

    /// The filter for the ledger, without its limit.
    fn filter(&self, catalog: &Catalog) -> Result<CounterFilter, Problem> {
        let series_id = match &self.series {
            None => None,
            Some(code) => {
                let named = catalog.known().find(|(version, _)| version.definition.code == *code);
                let named = named.map(|(version, _)| version.series_id);
                Some(named.ok_or_else(|| unknown_series(code))?)
            }
        };
        let dimensions = [(&self.type_code, &TYPE), (&self.originator, &ORIGINATOR)];
        let mut keys: Vec<KeyCondition> = dimensions
            .into_iter()
            .filter_map(|(value, dimension)| Some(dimension.condition(catalog, value.as_ref()?)))
            .collect();
        keys.extend(self.project.as_ref().map(|of| of_project(catalog, of, &self.whole)));
        keys.extend(self.year.as_deref().map(of_year).transpose()?);
        let after = self.after.as_deref().map(|text| self.read_position(text)).transpose()?;
        Ok(CounterFilter { series_id, keys, after, limit: 0 })
    }

    /// The text of a place: a counter and the question, so that it is not a place in another list.
    fn position_text(&self, counter_id: i64) -> String {
        let CounterQuery { series, type_code, project, originator, year, .. } = self;
        let place = (counter_id, series, type_code, project, originator, year);
        let digest = Sha256::digest(serde_json::json!(place).to_string());
        format!("{counter_id}.{}", hexadecimal(&digest[..4]))
    }

    fn read_position(&self, text: &str) -> Result<i64, Problem> {
        let id = text.split_once('.').and_then(|(id, _)| id.parse().ok());
        id.filter(|id| self.position_text(*id) == text).ok_or_else(not_a_next)
    }
}

/// A dimension with a query field of its own.
struct Dimension {
    /// Its names in keys, and those under which a key holds ids of a table.
    names: &'static [(&'static str, &'static str)],
    /// The table that a series refers to by a name.
    table: fn(&SeriesDefinition, &str) -> Option<String>,
    /// The names that a series serves.
    served: fn(&SeriesDefinition) -> &[String],
}

const TYPE: Dimension = Dimension {
    names: &[("type", "type_id")],
    table: |series, _| series.references.type_code.clone(),
    served: |series| &series.serves.types,
};

const PROJECT: Dimension = Dimension {
    names: &[("project", "project_id")],
    table: |series, _| series.references.project.clone(),
    served: |series| &series.serves.projects,
};

const ORIGINATOR: Dimension = Dimension {
    names: &[("ORIGINATOR", "ORIGINATOR_id"), ("ORG_CODE", "ORG_CODE_id")],
    table: |series, name| series.variables.get(name)?.reference.clone(),
    served: |series| &series.serves.originators,
};

impl Dimension {
    /// The condition on the keys of its counters. Ids mean what the table of their series says.
    fn condition(&self, catalog: &Catalog, value: &str) -> KeyCondition {
        let mut condition = KeyCondition::default();
        let mut tables: BTreeMap<(&str, String), Vec<i64>> = BTreeMap::new();
        for (name, of_ids) in self.names {
            condition.parts.push(part(name, value));
            condition.absent.extend([*name, *of_ids]);
            for (version, _) in catalog.known() {
                if let Some(table) = (self.table)(&version.definition, name) {
                    tables.entry((*of_ids, table)).or_default().push(version.series_id);
                }
            }
        }
        for ((of_ids, table), series) in tables {
            if let Some(row) = catalog.reference().by_code(&table, value) {
                let of_table = KeyPart { series: Some(series), ..part(of_ids, &row.id) };
                condition.parts.push(of_table);
            }
        }
        let serves = |version: &SeriesVersion| {
            (self.served)(&version.definition).iter().any(|served| served == value)
        };
        let serving = catalog.known().filter(|(version, _)| serves(version));
        condition.series_without = serving.map(|(version, _)| version.series_id).collect();
        condition
    }
}

/// The condition on the keys of a project's counters; for series without a project dimension, only
/// those all of whose numbers are shown.
pub(crate) fn of_project(catalog: &Catalog, project: &str, whole: &Whole) -> KeyCondition {
    let mut condition = PROJECT.condition(catalog, project);
    if let Some(whole) = whole {
        condition.series_without.retain(|series_id| whole.contains(series_id));
    }
    condition
}

fn part(name: &str, value: &str) -> KeyPart {
    KeyPart { name: name.into(), value: value.into(), is_beginning: false, series: None }
}

/// A period within a year.
fn of_year(text: &str) -> Result<KeyCondition, Problem> {
    let year = text.parse::<u16>().ok().filter(|year| (1..=YEAR_MAX).contains(year));
    let year = year.ok_or_else(|| {
        Problem::field("year", "must be a year A.D., such as 2025 for the year 2568 B.E.")
    })?;
    let year = format!("{year:04}");
    let whole = YEARS.iter().map(|name| part(name, &year));
    let within = PARTS_OF_YEARS
        .iter()
        .map(|name| KeyPart { is_beginning: true, ..part(name, &format!("{year}-")) });
    Ok(KeyCondition { parts: whole.chain(within).collect(), ..KeyCondition::default() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ledger::Counter;

    #[test]
    fn a_counter_of_which_nothing_is_taken_has_no_value_and_one_of_no_series_no_width() {
        let counter = Counter {
            counter_id: 1,
            series_id: 7,
            serial: "SEQ".into(),
            key: "type=A".into(),
            partition: 0,
            epoch: 1,
            origin: -5,
            start: -5,
            taken: -5,
            ceiling: 45,
            step: 10,
            journaled: 0,
            returned: 0,
            reissued: 0,
        };
        let (version, series) = numbering_of("A{SEQ:3}");
        let listed = ListedCounter { counter, last_used_at_us: None };
        let answer = CounterAnswer::of(Some(&(&version, Some(&series))), listed.clone());
        assert_eq!((answer.value, answer.first.as_str()), (None, "5"));
        assert_eq!((answer.width_used, answer.width_max), (Some(0), Some(3)));
        let stranger = CounterAnswer::of(None, listed);
        assert_eq!((stranger.series, stranger.max, stranger.width_max), (None, None, None));
    }

    fn numbering_of(template: &str) -> (SeriesVersion, Series) {
        let definition: SeriesDefinition = serde_json::from_value(serde_json::json!({
            "code": "A", "name": "A", "template": template, "serves": { "types": ["A"] },
            "serials": [{ "start": 5, "step": 10, "counter": ["type"] }],
        }))
        .expect("a definition");
        let version = SeriesVersion {
            series_id: 7,
            version: 1,
            active: true,
            partition: 0,
            definition: definition.clone(),
            saved_by: String::new(),
            saved_at_us: 0,
            reason: String::new(),
            is_new: false,
            stamp: 1,
        };
        (version, Series::restore(definition).expect("a series"))
    }

    #[test]
    fn a_year_is_one_ad() {
        for wrong in ["", "0", "2568", "-5", "2025-01", "25.0"] {
            assert!(of_year(wrong).is_err(), "{wrong}");
        }
        let parts = of_year("2025").expect("a year").parts;
        let day = parts.iter().find(|part| part.name == "day").expect("days have one");
        assert_eq!((day.value.as_str(), day.is_beginning), ("2025-", true));
    }
}
