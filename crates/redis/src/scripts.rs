//! One typed function and one outcome enum per script.
//!
//! Reads answers and nothing more: the reaction to a fence or a cold counter is decided elsewhere.

use fred::types::Value;
use numbering::TakenRange;
use numerator_runtime::node::NodeId;

use super::call::{Call, Verb};
use super::flight::{Completion, Flight, IssueAnswer, Raised, SeedState, named, window_text};
use super::reply::{Parts, answer, completion, garbled, parse_taken, read_outcome};
use super::{CounterError, Guard, Keys, Redis};

/// What `open` writes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Opening {
    /// The partition.
    pub partition: u32,
    /// The epoch to open.
    pub epoch: u64,
    /// The incarnation that the ledger names.
    pub incarnation: String,
    /// The ledger's deployment id.
    pub deployment: String,
    /// The epoch just closed: `continuous_since` is carried over only from an owner record of it.
    pub closed_epoch: u64,
    /// Now.
    pub now_ms: Option<i64>,
    /// Whether no number was ever issued in this partition: then no key can be older.
    pub pristine: bool,
    /// The idempotency window, in milliseconds: records of another window are not complete.
    pub window_ms: u64,
}

/// Outcome of `open`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OpenOutcome {
    /// The epoch is open in Redis.
    Opened,
    /// It has an equal or higher epoch: the ledger went back, or `open` was sent twice (F9).
    Newer {
        /// That epoch.
        epoch: u64,
    },
    /// The owner record belongs to another ledger.
    Foreign {
        /// Its deployment id.
        deployment: String,
    },
    /// The server is not a master or shows another or no usable incarnation.
    Unfit {
        /// What it showed.
        reason: String,
    },
}

/// Outcome of `bar`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Barred {
    /// The node cannot write any more in this epoch.
    Barred,
    /// The ownership is not the one named.
    Fenced,
}

/// One entry of an outbox.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutboxEntry {
    /// The flight that wrote it.
    pub flight: u64,
    /// Its epoch.
    pub epoch: u64,
    /// What it took or replayed: values and record.
    pub allocations: Vec<(Vec<TakenRange>, String)>,
}

/// A page of a barred node's outbox.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OutboxPage {
    /// Entries after the position asked for; fewer than the limit: the last page.
    Entries {
        /// The entries.
        entries: Vec<OutboxEntry>,
        /// Whether the outbox holds as many entries as its count says.
        complete: bool,
    },
    /// The ownership is not the one named, or the node is not barred.
    Fenced,
}

/// Outcome of `trim`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trimmed {
    /// This many entries were removed.
    Removed(u64),
    /// The ownership is not the one named.
    Fenced,
    /// The node was barred.
    Barred,
}

impl Redis {
    /// Sends a flight of requests.
    ///
    /// # Errors
    /// See [`CounterError`].
    pub async fn issue(&self, flight: &Flight) -> Result<Completion<IssueAnswer>, CounterError> {
        self.send(flight, Verb::Issue, |parts| {
            let outcomes = answers(parts, flight, read_outcome)?;
            Ok(IssueAnswer { outcomes, records_shed: parts.number()? })
        })
        .await
    }

    /// Sends a seed.
    ///
    /// # Errors
    /// See [`CounterError`].
    pub async fn seed(&self, flight: &Flight) -> Result<Completion<Vec<SeedState>>, CounterError> {
        let read = |value: Value| match value.as_str().as_deref() {
            Some("seeded") => Ok(SeedState::Seeded),
            Some("warm") => Ok(SeedState::Warm),
            _ => Err(garbled("a seed's state expected")),
        };
        self.send(flight, Verb::Seed, |parts| answers(parts, flight, read)).await
    }

    /// Sends a raise.
    ///
    /// # Errors
    /// See [`CounterError`].
    pub async fn raise(&self, flight: &Flight) -> Result<Completion<Vec<Raised>>, CounterError> {
        let read = |value: Value| {
            let mut parts = Parts::of(value)?;
            let raised = match parts.text()?.as_str() {
                "ceiling" => Raised::Ceiling(parts.number()?),
                "cold" => Raised::Cold,
                "regressed" => Raised::Regressed,
                other => return Err(garbled(&format!("unexpected answer {other:?}"))),
            };
            parts.end()?;
            Ok(raised)
        };
        self.send(flight, Verb::Raise, |parts| answers(parts, flight, read)).await
    }

    /// Opens an epoch. Sent once, by the node that claimed it in the ledger (F6).
    ///
    /// # Errors
    /// See [`CounterError`]; after `Unknown` the epoch is given up, never opened again.
    pub async fn open(&self, keys: &Keys, opening: &Opening) -> Result<OpenOutcome, CounterError> {
        let Opening { partition, epoch, incarnation, deployment, closed_epoch, .. } = opening;
        let args = vec![
            epoch.to_string(),
            incarnation.clone(),
            deployment.clone(),
            closed_epoch.to_string(),
            named(opening.now_ms),
            u8::from(opening.pristine).to_string(),
            window_text(opening.window_ms),
        ];
        let echo = format!("open {partition} {epoch}");
        let call = Call::new(Verb::Open, echo, vec![keys.owner(*partition)], args);
        self.ask(&call, |call, value| {
            let (word, mut parts) = answer(call, value)?;
            let outcome = match word.as_str() {
                "opened" => OpenOutcome::Opened,
                "newer" => OpenOutcome::Newer { epoch: parts.number()? },
                "foreign" => OpenOutcome::Foreign { deployment: parts.text()? },
                "unfit" => OpenOutcome::Unfit { reason: parts.text()? },
                other => return Err(garbled(&format!("unexpected word {other:?}"))),
            };
            parts.end()?;
            Ok(outcome)
        })
        .await
    }

    /// Removes the caller's own outbox entries up to and including a flight (all journaled), and
    /// records what the ledger confirmed to it, unless that is empty.
    ///
    /// # Errors
    /// See [`CounterError`]; safe to repeat.
    pub async fn trim(
        &self,
        keys: &Keys,
        guard: &Guard,
        upto: u64,
        confirmed: &str,
    ) -> Result<Trimmed, CounterError> {
        let rest = vec![upto.saturating_add(1).to_string(), confirmed.to_owned()];
        let call = owned_call(Verb::Trim, keys, guard, Some(guard.node), rest);
        self.ask(&call, read_trimmed).await
    }

    /// Bars a silent node from the partition before its outbox is read (F7).
    ///
    /// # Errors
    /// See [`CounterError`]; safe to repeat.
    pub async fn bar(
        &self,
        keys: &Keys,
        guard: &Guard,
        dead: NodeId,
    ) -> Result<Barred, CounterError> {
        let call = owned_call(Verb::Bar, keys, guard, None, vec![dead.to_string()]);
        self.ask(&call, |call, value| {
            Ok(match completion(call, value, |_| Ok(()))? {
                Completion::Completed(()) => Barred::Barred,
                _ => Barred::Fenced,
            })
        })
        .await
    }

    /// Reads a barred node's outbox after a flight number. `limit` is at least 1.
    ///
    /// # Errors
    /// See [`CounterError`].
    pub async fn read_outbox(
        &self,
        keys: &Keys,
        guard: &Guard,
        dead: NodeId,
        after: u64,
        limit: u32,
    ) -> Result<OutboxPage, CounterError> {
        let from = after.saturating_add(1).to_string();
        let args = vec![dead.to_string(), from, limit.max(1).to_string()];
        let call = owned_call(Verb::ReadOutbox, keys, guard, Some(dead), args);
        self.ask(&call, |call, value| {
            let page = completion(call, value, |parts| {
                let is_whole = parts.text()? == "whole";
                Ok((is_whole, parts.list(read_entry)?))
            })?;
            let Completion::Completed((is_whole, read)) = page else {
                return Ok(OutboxPage::Fenced);
            };
            let complete = is_whole && read.iter().all(|(_, is_sound)| *is_sound);
            let entries = read.into_iter().map(|(entry, _)| entry).collect();
            Ok(OutboxPage::Entries { entries, complete })
        })
        .await
    }

    /// Removes a barred node's journaled entries up to a flight, and the stream when it is empty.
    ///
    /// # Errors
    /// See [`CounterError`]; safe to repeat.
    pub async fn drop_outbox(
        &self,
        keys: &Keys,
        guard: &Guard,
        dead: NodeId,
        upto: u64,
    ) -> Result<Trimmed, CounterError> {
        let args = vec![dead.to_string(), upto.saturating_add(1).to_string()];
        let call = owned_call(Verb::DropOutbox, keys, guard, Some(dead), args);
        self.ask(&call, read_trimmed).await
    }

    /// Sends a call whose answer has one element per request.
    async fn send<T>(
        &self,
        flight: &Flight,
        verb: Verb,
        read: impl FnOnce(&mut Parts) -> Result<T, CounterError>,
    ) -> Result<Completion<T>, CounterError> {
        let call = flight.call();
        assert_eq!(call.verb, verb, "a flight is sent by the method of its own verb");
        self.ask(call, |call, value| completion(call, value, read)).await
    }
}

/// One answer for each request of a flight.
fn answers<T>(
    parts: &mut Parts,
    flight: &Flight,
    read: impl FnMut(Value) -> Result<T, CounterError>,
) -> Result<Vec<T>, CounterError> {
    let answers = parts.list(read)?;
    if answers.len() == flight.requests() {
        Ok(answers)
    } else {
        Err(garbled(&format!("{} answers to {}", answers.len(), flight.requests())))
    }
}

/// A call that checks the ownership but has no flight number: repeating it is harmless.
fn owned_call(
    verb: Verb,
    keys: &Keys,
    guard: &Guard,
    outbox_of: Option<NodeId>,
    rest: Vec<String>,
) -> Call {
    let Guard { partition, epoch, incarnation, node, .. } = guard;
    let echo = format!("{verb:?} {partition} {node} {epoch} {}", rest.join(" "));
    let mut names = vec![keys.owner(*partition)];
    names.extend(outbox_of.map(|node| keys.outbox(*partition, node)));
    let mut args = vec![epoch.to_string(), incarnation.clone(), node.to_string()];
    args.extend(rest);
    Call::new(verb, echo, names, args)
}

fn read_trimmed(call: &Call, value: Value) -> Result<Trimmed, CounterError> {
    Ok(match completion(call, value, Parts::number::<u64>)? {
        Completion::Completed(removed) => Trimmed::Removed(removed),
        Completion::Barred => Trimmed::Barred,
        _ => Trimmed::Fenced,
    })
}

/// Reads an outbox entry and whether it is one that `issue` writes. Another one makes the account
/// incomplete but must not hide those after it.
pub(super) fn read_entry(value: Value) -> Result<(OutboxEntry, bool), CounterError> {
    let mut parts = Parts::of(value)?;
    let id = parts.text()?;
    let fields = parts.list(|field| Ok(field.into_string().unwrap_or_default()))?;
    parts.end()?;
    let flight = id.split('-').next().and_then(|flight| flight.parse().ok());
    let flight = flight.ok_or_else(|| garbled(&format!("{id:?} is not an entry's id")))?;
    let mut entry = OutboxEntry { flight, epoch: 0, allocations: Vec::new() };
    let mut is_sound = id.ends_with("-0") && fields.len() >= 4;
    let (mut taken, mut records) = (None, None);
    for pair in fields.chunks(2) {
        let [field, text] = pair else { continue };
        match field.as_str() {
            "epoch" => entry.epoch = text.parse().unwrap_or_default(),
            "taken" => taken = Some(text),
            "records" => records = Some(text),
            _ => match read_whole(text) {
                Some(allocation) => entry.allocations.push(allocation),
                None => is_sound = false,
            },
        }
    }
    if let Some(taken) = taken {
        let records: Vec<&str> =
            records.map(|text| text.split_terminator('\n').collect()).unwrap_or_default();
        for line in taken.lines() {
            match read_allocation(line, &records) {
                Some(allocation) => entry.allocations.push(allocation),
                None => is_sound = false,
            }
        }
    }
    Ok((entry, is_sound && entry_is_dated(&fields)))
}

fn entry_is_dated(fields: &[String]) -> bool {
    matches!(fields, [field, epoch, ..] if field == "epoch" && epoch.parse::<u64>().is_ok())
}

/// Reads `<place of the record> <values>`.
fn read_allocation(line: &str, records: &[&str]) -> Option<(Vec<TakenRange>, String)> {
    let (place, values) = line.split_once(' ')?;
    let place: usize = place.parse().ok()?;
    let record = records.get(place.checked_sub(1)?)?;
    Some((parse_taken(values)?, (*record).to_owned()))
}

/// Reads `replayed <values> <record>` or `numbered <values> <record>`; an older version wrote
/// `taken` in the same form.
fn read_whole(text: &str) -> Option<(Vec<TakenRange>, String)> {
    let mut fields = text.splitn(3, ' ');
    let is_known = matches!(fields.next()?, "taken" | "replayed" | "numbered");
    let taken = parse_taken(fields.next()?)?;
    let record = fields.next()?;
    is_known.then(|| (taken, record.to_owned()))
}
