//! `POST /api/v1/serials/{unified|system|interface}`: serials are numbers of three series, taken
//! like all others. Their document ids begin with the unified serial that they belong to: it
//! identifies the chain in the journal, and the first serial of a step.

use std::collections::BTreeMap;

use axum::Extension;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::{IntoResponse, Response};
use numbering::{ExchangeKind, ExchangePart, ExchangeSerial, Inputs, SeriesDefinition};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use tokio::time::timeout_at;
use unicode_normalization::UnicodeNormalization;
use utoipa::ToSchema;
use uuid::Uuid;

use super::{must_be_in_scope, read};
use crate::engine::allocator::{AllocError, KEY_CHARS_MAX, check_key};
use crate::engine::node::Use;
use crate::features::numbers::issuing::NotIssued;
use crate::features::numbers::request::idempotency_key;
use crate::ledger::{JournalFilter, JournalRow};
use crate::web::App;
use crate::web::body::Json;
use crate::web::middleware::Caller;
use crate::web::outcome::outcome_of;
use crate::web::prefer::overdue;
use crate::web::problem::{Problem, Slug};

/// Longest name of a step, in characters: with its prefix it fits a document id.
const STEP_CHARS_MAX: usize = 200;

/// A unified serial to generate.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct UnifiedRequest {
    /// The system that begins the transaction: 5 letters or digits.
    system: String,
    /// Its module: 3 letters or digits.
    module: String,
    /// The instance of the server: 2 digits.
    instance: String,
    /// The day, `2015-07-10` or a date-time with offset; now without one.
    #[serde(default)]
    date: Option<String>,
}

/// A system serial to generate.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SystemRequest {
    /// The system that runs the step: 5 letters or digits.
    system: String,
    /// Its module: 3 letters or digits.
    module: String,
    /// The instance of the server: 2 digits.
    instance: String,
    /// The unified serial that the step belongs to.
    unified_serial: String,
    /// The caller's name of the step, at most 200 characters: the same step of the same system,
    /// module and unified serial always gets its first serial again.
    step: String,
    /// The day, `2015-07-10` or a date-time with offset; now without one.
    #[serde(default)]
    date: Option<String>,
}

/// An interface serial to generate.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct InterfaceRequest {
    /// The system that calls: 5 letters or digits.
    system: String,
    /// Its module: 3 letters or digits.
    module: String,
    /// The instance of the server: 2 digits.
    instance: String,
    /// The system that is called: 5 letters or digits.
    target: String,
    /// The unified serial that the call carries.
    unified_serial: String,
    /// The system serial that the call carries, where it belongs to a step.
    #[serde(default)]
    system_serial: Option<String>,
    /// The time of the call, a date-time with offset; now without one.
    #[serde(default)]
    date: Option<String>,
}

/// An exchange serial and its parts.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct ExchangeAnswer {
    /// The serial.
    serial: String,
    /// `unified`, `system` or `interface`.
    kind: &'static str,
    system: String,
    module: String,
    instance: String,
    /// The system that is called, for an interface serial.
    #[serde(skip_serializing_if = "Option::is_none")]
    target: Option<String>,
    /// The day in the time zone of the series.
    date: String,
    /// The time of day, for an interface serial.
    #[serde(skip_serializing_if = "Option::is_none")]
    time: Option<String>,
    /// The running value.
    sequence: String,
    /// Whether an earlier call got this serial.
    replayed: bool,
}

/// Starts a transaction: gives it the serial that goes with all its calls.
#[utoipa::path(
    post, path = "", tag = "serials",
    params(
        ("Idempotency-Key" = Option<String>, Header, description = "At most 255 characters"),
    ),
    request_body = UnifiedRequest,
    responses(
        (status = 201, body = ExchangeAnswer, description = "A new serial"),
        (status = 200, body = ExchangeAnswer, description = "The serial of an earlier call"),
    )
)]
pub(crate) async fn generate_unified_serial(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
    Json(order): Json<UnifiedRequest>,
) -> Result<Response, Problem> {
    let key = idempotency_key(&headers, KEY_CHARS_MAX)?;
    let source = [order.system, order.module, order.instance];
    let exchange = Exchange::of(&caller, ExchangeKind::Unified, source, order.date)?;
    exchange.issue(&app, &caller, key).await
}

/// Gives a step of a transaction its serial, the same one however often it is asked for.
#[utoipa::path(
    post, path = "", tag = "serials",
    request_body = SystemRequest,
    responses(
        (status = 201, body = ExchangeAnswer, description = "A new serial"),
        (status = 200, body = ExchangeAnswer, description = "The first serial of the step"),
    )
)]
pub(crate) async fn generate_system_serial(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Json(order): Json<SystemRequest>,
) -> Result<Response, Problem> {
    let step: String = order.step.nfc().collect();
    check_key(&step, STEP_CHARS_MAX).map_err(|reason| Problem::field("step", reason))?;
    let source = [order.system, order.module, order.instance];
    let mut exchange = Exchange::of(&caller, ExchangeKind::System, source, order.date)?;
    exchange.carry(ExchangeKind::Unified, order.unified_serial)?;
    let document_id = exchange.step_id(&step);
    // The allocator knows a document for one window; a step keeps its serial for ever.
    if let Some(first) = first_serial(&app, &caller, &document_id).await? {
        // Another serial would let the step run twice.
        let number = caller.sees(&first).then_some(first.entry.number);
        let number = number.ok_or(AllocError::DocumentNumbered { number: None })?;
        if let Some(limited) = &caller.limited {
            limited.takes_nothing();
        }
        return answer(exchange.kind, number, true);
    }
    exchange.document_id = Some(document_id);
    exchange.issue(&app, &caller, None).await
}

/// Gives a call of an interface its serial.
#[utoipa::path(
    post, path = "", tag = "serials",
    params(
        ("Idempotency-Key" = Option<String>, Header, description = "At most 255 characters"),
    ),
    request_body = InterfaceRequest,
    responses(
        (status = 201, body = ExchangeAnswer, description = "A new serial"),
        (status = 200, body = ExchangeAnswer, description = "The serial of an earlier call"),
    )
)]
pub(crate) async fn generate_interface_serial(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
    Json(order): Json<InterfaceRequest>,
) -> Result<Response, Problem> {
    let key = idempotency_key(&headers, KEY_CHARS_MAX)?;
    let source = [order.system, order.module, order.instance];
    let mut exchange = Exchange::of(&caller, ExchangeKind::Interface, source, order.date)?;
    exchange.name(ExchangePart::Target, order.target)?;
    exchange.carry(ExchangeKind::Unified, order.unified_serial)?;
    if let Some(serial) = order.system_serial {
        exchange.carry(ExchangeKind::System, serial)?;
    }
    exchange.document_id = Some(exchange.call_id(&caller, key.as_deref()));
    exchange.issue(&app, &caller, key).await
}

/// A serial to take from its series.
struct Exchange {
    kind: ExchangeKind,
    date: Option<String>,
    /// Values of the series' variables, all of them checked.
    context: BTreeMap<String, String>,
    document_id: Option<String>,
}

impl Exchange {
    /// A serial of a system, module and instance, where its series is within reach.
    fn of(
        caller: &Caller,
        kind: ExchangeKind,
        source: [String; 3],
        date: Option<String>,
    ) -> Result<Self, Problem> {
        must_be_in_scope(caller, kind)?;
        let context = BTreeMap::new();
        let mut exchange = Exchange { kind, date, context, document_id: None };
        let parts = [ExchangePart::System, ExchangePart::Module, ExchangePart::Instance];
        for (part, text) in parts.into_iter().zip(source) {
            exchange.name(part, text)?;
        }
        Ok(exchange)
    }

    /// Takes a part once it is known to be right.
    fn name(&mut self, part: ExchangePart, text: String) -> Result<(), Problem> {
        let field = part.name();
        part.check(&text).map_err(|error| Problem::of_exchange(field, &error))?;
        self.context.insert(field.to_ascii_uppercase(), text);
        Ok(())
    }

    /// Records a serial that belongs with this one.
    fn carry(&mut self, kind: ExchangeKind, serial: String) -> Result<(), Problem> {
        let field = format!("{kind}_serial");
        read(&field, kind, &serial)?;
        self.context.insert(field.to_ascii_uppercase(), serial);
        Ok(())
    }

    fn unified_serial(&self) -> &str {
        &self.context["UNIFIED_SERIAL"]
    }

    /// The document id of a step. Not of an instance: a retry may come from another one.
    fn step_id(&self, step: &str) -> String {
        let (system, module) = (&self.context["SYSTEM"], &self.context["MODULE"]);
        format!("{}/step/{system}{module}/{step}", self.unified_serial())
    }

    /// The document id of a call: its own, or that of the caller's key.
    fn call_id(&self, caller: &Caller, key: Option<&str>) -> String {
        let call = key.map_or_else(Uuid::now_v7, |key| {
            let hash = Sha256::new().chain_update(caller.user_id.as_bytes()).chain_update([0]);
            let hash = hash.chain_update(key).finalize();
            let bytes = hash[..16].try_into().expect("a hash of 32 bytes");
            uuid::Builder::from_custom_bytes(bytes).into_uuid()
        });
        format!("{}/call/{call}", self.unified_serial())
    }

    /// Takes the serial.
    async fn issue(
        self,
        app: &App,
        caller: &Caller,
        key: Option<String>,
    ) -> Result<Response, Problem> {
        self.must_be_served(app).await?;
        let Exchange { kind, date, context, document_id } = self;
        let type_code = kind.type_code().into();
        let inputs = Inputs { type_code, date, context, ..Inputs::default() };
        match app.issue(caller, caller.request(inputs, document_id, key)).await {
            Ok(issued) => answer(kind, issued.entry.number, issued.replayed),
            // The same step from another instance, or with another date: it has its serial.
            Err(NotIssued::Alloc(AllocError::DocumentNumbered { number: Some(number) })) => {
                answer(kind, number, true)
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Refuses, before anything is taken, if the series would make something else.
    async fn must_be_served(&self, app: &App) -> Result<(), Problem> {
        let allocator = &app.service.allocator;
        let serves = || {
            allocator.catalog().active().iter().any(|served| {
                let SeriesDefinition { code, template, .. } = &served.version.definition;
                code == self.kind.type_code() && template == self.kind.template()
            })
        };
        if serves() {
            return Ok(());
        }
        // It may have just been saved.
        if !Box::pin(allocator.knows_all()).await {
            let why = Problem::new(Slug::DatabaseConnection, "the ledger does not answer now");
            return Err(why.retry_soon());
        }
        if serves() {
            return Ok(());
        }
        let detail = format!(
            "no active series {} with the template {}; apply examples/series/hivenet-serials.toml",
            self.kind.type_code(),
            self.kind.template()
        );
        Err(Problem::new(Slug::TypeNotConfigured, detail))
    }
}

/// The answer with a serial, of this call or of an earlier one.
fn answer(kind: ExchangeKind, serial: String, replayed: bool) -> Result<Response, Problem> {
    let read = ExchangeSerial::parse(kind, &serial)
        .map_err(|error| Problem::internal(&format!("{serial}: {error}")))?;
    let answer = ExchangeAnswer {
        serial,
        kind: kind.name(),
        system: read.system,
        module: read.module,
        instance: read.instance,
        target: read.target,
        date: read.date.to_string(),
        time: read.time.map(|time| time.to_string()),
        sequence: read.sequence.to_string(),
        replayed,
    };
    let (status, headers) = outcome_of(replayed);
    Ok((status, headers, axum::Json(answer)).into_response())
}

/// The row of the first serial that the journal has for a step.
async fn first_serial(
    app: &App,
    caller: &Caller,
    document_id: &str,
) -> Result<Option<JournalRow>, Problem> {
    if app.service.context.membership.availability().still_lacks(Use::Read).await {
        let detail = "the ledger does not answer";
        return Err(Problem::new(Slug::DatabaseConnection, detail).retry_soon());
    }
    let filter =
        JournalFilter { document_id: Some(document_id.into()), ..JournalFilter::default() };
    let finding = app.read(caller, |ledger| async move { ledger.register().find(&filter).await });
    let rows = match caller.by {
        Some(by) => timeout_at(by, finding).await.map_err(|_| overdue())??,
        None => finding.await?,
    };
    let is_serial = |type_code: &str| type_code == ExchangeKind::System.type_code();
    Ok(rows.into_iter().rev().find(|row| is_serial(&row.entry.record.type_code)))
}
