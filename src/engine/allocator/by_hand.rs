//! Numbers that were given by hand, as the series reads them that would have given them, or as they
//! are written where none could. Takes nothing.
//!
//! Never guesses: the number is rendered again from what the request says, and equal to the letter.
//! A number as written is read by no series, which the ledger finds out.

use std::sync::Arc;

use numbering::{PartialNumber, Policy, Serial, Series, TEXT_CHARS_MAX};

use super::{AllocError, Allocator, Request, check_key};
use crate::ledger::{AS_WRITTEN_SERIAL, CounterSpec, NumberByHand, Record, TakeRequest};

/// A number that was given by hand, as its caller says it.
#[derive(Clone, Copy, Debug)]
pub struct SaidByHand<'a> {
    /// The number, in normal form C.
    pub number: &'a str,
    /// Why it was given by hand.
    pub reason: &'a str,
    /// Whether it is to be kept as written, since no series could render it.
    pub is_as_written: bool,
}

/// A number that was given by hand, as its series reads it.
#[derive(Clone, Debug)]
pub struct ReadByHand {
    /// What is to be registered.
    pub new: NumberByHand,
    /// Code of the series.
    pub series: String,
    /// Why it is not registered, where its date lies in a closed period. One that was registered
    /// before stays so.
    pub closed: Option<AllocError>,
}

impl Allocator {
    /// Reads a number that was given by hand for a request, which says all that the number does not
    /// show.
    ///
    /// # Errors
    /// What is wrong with the request, as for a number that is taken; a number that the series
    /// would not give for it, or a series that takes none by hand. Whether a series could render a
    /// number as written is not looked at.
    pub async fn read_by_hand(
        &self,
        request: Request,
        said: SaidByHand<'_>,
    ) -> Result<ReadByHand, AllocError> {
        let SaidByHand { number, reason, is_as_written } = said;
        let is_narrowed = !request.identity.scope.is_everything();
        let order = self.checked(request).await?;
        let definition = &order.served.version.definition;
        if !definition.by_hand {
            let reason = format!(
                "series {} takes no numbers by hand: apply it with `by_hand = true` first",
                definition.code
            );
            return Err(AllocError::Field { field: "type", reason });
        }
        let take = TakeRequest {
            record: Arc::clone(&order.record),
            count: 1,
            family: order.family.clone(),
            specs: order.specs.clone(),
            question: order.question(self.shared.context.windows_ago_us(1)),
            retry_count: 0,
            reserve_us: None,
        };
        let (value, take) = if is_as_written {
            (0, as_written(take, number)?)
        } else {
            (value_of(&order.served.series, &order.partial, number)?, take)
        };
        let returns =
            definition.policy == Policy::Gapless && order.family.is_none() && !is_as_written;
        let (number, reason) = (number.to_owned(), reason.to_owned());
        Ok(ReadByHand {
            new: NumberByHand {
                order: take,
                number,
                value,
                is_as_written,
                is_narrowed,
                returns,
                reason,
            },
            series: definition.code.clone(),
            closed: order.closed.map(AllocError::from),
        })
    }
}

/// The request of a number as written: its counter is one of such numbers, of the key that a number
/// of the series would count by, and its mask shows no value. It keeps no order of dates.
fn as_written(take: TakeRequest, number: &str) -> Result<TakeRequest, AllocError> {
    check_key(number, TEXT_CHARS_MAX)
        .map_err(|reason| AllocError::Field { field: "number", reason })?;
    let of_texts = |spec: CounterSpec| CounterSpec {
        serial: AS_WRITTEN_SERIAL.to_owned(),
        start: 1,
        step: 1,
        max: 1,
        headroom: 0,
        ..spec
    };
    let specs: Vec<CounterSpec> = take.specs.into_iter().take(1).map(of_texts).collect();
    let record = Record {
        mask: PartialNumber::of_text(number).to_text(),
        serials: specs.iter().map(|spec| spec.serial.clone()).collect(),
        counter_keys: specs.iter().map(|spec| spec.key.clone()).collect(),
        ..(*take.record).clone()
    };
    Ok(TakeRequest { record: Arc::new(record), family: None, specs, ..take })
}

/// The value that a number shows, where the rest of it is what the request says.
fn value_of(series: &Series, partial: &PartialNumber, number: &str) -> Result<u64, AllocError> {
    let refused = |reason: String| AllocError::Field { field: "number", reason };
    let parsed = series.parse(number).map_err(|error| refused(error.to_string()))?;
    let (Some(serial), Some(shown)) = (series.serials().first(), parsed.serials.first()) else {
        return Err(refused("shows no value of the series' serial".into()));
    };
    let value = shown.value;
    if let Some(flaw) = flaw_of(serial, value) {
        return Err(refused(format!("serial {} is {value}, {flaw}", serial.name)));
    }
    let rendered = partial.fill(&[value])?;
    if rendered != number {
        let reason = format!(
            "with what the request says it would be {rendered:?}: correct the number, or what is \
             said of it"
        );
        return Err(refused(reason));
    }
    Ok(value)
}

/// Why a serial never has a value.
fn flaw_of(serial: &Serial, value: u64) -> Option<String> {
    let Serial { start, step, max, .. } = *serial;
    if value < start {
        return Some(format!("which lies below its start, {start}"));
    }
    if value > max {
        return Some(format!("more than its highest, {max}"));
    }
    let is_on_step = (value - start).is_multiple_of(step);
    (!is_on_step).then(|| format!("not on its step of {step} from {start} on"))
}
