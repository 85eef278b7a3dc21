//! `POST /api/v1/serials/interface/check`: whether an interface serial is seen for the first time
//! within a window. A repeated one is a call that the network has duplicated: refuse it.

use std::str::FromStr;
use std::time::Duration;

use axum::Extension;
use axum::extract::State;
use axum::http::HeaderMap;
use numbering::ExchangeKind;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{must_remember, principal, read_own, read_unified};
use crate::config::DurationText;
use crate::engine::allocator::KEY_CHARS_MAX;
use crate::features::numbers::request::idempotency_key;
use crate::ledger::{Checked, InterfaceCheck};
use crate::web::App;
use crate::web::body::Json;
use crate::web::instant::instant;
use crate::web::middleware::Caller;
use crate::web::problem::serial_state::SerialState;
use crate::web::problem::{Problem, Slug};

/// Shortest window.
const WINDOW_MIN: Duration = Duration::from_secs(1);
/// Longest window: a year.
const WINDOW_MAX: Duration = Duration::from_secs(366 * 86_400);

/// An interface serial to check.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CheckRequest {
    /// The serial.
    serial: String,
    /// How long a serial counts as seen, such as `1h` or `1d`: one second to 366 days.
    window: String,
    /// The unified serial that the call carried.
    #[serde(default)]
    unified_serial: Option<String>,
}

/// An interface serial that is seen for the first time.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct CheckAnswer {
    /// The serial.
    serial: String,
    /// `accepted`: serve the call.
    outcome: &'static str,
    /// When it was accepted.
    #[schema(format = DateTime)]
    accepted_at: String,
    /// Whether an earlier call with the same `Idempotency-Key` accepted it.
    replayed: bool,
}

/// Accepts an interface serial that was not seen within the window.
#[utoipa::path(
    post, path = "", tag = "serials",
    params(
        ("Idempotency-Key" = Option<String>, Header, description = "At most 255 characters"),
    ),
    request_body = CheckRequest,
    responses(
        (status = 200, body = CheckAnswer, description = "Seen for the first time"),
    )
)]
pub(crate) async fn check_interface_serial(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
    Json(order): Json<CheckRequest>,
) -> Result<axum::Json<CheckAnswer>, Problem> {
    let key = idempotency_key(&headers, KEY_CHARS_MAX)?;
    let CheckRequest { serial, window, unified_serial } = order;
    read_own(&app, &caller, ExchangeKind::Interface, &serial)?;
    read_unified(unified_serial.as_deref())?;
    let window_us = window_us(&window)?;
    must_remember(&app)?;
    let principal = principal(&caller, key);
    let check = InterfaceCheck { serial: serial.clone(), unified_serial, window_us, principal };
    let again = check.clone();
    let noting = app.note(&caller, |ledger| async move {
        ledger.exchange().check(&check).await.map_err(Problem::of_write)
    });
    let looking =
        app.read(&caller, |ledger| async move { ledger.exchange().accepted_before(&again).await });
    let is_repeat = |checked: &Checked| matches!(checked, Checked::Accepted { replayed: true, .. });
    match app.noted(&caller, noting, is_repeat, looking).await? {
        Checked::Accepted { at_us, replayed } => {
            app.service.metrics.serial_checks.of("accepted").increment(1);
            let accepted_at = instant(at_us);
            Ok(axum::Json(CheckAnswer { serial, outcome: "accepted", accepted_at, replayed }))
        }
        Checked::Repeated(sight) => {
            app.service.metrics.serial_checks.of("repeated").increment(1);
            let standing = SerialState::of_first_seen(&sight);
            let detail = format!(
                "{serial} was accepted at {} by {}, within {window}; do not serve this call",
                standing.since, standing.user_id
            );
            Err(Problem::new(Slug::InterfaceSerialRepeated, detail).standing(standing))
        }
    }
}

/// The window in microseconds.
fn window_us(text: &str) -> Result<i64, Problem> {
    let refused = |reason: String| Problem::field("window", reason);
    let DurationText(window) = DurationText::from_str(text).map_err(refused)?;
    if !(WINDOW_MIN..=WINDOW_MAX).contains(&window) {
        return Err(refused(format!(
            "must be {} to {}, not {text}",
            DurationText(WINDOW_MIN),
            DurationText(WINDOW_MAX)
        )));
    }
    Ok(i64::try_from(window.as_micros()).expect("a year of microseconds fits"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_is_a_second_to_a_year() {
        assert_eq!(window_us("1h").expect("an hour"), 3_600_000_000);
        assert_eq!(window_us("366d").expect("a year"), 366 * 86_400_000_000);
        for wrong in ["", "1", "h", "-1h", "0s", "999ms", "367d", "99999999999999999999d"] {
            assert!(window_us(wrong).is_err(), "{wrong}");
        }
    }
}
