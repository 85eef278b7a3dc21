//! What numbers would look like. Takes nothing: somebody else may get the same.

use numbering::{Inputs, SNOWFLAKES_PER_MS, Serial, Series, Snowflake};
use tokio::time::Instant;

use super::drafting::{Drafting, Purpose};
use super::pending_request::Order;
use super::{
    AllocError, Allocator, Hints, NextValue, Preview, Request, redis_path, replay, unread,
};
use crate::counter::{CounterState, Inspection};
use crate::ledger::{At, Counter, Owner, Partition, PartitionState};

impl Allocator {
    /// Checks a request and shows what its number would look like. Takes nothing.
    ///
    /// # Errors
    /// Whatever `issue` would refuse before taking a number.
    pub async fn preview(&self, request: Request) -> Result<Preview, AllocError> {
        let context = &self.shared.context;
        let request = request.within_reach();
        let began = Instant::now();
        let by = began + context.settings.time_limit;
        let drafted =
            self.draft(&request, (began, by), (Purpose::Preview, &Hints::default())).await?;
        let Drafting::Drafted(drafted) = drafted else { unreachable!("a preview asks nobody") };
        let order = Order::of(request, drafted, context.clock.as_ref())?;
        if let Some(closed) = order.closed {
            return Err(closed.into());
        }
        self.check_chronology(&order).await?;
        let serials = order.served.series.serials();
        let mut nexts = Vec::with_capacity(serials.len());
        for (index, (serial, key)) in serials.iter().zip(&order.record.counter_keys).enumerate() {
            let next = self.next_value(Some(order.record.series_id), serial, key).await?;
            if next.value > serial.max {
                return Err(replay::exhausted(&order, index));
            }
            nexts.push(next);
        }
        let values: Vec<u64> = nexts.iter().map(|next| next.value).collect();
        let series = order.served.version.definition.code.clone();
        Ok(Preview { number: order.partial.fill(&values)?, series, record: order.record, nexts })
    }

    /// The next `count` numbers of a series that may not be saved yet, for one request to it; fewer
    /// where a serial ends. `series_id` names the counters that it would go on with.
    ///
    /// # Errors
    /// `Input` where the series refuses the request; `Unavailable` where the ledger does not
    /// answer.
    pub async fn preview_series(
        &self,
        series: &Series,
        series_id: Option<i64>,
        inputs: &Inputs,
        count: u64,
    ) -> Result<Vec<String>, AllocError> {
        let now = self.shared.context.clock.now();
        let mut draft = series.draft(inputs, now)?;
        let mut nexts = Vec::with_capacity(draft.keys.len());
        for (serial, key) in series.serials().iter().zip(&draft.keys) {
            nexts.push(self.next_value(series_id, serial, &key.to_string()).await?.value);
        }
        let mut numbers = Vec::new();
        for place in 0..count {
            let steps = series.serials().iter().zip(&nexts);
            let values: Vec<u64> =
                steps.clone().map(|(serial, next)| next + place * serial.step).collect();
            if steps.zip(&values).any(|((serial, _), value)| *value > serial.max) {
                break;
            }
            if let Some(id) = draft.snowflake {
                // Each shows an id of its own.
                let serial = place % u64::from(SNOWFLAKES_PER_MS);
                let serial = u16::try_from(serial).expect("fewer than that");
                id.put(&mut draft.partial, Snowflake::sample(now, serial));
            }
            numbers.push(draft.partial.fill(&values)?);
        }
        Ok(numbers)
    }

    /// Refuses a preview that is dated before the last number of its counters.
    async fn check_chronology(&self, order: &Order) -> Result<(), AllocError> {
        let (Some(family), Some(first)) = (&order.family, order.specs.first()) else {
            return Ok(());
        };
        let ledger = &self.shared.context.ledger;
        let last = ledger.last_date(first.series_id, &first.serial, family).await;
        let last = last.map_err(|error| unread(&error))?;
        match last.filter(|last| order.record.document_date < *last) {
            Some(last_date) => Err(replay::before_last(order, last_date)),
            None => Ok(()),
        }
    }

    /// The value that a counter gives next, as far as the ledger and its Redis know.
    async fn next_value(
        &self,
        series_id: Option<i64>,
        serial: &Serial,
        key: &str,
    ) -> Result<NextValue, AllocError> {
        let first = NextValue { value: serial.start, is_new_counter: true };
        let Some(series_id) = series_id else { return Ok(first) };
        let row = self.shared.context.ledger.counter(series_id, &serial.name, key).await;
        let row = row.map_err(|error| unread(&error))?;
        let Some(counter) = row else { return Ok(first) };
        let home = self.home_of(&counter).await?;
        let home = home.as_ref();
        let spoken_for = self.spoken_for(&counter, home).await?;
        let taken = spoken_for.max(self.taken_in_redis(&counter, home).await);
        let next = taken + redis_path::signed(serial.step);
        let value = u64::try_from(next).unwrap_or(serial.start);
        Ok(NextValue { value, is_new_counter: false })
    }

    /// Where a counter lives, by the news of this process, or by the ledger where the counter is in
    /// an epoch that has not come to these yet.
    async fn home_of(&self, counter: &Counter) -> Result<Option<Partition>, AllocError> {
        let of = |rows: &[Partition]| {
            rows.iter().find(|row| row.partition == counter.partition).cloned()
        };
        let told = of(&self.shared.context.membership.news().borrow());
        // News of an epoch that was about to open do not say who owns it.
        let is_of_now = |home: &Partition| {
            home.epoch > counter.epoch
                || home.epoch == counter.epoch && home.state == PartitionState::Open
        };
        if told.as_ref().is_some_and(is_of_now) {
            return Ok(told);
        }
        let rows = self.shared.context.ledger.partitions().await;
        Ok(of(&rows.map_err(|error| unread(&error))?))
    }

    /// The highest value that Redis has given of a counter in its present epoch: the journal may be
    /// behind it. Zero where Redis does not own it, or does not answer.
    async fn taken_in_redis(&self, counter: &Counter, home: Option<&Partition>) -> i64 {
        let (context, partition) = (&self.shared.context, counter.partition);
        let Some(redis) = context.redis_of(partition).filter(|_| !context.redis_is_gone(partition))
        else {
            return 0;
        };
        let home = home.filter(|home| home.epoch == counter.epoch);
        let Some(Owner::Redis { incarnation }) = home.map(|home| &home.owner) else { return 0 };
        let at = (partition, counter.epoch, incarnation.as_str());
        match redis.inspect(&context.keys, at, &[counter.name()]).await {
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
        let context = &self.shared.context;
        let is_above = match home.map_or(Some(false), |home| home.is_above_ceiling(epoch)) {
            Some(known) => known,
            None => {
                let at = At { partition, epoch };
                let closed = context.ledger.closed_epoch(at, None).await;
                let closed = closed.map_err(|error| unread(&error))?;
                !closed.is_some_and(|closed| closed.closes_exact(at))
            }
        };
        Ok(if is_above { counter.ceiling } else { counter.taken })
    }
}
