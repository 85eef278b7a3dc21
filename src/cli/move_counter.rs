//! `numerator move-counter`: has a counter go on with a value further up, with a reason, where
//! callers have no tokens. What is passed over goes to the gap register. Where they have, two
//! people answer for it over HTTP.

use anyhow::{Context as _, bail};
use clap::Args;
use numbering::{Serial, SeriesDefinition};

use super::output::print;
use super::session::{operator, refusal, with_onlooker};
use crate::config::Settings;
use crate::http::{check_reason, must_be_within, serial_in};
use crate::ledger::{
    ANSWERED_ALONE, ChangeDecision, ChangeRequest, Counter, NewChange, SharedLedger, WantedChange,
};
use crate::service::Service;

/// How long the change may take, in microseconds, before nobody can make it any more.
const MADE_WITHIN_US: i64 = 3_600_000_000;

const EXAMPLES: &str = "Examples:
  numerator move-counter 7 --next 543 --reason 'the first three were a trial'";

/// Which counter, where to, and why.
#[derive(Clone, Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct MoveCounterArgs {
    /// The counter, as `counters` lists it
    pub counter: i64,
    /// The value that is to come next; what lies between is never issued
    #[arg(long, value_name = "VALUE")]
    pub next: u64,
    /// Why, for the record: auditors are shown it
    #[arg(long)]
    pub reason: String,
}

/// Moves the counter, and says what is passed over.
///
/// # Errors
/// A value that was issued or that the series never shows; callers that have tokens; a ledger that
/// cannot be reached, or a partition that the database does not get in time.
pub async fn run(settings: &Settings, args: MoveCounterArgs) -> anyhow::Result<()> {
    let MoveCounterArgs { counter: counter_id, next, reason } = args;
    let reason = check_reason(&reason).map_err(refusal)?;
    let asks_for_tokens = settings.asks_for_tokens;
    let told = with_onlooker(settings, async |service| {
        if asks_for_tokens || !service.ledger.tokens_in_force().await?.tokens.is_empty() {
            bail!(
                "callers have tokens here, so two people answer for it: one asks by `POST \
                 …/configs/{{configId}}/reset-counter`, another approves"
            );
        }
        let counter = counter_of(&service.ledger, counter_id).await?;
        let catalog = service.allocator.catalog();
        let (definition, serial) =
            serial_in(&catalog, counter.series_id, &counter.serial).map_err(refusal)?;
        let wanted = WantedChange::NextValue(next);
        must_be_within(&wanted, &definition, &serial).map_err(refusal)?;
        let made = make(service, (&counter, wanted), &serial, reason).await?;
        Ok(in_words(&definition, &made))
    })
    .await?;
    Ok(print([told])?)
}

async fn counter_of(ledger: &SharedLedger, counter_id: i64) -> anyhow::Result<Counter> {
    let found = ledger.counters(counter_id.saturating_sub(1), 1).await?;
    let counter = found.into_iter().find(|counter| counter.counter_id == counter_id);
    counter.with_context(|| format!("there is no counter {counter_id}; `counters` lists them"))
}

/// Asks for the change and makes it, as one person alone. Where it cannot be made, the request is
/// withdrawn.
async fn make(
    service: &Service,
    (counter, wanted): (&Counter, WantedChange),
    serial: &Serial,
    reason: String,
) -> anyhow::Result<ChangeRequest> {
    let new = NewChange {
        series_id: counter.series_id,
        counter_id: counter.counter_id,
        wanted,
        step: serial.step,
        reason,
        requested_by: operator(),
        expires_at_us: service.clock.now_us().saturating_add(MADE_WITHIN_US),
        shown: None,
    };
    let asked = service.ledger.request_change(&new).await?;
    let decision = ChangeDecision {
        change_id: asked.change_id,
        decided_by: ANSWERED_ALONE.into(),
        reason: None,
        step: serial.step,
        shown: None,
    };
    match service.approve_change(&decision).await {
        Ok(made) => Ok(made),
        Err(error) => {
            let withdrawn = service.reject_change(&decision).await;
            if let Err(left) = withdrawn {
                tracing::warn!(change_id = asked.change_id, %left, "the request is left open");
            }
            Err(error.into())
        }
    }
}

fn in_words(definition: &SeriesDefinition, made: &ChangeRequest) -> String {
    let WantedChange::NextValue(next) = made.wanted else { return String::new() };
    let (code, counter) = (&definition.code, made.counter_id);
    let passed = match made.skipped() {
        Some((first, last)) if first == last => format!("; {first} is passed over"),
        Some((first, last)) => format!("; {first} to {last} are passed over"),
        None => String::new(),
    };
    let request = made.change_id;
    format!("{code}: counter {counter} goes on with {next}{passed} (change request {request})")
}
