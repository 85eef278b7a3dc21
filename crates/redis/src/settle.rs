//! The outcome of a flight whose outcome is unknown, asked for once its epoch ends (F17).
//!
//! Must never be asked for a flight that may be sent again: asking spends its number.

use super::call::{Call, Verb};
use super::reply::{answer, garbled, read_outcome};
use super::{CounterError, Flight, Guard, IssueOutcome, Keys, Redis};

/// The outcome of a flight.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Settled {
    /// It was executed, with one outcome per request. Numbers that it took or replayed may be
    /// handed out, even if the data set has changed its id since.
    Executed(Vec<IssueOutcome>),
    /// It was not executed, and never will be.
    Spent,
    /// Not known: its epoch is gone from this server, or its outbox is not whole.
    Fenced {
        /// Why it cannot be known.
        reason: String,
    },
}

impl Redis {
    /// Asks for the outcome of a flight of requests.
    ///
    /// # Errors
    /// See [`CounterError`]; safe to repeat.
    pub async fn settle(&self, keys: &Keys, flight: &Flight) -> Result<Settled, CounterError> {
        let Guard { partition, epoch, node, flight: number, .. } = flight.guard();
        let echo = format!("settle {partition} {node} {number}");
        let names = vec![keys.owner(*partition), keys.outbox(*partition, *node)];
        let args = vec![
            epoch.to_string(),
            node.to_string(),
            number.to_string(),
            flight.digest().to_owned(),
            flight.requests().to_string(),
        ];
        let call = Call::new(Verb::Settle, echo, names, args);
        self.ask(&call, |call, value| {
            let (word, mut parts) = answer(call, value)?;
            let settled = match word.as_str() {
                "executed" => {
                    let outcomes = parts.list(read_outcome)?;
                    if outcomes.len() != flight.requests() {
                        return Err(garbled("not one outcome per request"));
                    }
                    Settled::Executed(outcomes)
                }
                "spent" => Settled::Spent,
                "fenced" => {
                    let _epoch = parts.text()?;
                    Settled::Fenced { reason: parts.text()? }
                }
                other => return Err(garbled(&format!("unexpected word {other:?}"))),
            };
            parts.end()?;
            Ok(settled)
        })
        .await
    }
}
