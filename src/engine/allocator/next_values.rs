//! The values that counters give next, as far as the ledger and Redis know, and the numbers with
//! them. For previews, of a process that serves and of a command with exclusive access to the
//! stores.

use jiff::Timestamp;
use numbering::{Draft, Inputs, SNOWFLAKES_PER_MS, Serial, Series, Snowflake};

use super::error::unread;
use super::{AllocError, NextValue, redis_path, replay};
use crate::engine::reconciler::Stores;
use crate::ledger::{At, Counter, Owner, Partition, SharedLedger};
use crate::redis::{CounterState, Inspection, Keys, Redis};

/// The next `count` numbers of a series for one request to it, for a caller with exclusive access
/// to the stores; fewer where a serial ends. `series_id` names the counters that it continues.
///
/// # Errors
/// `Input` where the series refuses the request; `BelowStart` where its counter has not come to the
/// first value; `Unavailable` where the ledger does not answer.
pub async fn next_numbers(
    stores: &Stores,
    series: &Series,
    series_id: Option<i64>,
    (inputs, count): (&Inputs, u64),
) -> Result<Vec<String>, AllocError> {
    let Stores { ledger, redis, keys, clock } = stores;
    let now = clock.now();
    let draft = series.draft(inputs, now)?;
    let rows = ledger.partitions().await.map_err(|error| unread(&error))?;
    let sight = CounterReader { ledger, redis: redis.as_ref(), keys };
    let mut nexts = Vec::with_capacity(draft.keys.len());
    for (serial, key) in series.serials().iter().zip(&draft.keys) {
        let counter = match series_id {
            Some(series_id) => {
                ledger.counters().get(series_id, &serial.name, &key.to_string()).await
            }
            None => Ok(None),
        };
        nexts.push(match counter.map_err(|error| unread(&error))? {
            None => NextValue::first(serial),
            Some(counter) => {
                let home = rows.iter().find(|row| row.partition == counter.partition);
                sight.next(serial, &counter, home).await?
            }
        });
    }
    texts(series, draft, &nexts, (count, now))
}

/// The numbers with these values, and with those that follow them.
pub(super) fn texts(
    series: &Series,
    mut draft: Draft,
    nexts: &[NextValue],
    (count, now): (u64, Timestamp),
) -> Result<Vec<String>, AllocError> {
    for (serial, next) in series.serials().iter().zip(nexts) {
        must_have_begun(&series.definition().code, serial, next)?;
    }
    let mut numbers = Vec::new();
    for place in 0..count {
        let steps = series.serials().iter().zip(nexts);
        let values: Vec<u64> =
            steps.clone().map(|(serial, next)| next.value + place * serial.step).collect();
        if steps.zip(&values).any(|((serial, _), value)| *value > serial.max) {
            break;
        }
        if let Some(id) = draft.snowflake {
            // Each shows another id.
            let serial = place % u64::from(SNOWFLAKES_PER_MS);
            let serial = u16::try_from(serial).expect("fewer than that");
            id.put(&mut draft.partial, Snowflake::sample(now, serial));
        }
        numbers.push(draft.partial.fill(&values)?);
    }
    Ok(numbers)
}

/// Refuses a counter that has not come to the first value of its serial, as a take does.
pub(super) fn must_have_begun(
    code: &str,
    serial: &Serial,
    next: &NextValue,
) -> Result<(), AllocError> {
    let Some(counter_id) = next.counter_id.filter(|_| next.value < serial.start) else {
        return Ok(());
    };
    let value = redis_path::signed(next.value) - redis_path::signed(serial.step);
    Err(replay::below(code, serial, (counter_id, value)))
}

impl NextValue {
    /// That of a counter that is not there yet.
    pub(super) fn first(serial: &Serial) -> Self {
        NextValue { value: serial.start, is_new_counter: true, counter_id: None }
    }
}

/// The positions of counters.
pub(super) struct CounterReader<'a> {
    pub(super) ledger: &'a SharedLedger,
    /// Where it may be asked.
    pub(super) redis: Option<&'a Redis>,
    pub(super) keys: &'a Keys,
}

impl CounterReader<'_> {
    /// The value that a counter gives next. `home`: where it lives.
    pub(super) async fn next(
        &self,
        serial: &Serial,
        counter: &Counter,
        home: Option<&Partition>,
    ) -> Result<NextValue, AllocError> {
        let spoken_for = self.spoken_for(counter, home).await?;
        let taken = spoken_for.max(self.taken_in_redis(counter, home).await);
        let next = taken + redis_path::signed(serial.step);
        let value = u64::try_from(next).unwrap_or(serial.start);
        let counter_id = Some(counter.counter_id);
        Ok(NextValue { value, is_new_counter: false, counter_id })
    }

    /// The highest value that Redis has given of a counter in its present epoch: the journal may be
    /// behind it. Zero where Redis does not own it, or does not answer.
    async fn taken_in_redis(&self, counter: &Counter, home: Option<&Partition>) -> i64 {
        let Some(redis) = self.redis else { return 0 };
        let home = home.filter(|home| home.epoch == counter.epoch);
        let Some(Owner::Redis { incarnation }) = home.map(|home| &home.owner) else { return 0 };
        let at = (counter.partition, counter.epoch, incarnation.as_str());
        match redis.inspect(self.keys, at, &[counter.name()]).await {
            Ok(Inspection::Counters(states)) => match states[..] {
                [CounterState::Warm { value, .. }] => value,
                _ => 0,
            },
            // What the ledger knows is shown; nothing is taken by a preview.
            Ok(Inspection::Fenced { .. }) | Err(_) => 0,
        }
    }

    /// The highest value of a counter that is spoken for, as far as the ledger knows.
    async fn spoken_for(
        &self,
        counter: &Counter,
        home: Option<&Partition>,
    ) -> Result<i64, AllocError> {
        let Counter { partition, epoch, .. } = *counter;
        let is_above = match home.map_or(Some(false), |home| home.is_above_ceiling(epoch)) {
            Some(known) => known,
            None => {
                let at = At { partition, epoch };
                let closed = self.ledger.closed_epoch(at, None).await;
                let closed = closed.map_err(|error| unread(&error))?;
                !closed.is_some_and(|closed| closed.closes_exact(at))
            }
        };
        Ok(if is_above { counter.ceiling } else { counter.taken })
    }
}
