//! `GET /api/v1/serials/unified/{serial}`: everything that is known of a transaction, oldest first.
//! Serials appear once the journal has them.

use axum::Extension;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use numbering::ExchangeKind;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::read;
use crate::ledger::{ChainQuery, Link, LinkName, LinkPlace};
use crate::web::App;
use crate::web::body::QueryOf;
use crate::web::instant::instant;
use crate::web::middleware::Caller;
use crate::web::paging::limit;
use crate::web::paging::rows_of_page;
use crate::web::problem::{Problem, Slug};

/// Which part of the chain.
#[derive(Clone, Debug, Default, Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct ChainPage {
    /// What `next` of the page before says.
    after: Option<String>,
    /// At most so many links, 1 to 1,000; 100 without it.
    #[serde(default, deserialize_with = "limit")]
    limit: Option<u32>,
}

/// A page of a chain.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ChainAnswer {
    /// The unified serial.
    unified_serial: String,
    /// Its links, oldest first.
    links: Vec<LinkAnswer>,
    /// Where the next page begins; null on the last one.
    next: Option<String>,
}

/// One link.
#[derive(Debug, Serialize, ToSchema)]
struct LinkAnswer {
    /// When.
    #[schema(format = DateTime)]
    at: String,
    /// `issued`; `accepted` for an interface serial that was checked; `begun`, `succeeded` or
    /// `failed` for a step.
    event: String,
    /// `unified`, `system` or `interface`.
    kind: &'static str,
    /// The serial.
    serial: String,
    /// The caller's name of the step for which a system serial was issued.
    #[serde(skip_serializing_if = "Option::is_none")]
    step: Option<String>,
    /// The attempt of a step.
    #[serde(skip_serializing_if = "Option::is_none")]
    attempt: Option<u32>,
    /// Who asked.
    user_id: String,
    /// From where.
    ip_address: Option<String>,
    /// Why the attempt failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

/// Shows the chain of a unified serial.
#[utoipa::path(
    get, path = "", tag = "serials",
    params(("serial" = String, Path, description = "A unified serial"), ChainPage),
    responses(
        (status = 200, body = ChainAnswer),
    )
)]
pub(crate) async fn show_chain(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    serial: Result<Path<String>, PathRejection>,
    QueryOf(page): QueryOf<ChainPage>,
) -> Result<axum::Json<ChainAnswer>, Problem> {
    let Path(serial) = serial.map_err(|refusal| Problem::field("serial", refusal.body_text()))?;
    read("serial", ExchangeKind::Unified, &serial)?;
    let rows = rows_of_page(page.limit)?;
    let after = page.after.as_deref().map(read_place).transpose()?;
    let is_first = after.is_none();
    // One more than requested: it shows whether there is another page.
    let query = ChainQuery { unified_serial: serial.clone(), after, limit: rows + 1 };
    let shown = caller.identity.row_visibility();
    // Only shown entries: `next` reveals nothing else. Serials belong to no project.
    let looking = app
        .read(&caller, |ledger| async move { ledger.exchange().chain_shown(&query, &shown).await });
    let mut links = looking.await?;
    let has_more = links.len() > rows as usize;
    links.truncate(rows as usize);
    let last = links.last().map(|link| write_place(&link.place));
    if links.is_empty() && is_first {
        let detail = "nothing carries this unified serial; what was just issued appears once the \
                      journal has it";
        return Err(Problem::new(Slug::NumberNotFound, detail));
    }
    let next = last.filter(|_| has_more);
    let links = links.into_iter().map(|link| LinkAnswer::of(link, &serial)).collect();
    Ok(axum::Json(ChainAnswer { unified_serial: serial, links, next }))
}

impl LinkAnswer {
    fn of(link: Link, unified_serial: &str) -> Self {
        let chars = link.serial.chars().count();
        let kind = ExchangeKind::ALL.into_iter().find(|kind| kind.chars() == chars);
        let within = link.document_id.as_deref().and_then(|id| id.strip_prefix(unified_serial));
        // `/step/<system and module>/<step>`
        let step = within.and_then(|id| id.strip_prefix("/step/")?.split_once('/'));
        LinkAnswer {
            at: instant(link.place.at_us),
            event: link.event,
            kind: kind.map_or("other", ExchangeKind::name),
            step: step.map(|(_, step)| step.to_owned()),
            serial: link.serial,
            attempt: link.attempt,
            user_id: link.user_id,
            ip_address: link.ip_address,
            reason: link.reason,
        }
    }
}

/// A place as the text of `next`.
fn write_place(place: &LinkPlace) -> String {
    match &place.name {
        LinkName::Issued(serial) => format!("{}.issued.{serial}", place.at_us),
        LinkName::Event(id) => format!("{}.event.{id}", place.at_us),
    }
}

fn read_place(text: &str) -> Result<LinkPlace, Problem> {
    let read = || {
        let mut parts = text.splitn(3, '.');
        let at_us = parts.next()?.parse().ok()?;
        let name = match (parts.next()?, parts.next()?) {
            ("issued", serial) if serial.bytes().all(|byte| byte.is_ascii_alphanumeric()) => {
                LinkName::Issued(serial.into())
            }
            ("event", id) => LinkName::Event(id.parse().ok()?),
            _ => return None,
        };
        Some(LinkPlace { at_us, name })
    };
    read().ok_or_else(|| Problem::field("after", "must be what `next` of a page said"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_survives_its_text() {
        for name in [LinkName::Issued("C0001A0101201507100123456789".into()), LinkName::Event(7)] {
            let place = LinkPlace { at_us: 1_436_486_400_000_000, name };
            assert_eq!(read_place(&write_place(&place)).expect("read back"), place);
        }
        for wrong in ["", "1", "1.issued", "x.event.1", "1.event.x", "1.other.1", "1.issued.a/b"] {
            assert!(read_place(wrong).is_err(), "{wrong}");
        }
    }
}
