//! The visible part of the journal, as a condition of a search.

use numbering::ExchangeKind;
use numerator_runtime::actor::through;

use crate::query::QueryBuilder;
use crate::{CodesWithin, RowVisibility};

/// Keeps the visible rows of the journal, in a search that calls them `alias`.
pub(crate) fn push_rows(query: &mut QueryBuilder<'_>, alias: &str, shown: &RowVisibility) {
    let RowVisibility::Part { within, own } = shown else { return };
    query.push(" and (1 = 0");
    push_own(query, alias, own.as_deref());
    if let Some(CodesWithin { series, projects }) = within {
        query.push(" or (1 = 1");
        if let Some(codes) = series {
            query.push(" and ").push(alias).push(".series_id in (select series_id from series");
            push_among(query.push(" where code"), codes);
            query.push(")");
        }
        if let Some(codes) = projects {
            push_among(query.push(" and ").push(alias).push(".project"), codes);
        }
        query.push(")");
    }
    query.push(")");
}

/// The same of the events of exchange serials: each is of the series of its kind, of no project,
/// and of the actor that was seen with it.
pub(crate) fn push_serial_events(query: &mut QueryBuilder<'_>, alias: &str, shown: &RowVisibility) {
    let RowVisibility::Part { within, own } = shown else { return };
    query.push(" and (1 = 0");
    push_own(query, alias, own.as_deref());
    for kind in ExchangeKind::ALL {
        if within.as_ref().is_some_and(|within| within.has(kind.type_code(), None)) {
            let chars = i64::try_from(kind.chars()).unwrap_or(i64::MAX);
            query.push(" or length(").push(alias).push(".serial) = ").push_bind(chars);
        }
    }
    query.push(")");
}

/// Or what an identity took, for itself or for a person.
fn push_own(query: &mut QueryBuilder<'_>, alias: &str, own: Option<&str>) {
    let Some(own) = own else { return };
    let begin = through(own, "");
    let chars = i64::try_from(begin.chars().count()).unwrap_or(i64::MAX);
    query.push(" or ").push(alias).push(".user_id = ").push_bind(own.to_owned());
    query.push(" or substr(").push(alias).push(".user_id, 1, cast(").push_bind(chars);
    query.push(" as integer)) = ").push_bind(begin);
}

/// Ends a condition on a column of texts: its value is among these.
fn push_among(query: &mut QueryBuilder<'_>, texts: &[String]) {
    let mut before = " in (";
    for text in texts {
        query.push(before).push_bind(text.clone());
        before = ", ";
    }
    query.push(if texts.is_empty() { " in (null)" } else { ")" });
}
