//! `POST /api/v1/serials/system/{begin|succeed|fail}`: whether a business step may run, by its
//! system serial. Unknown or failed before: run. In progress: not known. Succeeded: never again. An
//! attempt ends when its end is reported, never by time.

use axum::Extension;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use numbering::ExchangeKind;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;

use super::{must_be_in_scope, must_remember, principal, read, read_own, read_unified};
use crate::engine::allocator::{KEY_CHARS_MAX, check_key};
use crate::features::numbers::request::idempotency_key;
use crate::ledger::{BeginStep, Begun, EndStep, Ended, Ending, Step, StepState};
use crate::web::App;
use crate::web::body::{Json, depth_of};
use crate::web::instant::instant;
use crate::web::middleware::Caller;
use crate::web::problem::serial_state::SerialState;
use crate::web::problem::serial_state::word;
use crate::web::problem::{Problem, Slug};

/// Largest stored result, in bytes of its JSON.
const RESULT_BYTES_MAX: usize = 16 * 1024;
/// How deep lists and objects of a stored result may be nested: programs read it again with limits
/// of their own.
const RESULT_DEPTH_MAX: usize = 64;
/// Longest reason of a failure, in characters.
const REASON_CHARS_MAX: usize = 500;

/// What a step that has succeeded answers to each further `begin`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
enum OnRepeat {
    /// The problem `already-processed`.
    #[default]
    Refuse,
    /// 200 with the stored result.
    Result,
}

/// A step that wants to run.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct BeginRequest {
    /// The system serial.
    serial: String,
    /// The unified serial that the call carried.
    #[serde(default)]
    unified_serial: Option<String>,
    /// `refuse` (the default) or `result`: the answer for a step that has succeeded.
    #[serde(default)]
    on_repeat: OnRepeat,
}

/// An attempt that went well.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SucceedRequest {
    /// The system serial.
    serial: String,
    /// The attempt, as `begin` answered it.
    attempt: u32,
    /// What a repetition is answered with: JSON of at most 16 KiB, nested at most 64 deep, kept
    /// byte for byte.
    #[serde(default)]
    #[schema(value_type = serde_json::Value)]
    result: Option<Box<RawValue>>,
}

/// An attempt that failed.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct FailRequest {
    /// The system serial.
    serial: String,
    /// The attempt, as `begin` answered it.
    attempt: u32,
    /// Why, at most 500 characters.
    reason: String,
}

/// A step as it stands.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct StepAnswer {
    /// The system serial.
    serial: String,
    /// The unified serial that it belongs to, where one was named.
    unified_serial: Option<String>,
    /// `in-progress`, `succeeded` or `failed`.
    state: &'static str,
    /// The current attempt, from 1.
    attempt: u32,
    /// Answer of `begin` only: whether the caller is to run the step now.
    #[serde(skip_serializing_if = "Option::is_none")]
    run: Option<bool>,
    /// When the attempt began.
    #[schema(format = DateTime)]
    begun_at: String,
    /// When it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(format = DateTime)]
    ended_at: Option<String>,
    /// What it gave.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = serde_json::Value)]
    result: Option<Box<RawValue>>,
    /// Why it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    /// Whether an earlier call has done the same.
    replayed: bool,
}

/// Begins a step that is unknown or has failed.
#[utoipa::path(
    post, path = "", tag = "serials",
    params(
        ("Idempotency-Key" = Option<String>, Header, description = "At most 255 characters"),
    ),
    request_body = BeginRequest,
    responses(
        (status = 201, body = StepAnswer, description = "Run the step"),
        (status = 200, body = StepAnswer, description = "As answered before, or the stored result"),
    )
)]
pub(crate) async fn begin_step(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
    Json(order): Json<BeginRequest>,
) -> Result<Response, Problem> {
    let key = idempotency_key(&headers, KEY_CHARS_MAX)?;
    let BeginRequest { serial, unified_serial, on_repeat } = order;
    read_own(&app, &caller, ExchangeKind::System, &serial)?;
    read_unified(unified_serial.as_deref())?;
    must_remember(&app)?;
    let begin = BeginStep { serial, unified_serial, principal: principal(&caller, key) };
    let again = begin.clone();
    let beginning = app.note(&caller, |ledger| async move {
        ledger.exchange().begin_step(&begin).await.map_err(Problem::of_write)
    });
    let looking =
        app.read(&caller, |ledger| async move { ledger.exchange().begun_before(&again).await });
    let is_repeat = |begun: &Begun| match begun {
        Begun::RunAgain(_) => true,
        Begun::Succeeded(_) => on_repeat == OnRepeat::Result,
        _ => false,
    };
    let begun = app.noted(&caller, beginning, is_repeat, looking).await?;
    let outcome = match &begun {
        Begun::Run(_) | Begun::RunAgain(_) => "begun",
        Begun::InProgress(_) => "in-progress",
        Begun::Succeeded(_) => "already-processed",
        Begun::OtherChain(_) => "refused",
    };
    app.service.metrics.serial_steps.of(outcome).increment(1);
    match begun {
        Begun::Run(step) => answer(StatusCode::CREATED, step, Some(true), false),
        Begun::RunAgain(step) => answer(StatusCode::OK, step, Some(true), true),
        Begun::Succeeded(step) if on_repeat == OnRepeat::Result => {
            answer(StatusCode::OK, step, Some(false), true)
        }
        Begun::Succeeded(step) => Err(already_processed(&step)),
        Begun::InProgress(step) => Err(refused(
            Slug::StateUnknown,
            "an attempt is in progress, or its runner is gone; ask who runs it, and once it is \
             known that nobody does, report it with `fail` and begin again",
            &step,
        )),
        Begun::OtherChain(step) => Err(Problem::field(
            "unified_serial",
            format!("the step belongs to {}", step.unified_serial.unwrap_or_default()),
        )),
    }
}

/// Reports that an attempt went well: the step never runs again.
#[utoipa::path(
    post, path = "", tag = "serials",
    request_body = SucceedRequest,
    responses(
        (status = 200, body = StepAnswer),
    )
)]
pub(crate) async fn succeed_step(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Json(order): Json<SucceedRequest>,
) -> Result<Response, Problem> {
    let SucceedRequest { serial, attempt, result } = order;
    let result = result.map(|result| result.get().to_owned());
    if let Some(bytes) = result.as_ref().map(String::len).filter(|len| *len > RESULT_BYTES_MAX) {
        let reason = format!(
            "has {bytes} bytes, at most {RESULT_BYTES_MAX} are kept; store it elsewhere, and its \
             name here"
        );
        return Err(Problem::field("result", reason));
    }
    if result.as_ref().is_some_and(|result| depth_of(result) > RESULT_DEPTH_MAX) {
        let reason = format!(
            "has lists and objects nested deeper than {RESULT_DEPTH_MAX}, which few programs read; \
             send it as a text"
        );
        return Err(Problem::field("result", reason));
    }
    end(&app, &caller, serial, attempt, Ending::Succeeded { result }).await
}

/// Reports that an attempt failed: the step may run again.
#[utoipa::path(
    post, path = "", tag = "serials",
    request_body = FailRequest,
    responses(
        (status = 200, body = StepAnswer),
    )
)]
pub(crate) async fn fail_step(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Json(order): Json<FailRequest>,
) -> Result<Response, Problem> {
    let FailRequest { serial, attempt, reason } = order;
    check_key(&reason, REASON_CHARS_MAX).map_err(|wrong| Problem::field("reason", wrong))?;
    end(&app, &caller, serial, attempt, Ending::Failed { reason }).await
}

/// Ends an attempt.
async fn end(
    app: &App,
    caller: &Caller,
    serial: String,
    attempt: u32,
    ending: Ending,
) -> Result<Response, Problem> {
    // The ledger knows whether it has begun, even if the zone of its series has changed.
    must_be_in_scope(caller, ExchangeKind::System)?;
    read("serial", ExchangeKind::System, &serial)?;
    must_remember(app)?;
    let outcome = if matches!(ending, Ending::Failed { .. }) { "failed" } else { "succeeded" };
    let end = EndStep { serial, attempt, ending, principal: principal(caller, None) };
    let again = end.clone();
    let noting = app.note(caller, |ledger| async move {
        ledger.exchange().end_step(&end).await.map_err(Problem::of_write)
    });
    let looking =
        app.read(caller, |ledger| async move { ledger.exchange().ended_before(&again).await });
    let is_repeat = |ended: &Ended| matches!(ended, Ended::NotedBefore(_));
    let ended = app.noted(caller, noting, is_repeat, looking).await?;
    let is_noted = matches!(ended, Ended::Noted(_) | Ended::NotedBefore(_));
    let counted = if is_noted { outcome } else { "refused" };
    app.service.metrics.serial_steps.of(counted).increment(1);
    match ended {
        Ended::Noted(step) => answer(StatusCode::OK, step, None, false),
        Ended::NotedBefore(step) => answer(StatusCode::OK, step, None, true),
        Ended::Unknown => {
            Err(Problem::new(Slug::StepNotFound, "nobody has begun this step; begin it first"))
        }
        Ended::NotCurrent(step) if step.state == StepState::Succeeded => {
            Err(already_processed(&step))
        }
        Ended::NotCurrent(step) => Err(refused(
            Slug::AttemptNotCurrent,
            format!(
                "attempt {attempt} is not in progress, or not yours; what it did must be looked at"
            ),
            &step,
        )),
    }
}

/// The refusal of a step that is done.
fn already_processed(step: &Step) -> Problem {
    let detail = "the step has succeeded; `\"on_repeat\": \"result\"` gives its stored result";
    refused(Slug::AlreadyProcessed, detail, step)
}

/// A refusal that reports the state of the step.
fn refused(slug: Slug, detail: impl Into<String>, step: &Step) -> Problem {
    Problem::new(slug, detail).standing(SerialState::of_step(step))
}

fn answer(
    status: StatusCode,
    step: Step,
    run: Option<bool>,
    replayed: bool,
) -> Result<Response, Problem> {
    let result = step.result.map(RawValue::from_string).transpose();
    let result = result.map_err(|error| Problem::internal(&error))?;
    let answer = StepAnswer {
        serial: step.serial,
        unified_serial: step.unified_serial,
        state: word(step.state),
        attempt: step.attempt,
        run,
        begun_at: instant(step.begun_at_us),
        ended_at: step.ended_at_us.map(instant),
        result,
        reason: step.reason,
        replayed,
    };
    Ok((status, axum::Json(answer)).into_response())
}
