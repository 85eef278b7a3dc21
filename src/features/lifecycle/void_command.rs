//! `numerator void`: voids a number, and with `--replace` takes the one that stands in its place.
//! Alone it does not join as a node: a void concerns only the ledger.

use std::sync::Arc;

use anyhow::Context as _;
use clap::Args;
use serde::Serialize;

use super::answer::{UnusedAnswer, VoidAnswer};
use super::error::LifecycleError;
use super::naming::{By, FoundNumber, NumberName, find};
use super::replacing::{asked_for, place_of, take_for_command};
use super::unused::{UnusedNumbers, void_unused};
use super::voiding::{VoidNumber, VoidOrder, check_long_reason, void};
use crate::config::Settings;
use crate::engine::allocator::{Issued, Request};
use crate::startup::Service;
use crate::terminal::output::{must_print, must_print_json, print, print_json, say};
use crate::terminal::session::{foresee_catalog, refusal, with_service};
use crate::terminal::settings::{name_value, set_once};
use crate::terminal::user::UserArg;
use crate::web::journal_wait::{TryOf, once_journaled};
use crate::web::problem::Problem;

const EXAMPLES: &str = "Examples:
  numerator void INV-2026-00005 --reason 'sent to the wrong customer'
  numerator void FIELD-2026-00005 --unused --reason 'the tablet was handed back'
  numerator void LCBP3-0005 --reason 'wrong recipient typed' --replace --set RECIPIENT=ผรม.3";

/// Which number.
#[derive(Clone, Debug, Args)]
pub struct NumberArgs {
    /// The number as it was issued
    #[arg(value_name = "NUMBER")]
    pub number: String,
    /// Code of its series, where several numbers have the text
    #[arg(long, value_name = "CODE")]
    pub series: Option<String>,
    /// Its project, likewise
    #[arg(long)]
    pub project: Option<String>,
    /// Its document, likewise
    #[arg(long, value_name = "ID")]
    pub document: Option<String>,
    /// Who asks.
    #[command(flatten)]
    pub user: UserArg,
}

impl NumberArgs {
    /// The name of the number.
    ///
    /// # Errors
    /// A text that no number has.
    pub(super) fn name(self) -> Result<NumberName, Problem> {
        let NumberArgs { number, series, project, document, user: _ } = self;
        let name = NumberName::of("number", &number)?;
        Ok(NumberName { series, project, document_id: document, ..name })
    }
}

/// What to void, and why.
#[derive(Clone, Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct VoidArgs {
    /// Which number.
    #[command(flatten)]
    pub number: NumberArgs,
    /// Why, for the record, in 10 characters or more
    #[arg(long)]
    pub reason: String,
    /// Void every number of its range instead that has neither a document nor a void
    #[arg(long, conflicts_with = "replace")]
    pub unused: bool,
    /// Take the number that stands in its place: for the same document, date and variables
    #[arg(long)]
    pub replace: bool,
    /// What a variable of the new number is instead; may be repeated
    #[arg(long, value_name = "NAME=VALUE", value_parser = name_value, requires = "replace")]
    pub set: Vec<(String, String)>,
    /// The document date of the new number instead: 2025-12-02, or a date-time with offset
    #[arg(long, requires = "replace")]
    pub date: Option<String>,
    /// The phase of the new number, where the series has phases
    #[arg(long, requires = "replace")]
    pub phase: Option<String>,
    /// Print everything as JSON
    #[arg(long)]
    pub json: bool,
}

/// A void number, and the one in its place.
#[derive(Serialize)]
struct ReplacedNumber<'a> {
    #[serde(flatten)]
    void: VoidAnswer<'a>,
    replaced_by: &'a str,
}

/// Voids the number; prints it, or the one in its place.
///
/// # Errors
/// A refusal, with its slug; a ledger that cannot be reached. Where the number is void and the one
/// in its place is not taken, the error says so, and which command takes it.
pub async fn run(settings: &Settings, args: VoidArgs) -> anyhow::Result<()> {
    let order = VoidOrder {
        name: args.number.clone().name().map_err(refusal)?,
        reason: check_long_reason(&args.reason).map_err(refusal)?,
        by: By::command(args.number.user.actor()?),
    };
    if args.replace {
        return replace(settings, args, order).await;
    }
    let (ledger, catalog) = foresee_catalog(settings).await?;
    let catalog = Arc::new(catalog);
    let is_missing = LifecycleError::is_missing;
    if args.unused {
        let voiding =
            once_journaled(is_missing, |try_of| void_unused(&ledger, &catalog, &order, try_of));
        return print_unused(&voiding.await.map_err(refusal)?, args.json);
    }
    let voiding = once_journaled(is_missing, |try_of| void(&ledger, &catalog, &order, try_of));
    let voided = voiding.await.map_err(refusal)?;
    if args.json {
        print_json(&VoidAnswer::of(&voided))?;
    } else {
        print([&voided.found.number])?;
    }
    Ok(())
}

/// Prints what a range did not use, as far as the answer names it.
fn print_unused(unused: &UnusedNumbers, json: bool) -> anyhow::Result<()> {
    let answer = UnusedAnswer::of(unused);
    if json {
        return Ok(print_json(&answer)?);
    }
    say(format_args!("{} numbers of the range are void", answer.void_count));
    if answer.left > 0 {
        say(format_args!("{} are left: run the same command again", answer.left));
    }
    Ok(print(&answer.void_numbers)?)
}

/// Voids the number and takes the one in its place.
async fn replace(settings: &Settings, args: VoidArgs, order: VoidOrder) -> anyhow::Result<()> {
    let json = args.json;
    let context = set_once("--set", args.set.clone())?;
    let (voided, issued) = with_service(settings, async |service| {
        let (ledger, catalog) = (&service.ledger, service.allocator.catalog());
        let is_missing = LifecycleError::is_missing;
        let by = order.by.clone().through(service.context.membership.node());
        let finding =
            once_journaled(is_missing, |try_of| find(ledger, &catalog, (&order.name, &by), try_of));
        let found = finding.await.map_err(refusal)?;
        let mut inputs = asked_for(&found.row);
        inputs.date = args.date.clone().or(inputs.date);
        inputs.phase.clone_from(&args.phase);
        inputs.context.extend(context.clone());
        let request = request_for(&found, inputs, &order.by);
        // What is wrong with the new number is said while nothing is void.
        let asked = Request { again: true, ..request.clone() };
        service.allocator.preview(asked).await.map_err(refusal)?;
        let voided = void(ledger, &catalog, &order, TryOf::First).await.map_err(refusal)?;
        // Of a number of a range, the void has the document.
        let request = Request { document_id: voided.row.document_id.clone(), ..request };
        let issued = take(service, (request, &voided), &order.by).await;
        let issued = issued.with_context(|| left(&voided, &args))?;
        Ok((voided, issued))
    })
    .await?;
    let number = &issued.entry.number;
    let printed = if json {
        must_print_json(&ReplacedNumber { void: VoidAnswer::of(&voided), replaced_by: number })
    } else {
        say(format_args!("{} is void, and replaced by", voided.found.number));
        must_print([number])
    };
    printed.with_context(|| format!("{number} is taken, but could not be printed"))
}

/// The request for the number in the place of another one.
fn request_for(found: &FoundNumber, inputs: numbering::Inputs, by: &By) -> Request {
    Request {
        reserve_for: None,
        inputs,
        document_id: found.row.entry.record.document_id.clone(),
        count: 1,
        again: false,
        replaces: None,
        idempotency_key: None,
        identity: Arc::clone(&by.identity),
        user_id: by.user_id.clone(),
        ip_address: None,
    }
}

/// Takes the number in the place of one that was just voided.
async fn take(
    service: &Service,
    (request, voided): (Request, &VoidNumber),
    by: &By,
) -> anyhow::Result<Issued> {
    let place = place_of(&service.ledger, voided.found.clone()).await?;
    let number = || voided.found.number.clone();
    let place = place.map_err(|_| refusal(LifecycleError::NotVoid { number: number() }))?;
    take_for_command(service, request, place, by.clone()).await.map_err(refusal)
}

/// What is left to do where the number is void and no other one stands in its place.
fn left(VoidNumber { found, row, .. }: &VoidNumber, args: &VoidArgs) -> String {
    let record = &found.row.entry.record;
    let date = args.date.as_deref().unwrap_or(&record.document_date);
    let mut command = format!("numerator next {} --date {date}", record.type_code);
    let mut option = |name: &str, value: Option<&str>| {
        if let Some(value) = value {
            // As a shell reads it.
            command.push_str(&format!(" --{name} '{}'", value.replace('\'', "'\\''")));
        }
    };
    option("project", record.project.as_deref());
    option("document", row.document_id.as_deref());
    option("phase", args.phase.as_deref());
    let mut context = record.context.clone();
    context.extend(args.set.iter().cloned());
    for (name, value) in &context {
        option("set", Some(&format!("{name}={value}")));
    }
    option("replaces", Some(&found.number));
    format!(
        "{} is void, and no other number stands in its place yet: once the cause is gone, run the \
         same command again, or {command}",
        found.number
    )
}
