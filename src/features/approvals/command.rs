//! `numerator move-counter`: moves a counter to a higher value, with a reason, where callers have
//! no tokens. Skipped values go to the gap register. If callers have tokens, two people do the same
//! over HTTP.

use anyhow::{Context as _, anyhow, bail};
use clap::Args;
use numbering::{Serial, SeriesDefinition};

use crate::config::Settings;
use crate::features::approvals::bounds::{must_be_within, serial_in};
use crate::features::approvals::making::NotApproved;
use crate::ledger::{
    ANSWERED_ALONE, ChangeDecision, ChangeRefusal, ChangeRequest, ChangeState, Counter,
    LedgerError, NewChange, SharedLedger, WantedChange,
};
use crate::startup::Service;
use crate::terminal::output::print;
use crate::terminal::session::{operator, refusal, with_onlooker};
use crate::web::reason::check_reason;

/// How long the change may take, in microseconds, before it can no longer be made.
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

/// Moves the counter, and reports the skipped values.
///
/// # Errors
/// A value that was issued or that the series never shows; callers that have tokens; a ledger that
/// cannot be reached, or a partition that the database does not get in time.
pub async fn run(settings: &Settings, args: MoveCounterArgs) -> anyhow::Result<()> {
    let MoveCounterArgs { counter: counter_id, next, reason } = args;
    let reason = check_reason(&reason).map_err(refusal)?;
    let asks_for_tokens = settings.asks_for_tokens;
    let told = with_onlooker(settings, async |service| {
        nobody_may_have_a_token(service, asks_for_tokens).await?;
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

/// Refuses if two people can answer for the change, or could as soon as a service requires tokens.
async fn nobody_may_have_a_token(service: &Service, are_asked_for: bool) -> anyhow::Result<()> {
    if are_asked_for {
        bail!(
            "callers have tokens here, so two people answer for it: one `super-admin` asks by \
             `POST …/configs/{{configId}}/reset-counter`, another approves; `token create NAME \
             --role super-admin` makes one"
        );
    }
    let now_us = service.clock.now_us();
    let mut tokens = service.ledger.tokens().in_force().await?.tokens;
    tokens.retain(|one| one.token.rights.expires_at_us.is_none_or(|end| end > now_us));
    if let Some(one) = tokens.first() {
        bail!(
            "callers have tokens here, such as {}, so two people answer for it, though these \
             settings ask nobody for one: have a service ask for them (`auth.mode`), where one \
             `super-admin` asks by `POST …/configs/{{configId}}/reset-counter` and another \
             approves, or revoke them (`token list`, `token revoke`) where nobody uses them",
            one.token.name
        );
    }
    Ok(())
}

async fn counter_of(ledger: &SharedLedger, counter_id: i64) -> anyhow::Result<Counter> {
    let found = ledger.counters().page(counter_id.saturating_sub(1), 1).await?;
    let counter = found.into_iter().find(|counter| counter.counter_id == counter_id);
    counter.with_context(|| format!("there is no counter {counter_id}; `counters` lists them"))
}

/// Requests the change and makes it, as one person alone. If it cannot be made, the request is
/// withdrawn; if the answer is lost, withdrawing it shows whether it was made.
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
    let asked = service.ledger.approvals().request(&new).await?;
    let decision = ChangeDecision {
        change_id: asked.change_id,
        decided_by: ANSWERED_ALONE.into(),
        reason: None,
        step: serial.step,
        shown: None,
    };
    let error = match service.approve_change(&decision).await {
        Ok(made) => return Ok(made),
        Err(error) => error,
    };
    match service.reject_change(&decision).await {
        Err(error) if is_made(&error) => {
            let made = service.ledger.approvals().get(asked.change_id).await;
            made.context("the counter is moved, and the request that says so cannot be read")
        }
        Ok(_) => Err(not_made(error)),
        Err(left) => {
            tracing::warn!(change_id = asked.change_id, %left, "the request is left open");
            let is_open = matches!(&error, NotApproved::Ledger(error) if error.maybe_written());
            let error = not_made(error);
            Err(if is_open { error.context(UNKNOWN) } else { error })
        }
    }
}

/// The message if the ledger fails during the change.
const UNKNOWN: &str = "it is not known whether the counter is moved: once the ledger answers, run \
    the same command again; it changes nothing more where this one has moved the counter";

/// Whether a request could not be withdrawn because the change was made.
fn is_made(error: &LedgerError) -> bool {
    use ChangeRefusal::Decided;
    matches!(error, LedgerError::Change(Decided { state: ChangeState::Approved, .. }))
}

/// Why the counter is unchanged. The request is gone: it can no longer be approved.
fn not_made(error: NotApproved) -> anyhow::Error {
    match error {
        NotApproved::Ledger(error) => error.into(),
        NotApproved::Lent(partition) => anyhow!(
            "partition {partition} is lent to an import or another change, and the counter is not \
             moved: run the same command again once that is done; where it was killed, the \
             services take the partition back within seconds, or `numerator fallback off`"
        ),
        NotApproved::TimedOut(partition) => anyhow!(
            "the database could not take partition {partition} over in time, and the counter is \
             not moved: run the same command again; `numerator status` shows what it waits for"
        ),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_made_is_asked_for_again_and_not_approved() {
        for error in [NotApproved::Lent(3), NotApproved::TimedOut(3)] {
            let said = not_made(error).to_string();
            let parts = ["partition 3", "is not moved", "run the same command again"];
            assert!(parts.iter().all(|part| said.contains(part)), "{said}");
            assert!(!said.contains("approve"), "{said}");
        }
    }

    #[test]
    fn a_change_whose_answer_got_lost_is_told_by_what_keeps_it_from_being_withdrawn() {
        let refused = |state| LedgerError::Change(ChangeRefusal::Decided { change_id: 1, state });
        assert!(is_made(&refused(ChangeState::Approved)));
        assert!(!is_made(&refused(ChangeState::Rejected)));
        assert!(!is_made(&LedgerError::Change(ChangeRefusal::Expired(1))));
    }
}
