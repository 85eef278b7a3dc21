//! Reads what scripts answer. An answer that no script gives is `Garbled`, never guessed.

use std::str::FromStr;

use fred::types::Value;
use numbering::{Range, TakenRange};

use super::CounterError;
use super::call::Call;
use super::flight::{Completion, IssueOutcome};

/// One array of an answer, read from the front.
#[derive(Debug)]
pub(super) struct Parts(std::vec::IntoIter<Value>);

impl Parts {
    /// Reads an array.
    pub(super) fn of(value: Value) -> Result<Self, CounterError> {
        match value {
            Value::Array(values) => Ok(Parts(values.into_iter())),
            other => Err(garbled(&format!("an array expected, {:?} came", other.kind()))),
        }
    }

    /// The next text.
    pub(super) fn text(&mut self) -> Result<String, CounterError> {
        let value = self.0.next().ok_or_else(|| garbled("too short"))?;
        value.into_string().ok_or_else(|| garbled("a text expected"))
    }

    /// The next whole number.
    pub(super) fn number<N: FromStr>(&mut self) -> Result<N, CounterError> {
        let text = self.text()?;
        text.parse().map_err(|_| garbled(&format!("a number expected, {text:?} came")))
    }

    /// The next values.
    pub(super) fn taken(&mut self) -> Result<Vec<TakenRange>, CounterError> {
        read_taken(&self.text()?)
    }

    /// The next array, each element read by `read`.
    pub(super) fn list<T>(
        &mut self,
        read: impl FnMut(Value) -> Result<T, CounterError>,
    ) -> Result<Vec<T>, CounterError> {
        let value = self.0.next().ok_or_else(|| garbled("too short"))?;
        Parts::of(value)?.0.map(read).collect()
    }

    /// Checks that nothing is left.
    pub(super) fn end(mut self) -> Result<(), CounterError> {
        self.0.next().map_or(Ok(()), |_| Err(garbled("too long")))
    }
}

/// The error of an answer that no script gives.
pub(super) fn garbled(what: &str) -> CounterError {
    CounterError::Garbled(what.to_owned())
}

/// Splits an answer into its leading word and the rest, once its echo has been checked.
pub(super) fn answer(call: &Call, value: Value) -> Result<(String, Parts), CounterError> {
    let mut parts = Parts::of(value)?;
    let word = parts.text()?;
    let echo = parts.text()?;
    if echo != call.echo {
        return Err(garbled(&format!("{:?} was asked, {echo:?} is answered", call.echo)));
    }
    Ok((word, parts))
}

/// Reads the answer to a flight: a refusal by the guard, or the script's own answer by `read`.
pub(super) fn completion<T>(
    call: &Call,
    value: Value,
    read: impl FnOnce(&mut Parts) -> Result<T, CounterError>,
) -> Result<Completion<T>, CounterError> {
    let (word, mut parts) = answer(call, value)?;
    let completion = match word.as_str() {
        "fenced" => Completion::Fenced { epoch: parts.text()?.parse().ok(), reason: parts.text()? },
        "barred" => Completion::Barred,
        "late" => Completion::Late,
        "mismatch" => Completion::Mismatch,
        "miscounted" => Completion::Miscounted,
        word if word == call.verb.word() => Completion::Completed(read(&mut parts)?),
        other => return Err(garbled(&format!("unexpected word {other:?}"))),
    };
    parts.end()?;
    Ok(completion)
}

/// The parts of an answer that must begin with the verb's own word.
pub(super) fn expect(call: &Call, value: Value) -> Result<Parts, CounterError> {
    let (word, parts) = answer(call, value)?;
    if word == call.verb.word() {
        Ok(parts)
    } else {
        Err(garbled(&format!("unexpected word {word:?}")))
    }
}

/// Reads the outcome of one request of a flight.
pub(super) fn read_outcome(value: Value) -> Result<IssueOutcome, CounterError> {
    // Most requests take: their outcome is the values alone.
    if let Some(values) = value.as_str() {
        return Ok(IssueOutcome::Taken(read_taken(&values)?));
    }
    let mut parts = Parts::of(value)?;
    let outcome = match parts.text()?.as_str() {
        "replayed" => IssueOutcome::Replayed { taken: parts.taken()?, record: parts.text()? },
        "numbered" => {
            IssueOutcome::DocumentNumbered { taken: parts.taken()?, record: parts.text()? }
        }
        "reused" => IssueOutcome::KeyReused,
        "ask" => IssueOutcome::Ask,
        "journaled" => IssueOutcome::Journaled,
        "cold" => IssueOutcome::Cold { take: parts.number()? },
        "unseen" => IssueOutcome::Unverified {
            take: parts.number()?,
            counter_id: parts.number()?,
            ceiling: parts.number()?,
        },
        "ceiling" => IssueOutcome::Ceiling {
            take: parts.number()?,
            value: parts.number()?,
            ceiling: parts.number()?,
        },
        "below" => IssueOutcome::Below {
            take: parts.number()?,
            counter_id: parts.number()?,
            value: parts.number()?,
        },
        "exhausted" => IssueOutcome::Exhausted { take: parts.number()? },
        "vanished" => IssueOutcome::Vanished,
        "regressed" => IssueOutcome::Regressed { take: parts.number()? },
        "nothing" => IssueOutcome::Nothing,
        other => return Err(garbled(&format!("unexpected outcome {other:?}"))),
    };
    parts.end()?;
    Ok(outcome)
}

/// Reads values, or returns `None` if they are none.
pub(super) fn read_taken(text: &str) -> Result<Vec<TakenRange>, CounterError> {
    parse_taken(text).ok_or_else(|| garbled(&format!("values expected, {text:?} came")))
}

/// Reads `counter id:first:last:step`, joined by commas.
pub(super) fn parse_taken(text: &str) -> Option<Vec<TakenRange>> {
    text.split(',').map(parse_range).collect()
}

fn parse_range(text: &str) -> Option<TakenRange> {
    let mut fields = text.split(':');
    let counter_id = fields.next()?.parse().ok()?;
    let mut value = || fields.next()?.parse::<u64>().ok();
    let range = Range { first: value()?, last: value()?, step: value()? };
    // `Range::count` asserts this too: a malformed range must not get past here.
    let is_sound = range.step >= 1
        && range.first <= range.last
        && (range.last - range.first).is_multiple_of(range.step);
    (fields.next().is_none() && is_sound).then_some(TakenRange { counter_id, range })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read_back_as_they_were_written() {
        let taken =
            parse_taken("7:1:21:10,-8:9007199254740991:9007199254740991:1").expect("values");
        assert_eq!(taken.len(), 2);
        assert_eq!(taken[0].counter_id, 7);
        assert_eq!(taken[0].range, Range { first: 1, last: 21, step: 10 });
        assert_eq!(taken[1].range.first, 9_007_199_254_740_991);
    }

    #[test]
    fn a_range_that_no_script_writes_is_not_read() {
        for text in ["", "7", "7:1:2", "7:1:2:1:1", "7:2:1:1", "7:1:2:0", "7:1:4:2", "7:-1:1:1"] {
            assert_eq!(parse_taken(text), None, "{text}");
        }
    }

    #[test]
    fn a_reply_for_another_call_is_garbled() {
        let call = Call::new(
            super::super::call::Verb::Issue,
            "issue 1".into(),
            vec!["owner".into()],
            Vec::<String>::new(),
        );
        let other = Value::Array(vec!["issued".into(), "issue 2".into(), Value::Array(vec![])]);
        assert!(matches!(answer(&call, other), Err(CounterError::Garbled(_))));
        assert!(matches!(answer(&call, Value::Null), Err(CounterError::Garbled(_))));
        let own = Value::Array(vec!["issued".into(), "issue 1".into()]);
        assert_eq!(answer(&call, own).expect("its own").0, "issued");
    }
}
