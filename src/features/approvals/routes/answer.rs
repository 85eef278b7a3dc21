//! The answers about changes that two people answer for.

use serde::Serialize;
use utoipa::ToSchema;

use crate::ledger::{ChangeRequest, ChangeState, WantedChange};
use crate::web::App;
use crate::web::instant::instant;

/// Requests, newest first.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ChangeList {
    /// The requests.
    pub(super) change_requests: Vec<ChangeAnswer>,
    /// What to send as `after` for the next page, where there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) next: Option<i64>,
}

/// A requested change.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct ChangeAnswer {
    /// Its id.
    change_id: i64,
    /// `counter` or `chronology`.
    kind: &'static str,
    /// The configuration.
    config_id: i64,
    /// Its code.
    series: Option<String>,
    /// The counter; of dates, one of those that share them.
    counter_id: i64,
    /// Name of the serial.
    serial: String,
    /// Dimensions and period of the counter with their values.
    #[serde(serialize_with = "crate::features::register::counters::parts")]
    #[schema(value_type = Object)]
    counter_key: String,
    /// `pending`, `expired`, `approved` (and done), `rejected`.
    state: &'static str,
    /// Why.
    reason: String,
    /// Who asked.
    requested_by: String,
    /// When.
    #[schema(format = DateTime)]
    requested_at: String,
    /// Until then it can be approved.
    #[schema(format = DateTime)]
    expires_at: String,
    /// Who approved or rejected it.
    decided_by: Option<String>,
    /// When.
    #[schema(format = DateTime)]
    decided_at: Option<String>,
    /// Why.
    decision_reason: Option<String>,
    /// What it does, as of now, or did.
    effect: ChangeEffect,
}

/// What a change does. Of a counter its values, of dates the dates.
#[derive(Clone, Debug, Default, Serialize, ToSchema)]
struct ChangeEffect {
    /// The value that comes next.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_value: Option<String>,
    /// Highest value that is taken or lost, as far as the ledger knows; once it is made: as it was.
    #[serde(skip_serializing_if = "Option::is_none")]
    last_value: Option<String>,
    /// The least value that may come next. It rises with each number that is taken.
    #[serde(skip_serializing_if = "Option::is_none")]
    least_allowed: Option<String>,
    /// How many values are jumped over, and never issued.
    #[serde(skip_serializing_if = "Option::is_none")]
    skipped: Option<u64>,
    /// The first of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    first_skipped: Option<String>,
    /// The last of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    last_skipped: Option<String>,
    /// The last date that is to count.
    #[serde(skip_serializing_if = "Option::is_none")]
    last_date: Option<String>,
    /// The last date that counts; once it is made: as it was.
    #[serde(skip_serializing_if = "Option::is_none")]
    last_date_before: Option<String>,
    /// How many records are dated later than `last_date`. Their numbers stay issued.
    #[serde(skip_serializing_if = "Option::is_none")]
    dated_later: Option<u64>,
}

impl ChangeEffect {
    fn of(request: &ChangeRequest) -> Self {
        match &request.wanted {
            WantedChange::NextValue(next) => {
                let skipped = request.skipped();
                let step = i128::from(request.step);
                let count = |(first, last): (i64, i64)| last.abs_diff(first) / request.step + 1;
                ChangeEffect {
                    next_value: Some(next.to_string()),
                    last_value: Some(request.stands_at.to_string()),
                    least_allowed: Some((i128::from(request.stands_at) + step).to_string()),
                    skipped: Some(skipped.map_or(0, count)),
                    first_skipped: skipped.map(|(first, _)| first.to_string()),
                    last_skipped: skipped.map(|(_, last)| last.to_string()),
                    ..ChangeEffect::default()
                }
            }
            WantedChange::LastDate { date, .. } => ChangeEffect {
                last_date: Some(date.clone()),
                last_date_before: request.stands_on.clone(),
                dated_later: request.dated_later,
                ..ChangeEffect::default()
            },
        }
    }
}

impl ChangeAnswer {
    pub(super) fn of(app: &App, request: ChangeRequest) -> Self {
        let catalog = app.service.allocator.catalog();
        let mut versions = catalog.known().map(|(version, _)| version);
        let version = versions.find(|version| version.series_id == request.series_id);
        let is_over = request.expires_at_us <= app.service.clock.now_us();
        ChangeAnswer {
            change_id: request.change_id,
            kind: request.wanted.kind(),
            config_id: request.series_id,
            series: version.map(|version| version.definition.code.clone()),
            counter_id: request.counter_id,
            state: match request.state {
                ChangeState::Pending if is_over => "expired",
                ChangeState::Pending => "pending",
                ChangeState::Approved => "approved",
                ChangeState::Rejected => "rejected",
            },
            effect: ChangeEffect::of(&request),
            serial: request.serial,
            counter_key: request.key,
            reason: request.reason,
            requested_by: request.requested_by,
            requested_at: instant(request.requested_at_us),
            expires_at: instant(request.expires_at_us),
            decided_by: request.decided_by,
            decided_at: request.decided_at_us.map(instant),
            decision_reason: request.decision_reason,
        }
    }
}
