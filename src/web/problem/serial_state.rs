//! The state of a refused serial: what a caller needs to decide what to do.

use serde::Serialize;
use utoipa::ToSchema;

use crate::ledger::{FirstSeen, Step, StepState};
use crate::web::instant::instant;

/// How a serial stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct SerialState {
    /// `accepted` for an interface serial; `in-progress`, `succeeded` or `failed` for a step.
    pub state: &'static str,
    /// Since when, RFC 3339 in UTC.
    #[schema(format = DateTime)]
    pub since: String,
    /// Who accepted the serial, began the attempt or ended it.
    pub user_id: String,
    /// The attempt of a step.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attempt: Option<u32>,
    /// How often an interface serial was repeated, this time included.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repeats: Option<u64>,
}

impl SerialState {
    /// The state of a repeated interface serial.
    pub(crate) fn of_first_seen(first_seen: &FirstSeen) -> Self {
        SerialState {
            state: "accepted",
            since: instant(first_seen.at_us),
            user_id: first_seen.user_id.clone(),
            attempt: None,
            repeats: Some(first_seen.repeats),
        }
    }

    /// The state of a step.
    pub(crate) fn of_step(step: &Step) -> Self {
        SerialState {
            state: word(step.state),
            since: instant(step.ended_at_us.unwrap_or(step.begun_at_us)),
            user_id: step.ended_by.clone().unwrap_or_else(|| step.begun_by.clone()),
            attempt: Some(step.attempt),
            repeats: None,
        }
    }
}

/// The word of a state.
pub(crate) fn word(state: StepState) -> &'static str {
    match state {
        StepState::InProgress => "in-progress",
        StepState::Succeeded => "succeeded",
        StepState::Failed => "failed",
    }
}
