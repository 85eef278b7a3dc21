//! `numerator reserve`, `confirm`, `cancel` and `reservations`: what the routes do, by hand.

use std::sync::Arc;

use clap::{Args, Subcommand};
use uuid::Uuid;

use super::acting::{ActRequest, act};
use super::answer::ReservationAnswer;
use super::bounds::{extent_of, read_reason};
use super::hand_back_command::{HandBackArgs, hand_back};
use super::listing::{AskedStatus, Wanted};
use crate::config::Settings;
use crate::engine::allocator::Request;
use crate::features::numbers::inputs::InputArgs;
use crate::features::numbers::request::check_document_id;
use crate::ledger::{ActOutcome, Reservation, ReservationAct, ReservationFilter, RowVisibility};
use crate::terminal::output::{must_print, must_print_json, print, print_json};
use crate::terminal::session::{open_ledger, operator, refusal, with_service};
use crate::terminal::settings::SettingsArgs;
use crate::web::instant::reserved_until;
use crate::web::problem::Problem;

/// Reservations that are read at once.
const PAGE: u32 = 1_000;

const RESERVE_EXAMPLES: &str = "Examples:
  numerator reserve INVOICE --date 2026-11-28 --document shop/invoice-4711
  numerator reserve INVOICE --document shop/invoice-4711 --ttl 15m --json
  numerator reserve RECEIPT --count 50 --key book-17";

/// What is done with reservations.
#[derive(Clone, Debug, Subcommand)]
pub enum ReservationCommand {
    /// Reserve a number for a document that is not final, or a block, and print it
    Reserve(ReserveArgs),
    /// Confirm a reservation: its number is the document's for good
    Confirm(ConfirmArgs),
    /// Cancel a reservation: its number comes back, for another document
    Cancel(CancelArgs),
    /// Hand a block back: the numbers that were used are issued, the others come back
    HandBack(HandBackArgs),
    /// List the live reservations
    Reservations(ReservationsArgs),
}

/// Runs a command.
///
/// # Errors
/// A refusal, with its slug; a service that cannot start; a ledger that cannot be reached.
pub async fn run(settings: &SettingsArgs, command: ReservationCommand) -> anyhow::Result<()> {
    let prepared = || settings.prepare("warn");
    match command {
        ReservationCommand::Reserve(args) => {
            reserve(&settings.prepare_to_migrate("warn")?, args).await
        }
        ReservationCommand::Confirm(args) => confirm(&prepared()?, args).await,
        ReservationCommand::Cancel(args) => cancel(&prepared()?, args).await,
        ReservationCommand::HandBack(args) => hand_back(&prepared()?, args).await,
        ReservationCommand::Reservations(args) => list(&prepared()?, args).await,
    }
}

/// What to reserve.
#[derive(Clone, Debug, Args)]
#[command(after_help = RESERVE_EXAMPLES)]
pub struct ReserveArgs {
    /// What is to be numbered.
    #[command(flatten)]
    pub inputs: InputArgs,
    /// The document: asking again for it shows its reservation again
    #[arg(long, value_name = "ID", required_unless_present = "count")]
    pub document: Option<String>,
    /// For how long; `reservations.ttl` without it
    #[arg(long, value_name = "DURATION")]
    pub ttl: Option<String>,
    /// How many numbers, 2 to 1,000, for a block: it is handed back, and never ends by time
    #[arg(long, value_name = "N", conflicts_with_all = ["document", "ttl"])]
    pub count: Option<u64>,
    /// A name of this call: the same call again shows the same block; a new one without it
    #[arg(long, value_name = "KEY", requires = "count")]
    pub key: Option<String>,
    /// Print everything about the reservation, as JSON
    #[arg(long)]
    pub json: bool,
}

/// Which reservation is confirmed.
#[derive(Clone, Debug, Args)]
pub struct ConfirmArgs {
    /// The reservation
    pub reservation: Uuid,
    /// The document that it must be for
    #[arg(long, value_name = "ID")]
    pub document: Option<String>,
    /// Print everything about it, as JSON
    #[arg(long)]
    pub json: bool,
}

/// Which reservation is cancelled, and why.
#[derive(Clone, Debug, Args)]
pub struct CancelArgs {
    /// The reservation
    pub reservation: Uuid,
    /// Why, for the record
    #[arg(long)]
    pub reason: Option<String>,
    /// Print everything about it, as JSON
    #[arg(long)]
    pub json: bool,
}

/// How live reservations are listed.
#[derive(Clone, Debug, Args)]
pub struct ReservationsArgs {
    /// Only those of this document
    #[arg(long, value_name = "ID")]
    pub document: Option<String>,
    /// Only those of this series
    #[arg(long, value_name = "CODE")]
    pub series: Option<String>,
    /// Only those that stand so
    #[arg(long, value_enum)]
    pub status: Option<AskedStatus>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Reserves a number and prints the reservation and the number.
async fn reserve(settings: &Settings, args: ReserveArgs) -> anyhow::Result<()> {
    let ReserveArgs { inputs, document, ttl, count, key, json } = args;
    let request = inputs.request(document, 1)?;
    let key = count.map(|_| key.unwrap_or_else(|| Uuid::now_v7().to_string()));
    let issued = with_service(settings, async |service| {
        let bounds = service.context.settings.reservations;
        let (count, time) = extent_of(count, ttl.as_deref(), bounds).map_err(refusal)?;
        let reserve_for = Some(time);
        let request = Request { count, reserve_for, idempotency_key: key, ..request };
        service.allocator.issue(request).await.map_err(refusal)
    })
    .await?;
    print_answer(&ReservationAnswer::of_issued(&issued), json)
}

/// Confirms a reservation and prints its number.
async fn confirm(settings: &Settings, args: ConfirmArgs) -> anyhow::Result<()> {
    let ConfirmArgs { reservation, document, json } = args;
    change(settings, (reservation, ReservationAct::Confirm, document), json).await
}

/// Cancels a reservation: a block with a reason alone.
async fn cancel(settings: &Settings, args: CancelArgs) -> anyhow::Result<()> {
    let CancelArgs { reservation, reason, json } = args;
    let reason = read_reason(reason.as_deref()).map_err(refusal)?;
    change(settings, (reservation, ReservationAct::Cancel { reason }, None), json).await
}

async fn change(
    settings: &Settings,
    (id, wanted, document_id): (Uuid, ReservationAct, Option<String>),
    json: bool,
) -> anyhow::Result<()> {
    let checked = |id: String| check_document_id("--document", id).map_err(refusal);
    let document_id = document_id.map(checked).transpose()?;
    let acted = with_service(settings, async |service| {
        let request = ActRequest { id, act: wanted, document_id, owner: None, user_id: operator() };
        let context = Arc::clone(&service.context);
        let acting = tokio::spawn(async move { act(&context, request).await });
        acting.await?.map_err(|error| refusal(Problem::from(error)))
    })
    .await?;
    let is_replayed = acted.outcome == ActOutcome::Repeated;
    match ReservationAnswer::of(&acted.standing, is_replayed) {
        Some(answer) => print_answer(&answer, json),
        None => Ok(()),
    }
}

/// Prints a reservation.
pub(super) fn print_answer(answer: &ReservationAnswer<'_>, json: bool) -> anyhow::Result<()> {
    if json {
        must_print_json(answer)?;
    } else {
        let ReservationAnswer { reservation_id, status, .. } = answer;
        must_print([format!("{reservation_id}  {}  {status}", numbers_of(answer))])?;
    }
    Ok(())
}

/// The number of a reservation, or the first and the last one of a block.
fn numbers_of(answer: &ReservationAnswer<'_>) -> String {
    match &answer.last_number {
        Some(last) => format!("{} to {last}", answer.document_number),
        None => answer.document_number.to_owned(),
    }
}

/// Lists the live reservations.
async fn list(settings: &Settings, args: ReservationsArgs) -> anyhow::Result<()> {
    let ReservationsArgs { document, series, status, json } = args;
    let wanted = Wanted::of((document, series), status, RowVisibility::Everything);
    let wanted = wanted.map_err(refusal)?;
    let ledger = open_ledger(settings).await?;
    let mut all: Vec<Reservation> = Vec::new();
    if let Some(filter) = wanted.read(&ledger).await? {
        let mut filter = ReservationFilter { limit: PAGE, ..filter };
        loop {
            let page = ledger.reservations().listed(&filter).await?;
            let is_last = page.len() < PAGE as usize;
            all.extend(page.into_iter().map(|named| named.reservation));
            if is_last {
                break;
            }
            filter.after = all.last().map(Reservation::id);
        }
    }
    if json {
        let answers: Vec<_> =
            all.iter().map(|live| ReservationAnswer::of_live(live, false)).collect();
        return Ok(print_json(&answers)?);
    }
    let line = |live: &Reservation| {
        let document = live.entry.record.document_id.as_deref().unwrap_or("-");
        let answer = ReservationAnswer::of_live(live, false);
        let (numbers, status) = (numbers_of(&answer), answer.status);
        let until = reserved_until(live.ends_at_us());
        format!("{}  {numbers}  {status}  {document}  until {until}", live.id())
    };
    Ok(print(all.iter().map(line))?)
}
