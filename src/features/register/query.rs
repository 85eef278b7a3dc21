//! Questions to the register of numbers, from a query or a command line: checked, and converted to
//! the ledger's filter; and where a list continues.
//!
//! A list never ends early without saying so: a search without an index is bounded by a period and
//! the time of a statement, and beyond them refused by its field.

use clap::Args;
use clap::builder::PossibleValuesParser;
use jiff::civil::Date;
use serde::Deserialize;
use sha2::{Digest, Sha256};
use unicode_normalization::UnicodeNormalization;

use crate::auth::{Act, Whose};
use crate::engine::allocator::Catalog;
use crate::features::register::documents::{position_text, read_position};
use crate::features::register::kinds::Kinds;
use crate::features::register::listing::Listing;
use crate::features::register::periods::Period;
use crate::features::register::variables::read_variables;
use crate::ledger::{
    IssuePath, JournalFilter, LedgerError, NumberStatus, Position, RowVisibility, SharedLedger,
    Sort,
};
use crate::terminal::settings::name_value;
use crate::web::body::must_be_storable;
use crate::web::middleware::Caller;
use crate::web::paging::limit;
use crate::web::paging::rows_of_page;
use crate::web::problem::Problem;
use crate::web::visibility::unknown_series;

/// The rule for a place in a list.
const NEXT_WANTED: &str =
    "must be the `next` of a page as it was given, with the filters and the sort of that page";

/// Bytes of the check of a place: enough that no changed text passes by chance.
const CHECK_BYTES: usize = 8;

/// What to look for; all that is given must match. Texts may be in any Unicode spelling that is the
/// same in normal form C.
#[derive(Clone, Debug, Default, Args, Deserialize, utoipa::IntoParams)]
#[command(next_help_heading = "Which numbers")]
#[serde(deny_unknown_fields, default)]
#[into_params(parameter_in = Query)]
pub struct NumberQuery {
    /// The number, exactly; one inside a range is answered with the row of its range, a revision
    /// with the row of its number.
    #[arg(long, help = "Only this number, also within a range or as a revision")]
    pub(crate) number: Option<String>,
    /// How the number begins; of a range, its first number.
    #[arg(long, value_name = "TEXT", conflicts_with = "number")]
    #[arg(help = "Only numbers that begin so")]
    pub(crate) number_prefix: Option<String>,
    /// What the number holds somewhere, upper and lower case apart; of a range, its first number.
    #[arg(long, value_name = "TEXT", conflicts_with = "number")]
    #[arg(help = "Only numbers that hold this somewhere")]
    pub(crate) number_containing: Option<String>,
    /// The document.
    #[arg(long = "document", value_name = "ID", help = "Only of this document")]
    pub(crate) document_id: Option<String>,
    /// Who asked: the person, or the identity that asked for itself.
    #[arg(long = "user", value_name = "NAME", help = "Only those that this user asked for")]
    pub(crate) user_id: Option<String>,
    /// The identity that asked, for itself or for whomever.
    #[arg(long, value_name = "NAME")]
    #[arg(help = "Only those that this service asked for, for itself or for whomever")]
    pub(crate) service: Option<String>,
    /// Code of the series, active or not.
    #[arg(long, value_name = "CODE", help = "Only of this series, active or not")]
    pub(crate) series: Option<String>,
    /// Document type.
    #[arg(long = "type", value_name = "TYPE", help = "Only of this document type")]
    #[serde(rename = "type")]
    pub(crate) type_code: Option<String>,
    /// Project.
    #[arg(long, help = "Only of this project")]
    pub(crate) project: Option<String>,
    /// The variable `ORIGINATOR`, or `ORG_CODE`, its older name.
    #[arg(long, help = "Only of this originator (the variable ORIGINATOR, or ORG_CODE)")]
    pub(crate) originator: Option<String>,
    /// The variable `RECIPIENT`.
    #[arg(long, help = "Only to this recipient (the variable RECIPIENT)")]
    pub(crate) recipient: Option<String>,
    /// Further variables, all of which must match: a JSON object of texts by name.
    #[arg(skip)]
    pub(crate) context: Option<String>,
    /// The same on a command line.
    #[arg(long, value_name = "NAME=VALUE", value_parser = name_value)]
    #[arg(help = "Only with this value of a variable; may be repeated")]
    #[serde(skip)]
    pub(crate) set: Vec<(String, String)>,
    /// Issued at or after: a date, which begins in the time zone of the number's series, or a
    /// date-time with offset.
    #[arg(long, value_name = "TIME")]
    #[arg(help = "Only issued from this date (of the series) or date-time with offset on")]
    pub(crate) from: Option<String>,
    /// Issued before, likewise.
    #[arg(long, value_name = "TIME")]
    #[arg(help = "Only issued before this date (of the series) or date-time with offset")]
    pub(crate) until: Option<String>,
    /// Of documents of this date or a later one.
    #[arg(long, value_name = "DATE", help = "Only of documents of this date or a later one")]
    pub(crate) document_date_from: Option<String>,
    /// Of documents of a date before this one.
    #[arg(long, value_name = "DATE", help = "Only of documents of a date before this one")]
    pub(crate) document_date_until: Option<String>,
    /// `issued`: without a revision, and not void; `revised`: with one at least; `voided`: void,
    /// and not replaced; `replaced`: void, and replaced by another number.
    #[arg(long)]
    #[arg(value_parser = PossibleValuesParser::new(["issued", "revised", "voided", "replaced"]))]
    #[arg(help = "Only those as issued, with a revision, void, or void and replaced")]
    pub(crate) status: Option<String>,
    /// `redis`, `database`, `imported` or `registered`.
    #[arg(long, value_parser = PossibleValuesParser::new(IssuePath::ALL.map(IssuePath::name)))]
    #[arg(help = "Only those that came by this path")]
    pub(crate) path: Option<String>,
    /// What rows are: some of `number`, `revision`, `gap`, with commas between them; all without
    /// it, but for gaps where a filter is by what they lack.
    #[arg(long, help = "Only rows that are these: number, revision, gap, with commas between")]
    pub(crate) kinds: Option<String>,
    /// `time`, the newest first, or `number`; `time` without it.
    #[arg(long, value_parser = PossibleValuesParser::new(["time", "number"]))]
    #[arg(default_value = "time", help = "By time of issue, the newest first, or by number")]
    pub(crate) sort: Option<String>,
    /// The `next` of the page before, with the same filters and sort; not with `number`, whose
    /// rows are one page.
    #[arg(skip)]
    pub(crate) after: Option<String>,
    /// At most so many rows, 1 to 1,000; 100 without it.
    #[arg(skip)]
    #[serde(deserialize_with = "limit")]
    pub(crate) limit: Option<u32>,
}

/// A query that was checked; the ledger knows its series.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    filter: JournalFilter,
    period: Period,
    kinds: Kinds,
    kinds_text: Option<String>,
    series: Option<String>,
    after: Option<String>,
}

impl NumberQuery {
    /// Checks the query, without a look-up.
    pub(crate) fn check(self) -> Result<Asked, Problem> {
        self.check_texts()?;
        let limit = rows_of_page(self.limit)?;
        let period = Period::read(self.from.as_deref(), self.until.as_deref())?;
        let variables = read_variables(self.context.as_deref(), self.set, self.recipient)?;
        let dated_from = read_date("document_date_from", self.document_date_from)?;
        let dated_until = read_date("document_date_until", self.document_date_until)?;
        must_follow("document_date_until", dated_from.as_ref(), dated_until.as_ref())?;
        let statuses = [
            ("issued", NumberStatus::Issued),
            ("revised", NumberStatus::Revised),
            ("voided", NumberStatus::Voided),
            ("replaced", NumberStatus::Replaced),
        ];
        let paths = IssuePath::ALL.map(|path| (path.name(), path));
        let sorts = [("time", Sort::Time), ("number", Sort::Number)];
        let normalised = |text: Option<String>| text.map(|text| text.nfc().collect::<String>());
        let filter = JournalFilter {
            number: normalised(self.number),
            number_prefix: normalised(self.number_prefix),
            number_part: normalised(self.number_containing),
            document_id: normalised(self.document_id),
            user_id: self.user_id,
            service: self.service,
            series_id: None,
            type_code: normalised(self.type_code),
            project: normalised(self.project),
            originator: normalised(self.originator),
            variables,
            from_us: None,
            until_us: None,
            periods: Vec::new(),
            dated_from,
            dated_until,
            status: one_of("status", self.status, &statuses)?,
            path: one_of("path", self.path, &paths)?,
            sort: one_of("sort", self.sort, &sorts)?.unwrap_or_default(),
            after: None,
            limit,
            shown: RowVisibility::Everything,
        };
        let (kinds, kinds_text) = (Kinds::read(self.kinds.as_deref(), &filter)?, self.kinds);
        let (series, after) = (normalised(self.series), self.after);
        Ok(Asked { filter, period, kinds, kinds_text, series, after })
    }

    /// Refuses texts that nothing can match, and impossible combinations.
    fn check_texts(&self) -> Result<(), Problem> {
        let texts = [
            ("number", &self.number),
            ("number_prefix", &self.number_prefix),
            ("number_containing", &self.number_containing),
            ("document_id", &self.document_id),
            ("user_id", &self.user_id),
            ("service", &self.service),
            ("series", &self.series),
            ("type", &self.type_code),
            ("project", &self.project),
            ("originator", &self.originator),
            ("recipient", &self.recipient),
        ];
        must_be_storable(&texts)?;
        for (field, text) in &texts[1..3] {
            match text {
                Some(_) if self.number.is_some() => {
                    return Err(Problem::field(*field, "must be left out with number"));
                }
                Some(text) if text.is_empty() => {
                    return Err(Problem::field(*field, "must not be empty; leave it out"));
                }
                _ => {}
            }
        }
        if self.after.is_some() && self.number.is_some() {
            let why = "must be left out with number: its rows are one page";
            return Err(Problem::field("after", why));
        }
        Ok(())
    }
}

impl Asked {
    /// Refuses a full scan: a query without any filter, and one that no index serves and that names
    /// no period.
    pub(crate) fn must_be_bounded(&self) -> Result<(), Problem> {
        let Period { from, until } = self.period;
        let looks_at_rows = self.filter.looks_at_rows() || self.series.is_some();
        if self.filter.has_index() || (from.is_some() && looks_at_rows) {
            return Ok(());
        }
        if looks_at_rows {
            let why = "is missing: no index leads to what is looked for; give the period to look \
                       through, or number_prefix, document_id, user_id or service";
            return Err(Problem::field("from", why));
        }
        if from.is_none() && until.is_none() {
            let why = "is missing: name at least one of number, number_prefix, document_id, \
                       user_id, service, from, until";
            return Err(Problem::field("number", why));
        }
        Ok(())
    }

    /// The same for a caller that is not shown all numbers.
    ///
    /// # Errors
    /// Gaps that were asked for by name.
    pub(crate) fn of_some_numbers(self) -> Result<Self, Problem> {
        let kinds = self.kinds.of_some_numbers(self.kinds_text.as_deref())?;
        Ok(Asked { kinds, ..self })
    }

    /// The list of the ledger.
    pub(crate) async fn read(
        self,
        ledger: &SharedLedger,
        catalog: &Catalog,
    ) -> Result<Listing, Problem> {
        let Asked { mut filter, period, kinds, series, after, .. } = self;
        if let Some(code) = series {
            let series_id = ledger.series().id_of(&code).await?;
            filter.series_id = Some(series_id.ok_or_else(|| unknown_series(&code))?);
        }
        period.bound(&mut filter, catalog)?;
        let mut listing = Listing { filter, kinds, period };
        if let Some(text) = after {
            let position = read_next(&listing, &text);
            let position = position.ok_or_else(|| Problem::field("after", NEXT_WANTED))?;
            listing.filter.after = Some(position);
        }
        Ok(listing)
    }
}

/// The `after` for the page behind a place.
pub(crate) fn next_of(listing: &Listing, last: &Position) -> String {
    let place = position_text(last);
    let check = check_of(listing, &place);
    format!("{place}.{check}")
}

/// The place that a text of [`next_of`] names; `None` if it is not one of this list.
fn read_next(listing: &Listing, text: &str) -> Option<Position> {
    let (place, check) = text.rsplit_once('.')?;
    if check == check_of(listing, place) { read_position(place) } else { None }
}

/// Distinguishes a place in this list from other texts. Not a secret: it catches mistakes, because
/// every place may be requested.
fn check_of(Listing { filter, kinds, period }: &Listing, place: &str) -> String {
    // Instants of days depend on the time zones of all series, hidden ones among them.
    let filter = JournalFilter { from_us: None, until_us: None, ..filter.clone() };
    let list = serde_json::to_string(&filter).expect("a filter is plain data");
    let list = Sha256::new().chain_update(list).chain_update(kinds.text());
    let list = list.chain_update(format!("{period:?}"));
    let digest = list.chain_update(place).finalize();
    digest[..CHECK_BYTES].iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The problem of a failed look-up: one that exceeded its time can be narrowed.
pub(crate) fn failed(error: LedgerError, filter: &JournalFilter) -> Problem {
    match error {
        LedgerError::LockTimeout { .. } if filter.number.is_none() => Problem::field(
            "from",
            "the look-up took longer than a request may: look through a shorter period, or name \
             number_prefix, document_id, user_id or service; `numerator find` and `export` have \
             more time",
        ),
        LedgerError::Refused(why) if why.starts_with("kinds: ") => {
            Problem::field("kinds", why.trim_start_matches("kinds: "))
        }
        LedgerError::Refused(why) if filter.after.is_some() && why.starts_with("after: ") => {
            Problem::field(
                "after",
                "its number is gone from the journal; begin with the first page",
            )
        }
        error => error.into(),
    }
}

fn one_of<T: Copy>(
    field: &'static str,
    text: Option<String>,
    known: &[(&str, T)],
) -> Result<Option<T>, Problem> {
    let Some(text) = text else { return Ok(None) };
    match known.iter().find(|(word, _)| *word == text) {
        Some((_, value)) => Ok(Some(*value)),
        None => {
            let words: Vec<&str> = known.iter().map(|(word, _)| *word).collect();
            Err(Problem::field(field, format!("must be one of {}", words.join(", "))))
        }
    }
}

/// Refuses a period that ends before it begins.
fn must_follow<T: PartialOrd>(
    field: &'static str,
    from: Option<T>,
    until: Option<T>,
) -> Result<(), Problem> {
    match (from, until) {
        (Some(from), Some(until)) if until <= from => {
            Err(Problem::field(field, "must be later than where the period begins"))
        }
        _ => Ok(()),
    }
}

/// A civil date as the journal writes it.
fn read_date(field: &'static str, text: Option<String>) -> Result<Option<String>, Problem> {
    match text {
        Some(text) if text.parse::<Date>().is_ok_and(|date| date.to_string() == text) => {
            Ok(Some(text))
        }
        Some(_) => Err(Problem::field(field, "must be a date such as 2025-12-02")),
        None => Ok(None),
    }
}

impl Caller {
    /// The query within the caller's reach; `None`: the caller sees nothing of it.
    ///
    /// # Errors
    /// A narrowed caller must name what it asks about.
    pub(crate) fn restricted(
        &self,
        catalog: &Catalog,
        query: NumberQuery,
    ) -> Result<Option<NumberQuery>, Problem> {
        self.must_know(catalog, query.series.as_deref())?;
        if self.identity.may(Act::ReadNumbers) == Some(Whose::Own) {
            // For itself or for any person.
            let own = self.identity.name.to_string();
            let is_of_others = query.service.as_ref().is_some_and(|service| *service != own);
            let service = Some(own);
            return Ok((!is_of_others).then_some(NumberQuery { service, ..query }));
        }
        // The rows of one number are few: the visible ones are selected here.
        if query.number.is_some() {
            return Ok(Some(query));
        }
        let is_seen = self.must_be_in_scope(query.series.as_deref(), query.project.as_deref())?;
        Ok(is_seen.then_some(query))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::ledger::ValueOf;

    fn text(text: &str) -> Option<String> {
        Some(text.to_owned())
    }

    #[test]
    fn a_look_up_names_something_to_look_for() {
        let refused = |query: NumberQuery| {
            let asked = query.check().expect("checked");
            asked.must_be_bounded().err()?.wrong_field().map(str::to_owned)
        };
        assert_eq!(refused(NumberQuery::default()).as_deref(), Some("number"));
        let all = NumberQuery { limit: Some(10), ..NumberQuery::default() };
        assert_eq!(refused(all).as_deref(), Some("number"));
        for query in [
            NumberQuery { series: text("S"), ..NumberQuery::default() },
            NumberQuery { until: text("2026-01-01"), path: text("redis"), ..Default::default() },
        ] {
            assert_eq!(refused(query.clone()).as_deref(), Some("from"));
            assert_eq!(refused(NumberQuery { from: text("2025-01-01"), ..query.clone() }), None);
            assert_eq!(refused(NumberQuery { user_id: text("u"), ..query }), None);
        }
        assert_eq!(refused(NumberQuery { until: text("2026-01-01"), ..Default::default() }), None);
        let number = NumberQuery { number: text("A/1"), ..NumberQuery::default() };
        let Asked { filter, .. } = number.check().expect("checked");
        assert_eq!((filter.number.as_deref(), filter.limit), (Some("A/1"), 100));
        for limit in [0, 1_001] {
            let limit = Some(limit);
            let query = NumberQuery { user_id: text("ci"), limit, ..NumberQuery::default() };
            assert!(query.check().is_err(), "{limit:?}");
        }
        assert!(NumberQuery { number: text("\0"), ..NumberQuery::default() }.check().is_err());
    }

    #[test]
    fn a_place_is_one_of_its_own_list_alone() {
        let of = ValueOf { counter_id: 7, value: 42 };
        let position = Position { issued_at_us: 1_700_000_000_000_000, of };
        let place = position_text(&position);
        let filter = JournalFilter { series_id: Some(3), limit: 10, ..JournalFilter::default() };
        let kinds = Kinds { numbers: true, revisions: true, gaps: true };
        let list = Listing { filter, kinds, period: Period::default() };
        let next = next_of(&list, &position);
        let of = |filter| Listing { filter, ..list.clone() };
        let filter = || list.filter.clone();
        let other_page = of(JournalFilter { limit: 20, after: Some(position), ..filter() });
        assert_eq!(read_next(&other_page, &next), Some(position));
        let variables = BTreeMap::from([("V".to_owned(), "1".to_owned())]);
        for other in [
            of(JournalFilter { series_id: Some(4), ..filter() }),
            of(JournalFilter { series_id: None, ..filter() }),
            of(JournalFilter { sort: Sort::Number, ..filter() }),
            of(JournalFilter { variables, ..filter() }),
            Listing { kinds: Kinds { gaps: false, ..kinds }, ..list.clone() },
            Listing {
                period: Period::read(Some("2026-01-01"), None).expect("a day"),
                ..list.clone()
            },
        ] {
            assert_eq!(read_next(&other, &next), None, "{other:?}");
        }
        let changed = next.replace(".42.", ".43.");
        for text in [&place, &changed, "", &next[..next.len() - 1]] {
            assert_eq!(read_next(&list, text), None, "{text}");
        }
    }

    #[test]
    fn a_look_up_that_takes_too_long_names_what_narrows_it() {
        let late = || LedgerError::LockTimeout { cause: "late".into(), counter: None };
        let field =
            |filter: &JournalFilter| failed(late(), filter).wrong_field().map(str::to_owned);
        let list = JournalFilter::default();
        assert_eq!(field(&list).as_deref(), Some("from"));
        assert_eq!(field(&JournalFilter { number: text("A/1"), ..list }), None);
    }
}
