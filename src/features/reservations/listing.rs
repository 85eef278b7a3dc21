//! `GET /api/v1/document-numbering/reservations`: the live reservations that a reader sees, by id;
//! and which ones are listed, for the route and the command alike.

use std::sync::Arc;

use axum::Extension;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use clap::ValueEnum;
use numerator_runtime::actor::{person_of, service_of};
use serde::{Deserialize, Deserializer, Serialize, de};
use utoipa::ToSchema;
use uuid::Uuid;

use super::acting::list;
use super::answer::ReservationAnswer;
use crate::features::numbers::request::check_document_id;
use crate::ledger::{
    LedgerError, LiveStatus, NamedReservation, ReservationFilter, RowVisibility, SharedLedger,
};
use crate::web::App;
use crate::web::body::{QueryOf, must_be_storable};
use crate::web::instant::instant;
use crate::web::middleware::Caller;
use crate::web::paging::{limit, rows_of_page};
use crate::web::problem::Problem;

/// Where a reservation stands, as it is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum AskedStatus {
    /// Its document holds the number.
    Reserved,
    /// Its time is over, and it has not ended yet.
    Expired,
    /// It is confirmed, and its number is not in the journal yet.
    Issued,
    /// It is cancelled, and has not ended yet.
    Cancelled,
}

impl From<AskedStatus> for LiveStatus {
    fn from(asked: AskedStatus) -> Self {
        match asked {
            AskedStatus::Reserved => LiveStatus::Reserved,
            AskedStatus::Expired => LiveStatus::Over,
            AskedStatus::Issued => LiveStatus::Confirmed,
            AskedStatus::Cancelled => LiveStatus::Cancelled,
        }
    }
}

/// Which live reservations; all that is given must match.
#[derive(Clone, Debug, Default, Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct ReservationsQuery {
    /// The document.
    #[serde(default)]
    document_id: Option<String>,
    /// Code of the series.
    #[serde(default)]
    series: Option<String>,
    /// `reserved`, `expired`, `issued` or `cancelled`.
    #[serde(default)]
    #[param(value_type = Option<String>)]
    status: Option<AskedStatus>,
    /// The `next` of the page before.
    #[serde(default, deserialize_with = "place")]
    #[param(value_type = Option<String>)]
    after: Option<Uuid>,
    /// At most so many reservations, 1 to 1,000; 100 without it.
    #[serde(default, deserialize_with = "limit")]
    limit: Option<u32>,
}

fn place<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Uuid>, D::Error> {
    let text = String::deserialize(deserializer)?;
    text.parse().map(Some).map_err(|_| de::Error::custom("must be a page's `next`"))
}

/// A page of live reservations, by id.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ReservationList<'a> {
    /// The reservations.
    reservations: Vec<ListedReservation<'a>>,
    /// What to send as `after` for the next page, where there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

/// A live reservation in a list.
#[derive(Debug, Serialize, ToSchema)]
struct ListedReservation<'a> {
    /// Its id.
    reservation_id: String,
    /// `reserved`; `issued`: confirmed, and about to be in the journal; `expired` or `cancelled`:
    /// about to end.
    status: &'static str,
    /// The number that its document holds; of a block the first one.
    document_number: &'a str,
    /// The last number of a block.
    #[serde(skip_serializing_if = "Option::is_none")]
    last_number: Option<String>,
    /// How many numbers a block has.
    #[serde(skip_serializing_if = "Option::is_none")]
    count: Option<u64>,
    /// The document.
    document_id: Option<&'a str>,
    /// Document type.
    #[serde(rename = "type")]
    type_code: &'a str,
    /// Project, where there is one.
    project: Option<&'a str>,
    /// Code of its series.
    series: &'a str,
    /// When it was made.
    #[schema(format = DateTime)]
    reserved_at: String,
    /// Until when it is reserved. A block has no end by time.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(format = DateTime)]
    expires_at: Option<String>,
    /// Who reserved it: the person, or the identity that asked for itself.
    user_id: &'a str,
    /// The service through which the person asked.
    service: Option<&'a str>,
}

impl<'a> ListedReservation<'a> {
    fn of(NamedReservation { reservation, series }: &'a NamedReservation) -> Self {
        let record = &*reservation.entry.record;
        let ReservationAnswer { status, last_number, count, .. } =
            ReservationAnswer::of_live(reservation, false);
        ListedReservation {
            reservation_id: reservation.id().to_string(),
            status,
            document_number: &reservation.entry.number,
            last_number,
            count,
            document_id: record.document_id.as_deref(),
            type_code: &record.type_code,
            project: record.project.as_deref(),
            series,
            reserved_at: instant(reservation.reserved_at_us),
            expires_at: reservation.ends_at_us().map(instant),
            user_id: person_of(&record.user_id),
            service: service_of(&record.user_id),
        }
    }
}

/// What is listed, before the ledger is asked for the series.
#[derive(Clone, Debug)]
pub(super) struct Wanted {
    /// Code of the series.
    pub(super) series: Option<String>,
    /// All else.
    pub(super) filter: ReservationFilter,
}

impl Wanted {
    /// What is asked for, of what a reader sees.
    ///
    /// # Errors
    /// A field that nothing can match.
    pub(super) fn of(
        (document_id, series): (Option<String>, Option<String>),
        status: Option<AskedStatus>,
        shown: RowVisibility,
    ) -> Result<Self, Problem> {
        must_be_storable(&[("series", &series)])?;
        let document_id = document_id.map(|id| check_document_id("document_id", id)).transpose()?;
        let status = status.map(LiveStatus::from);
        let filter =
            ReservationFilter { document_id, status, shown, ..ReservationFilter::default() };
        Ok(Wanted { series, filter })
    }

    /// The filter for the ledger; none where no series has the code.
    ///
    /// # Errors
    /// A ledger that does not answer.
    pub(super) async fn read(
        self,
        ledger: &SharedLedger,
    ) -> Result<Option<ReservationFilter>, LedgerError> {
        let Wanted { series, filter } = self;
        let Some(code) = series else { return Ok(Some(filter)) };
        let series_id = ledger.series().id_of(&code).await?;
        Ok(series_id.map(|id| ReservationFilter { series_id: Some(id), ..filter }))
    }
}

/// Lists live reservations: the caller's own, or those within its series and projects. A series
/// that the caller does not see has none.
#[utoipa::path(
    get, path = "", tag = "reservations",
    params(ReservationsQuery),
    responses((status = 200, body = ReservationList))
)]
pub(crate) async fn list_reservations(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    QueryOf(query): QueryOf<ReservationsQuery>,
) -> Result<Response, Problem> {
    let ReservationsQuery { document_id, series, status, after, limit } = query;
    let rows = rows_of_page(limit)?;
    let wanted = Wanted::of((document_id, series), status, caller.identity.row_visibility())?;
    caller.holdings.must_have_room_for_an_answer()?;
    let context = Arc::clone(&app.service.context);
    let listing = app.read(&caller, move |ledger| async move {
        let Some(filter) = wanted.read(&ledger).await? else { return Ok(Vec::new()) };
        // One more than requested shows whether there is another page.
        list(&context, &ReservationFilter { after, limit: rows + 1, ..filter }).await
    });
    let mut found: Vec<NamedReservation> = listing.await?;
    let mut next = None;
    if found.len() > rows as usize {
        found.truncate(rows as usize);
        next = found.last().map(|named| named.reservation.id().to_string());
    }
    let reservations = found.iter().map(ListedReservation::of).collect();
    Ok(axum::Json(ReservationList { reservations, next }).into_response())
}
