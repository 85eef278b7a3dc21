//! What numbers would look like. Takes nothing: somebody else may get the same.

use numbering::{Inputs, SNOWFLAKES_PER_MS, Serial, Series, Snowflake};

use super::pending_request::Order;
use super::{AllocError, Allocator, Preview, Request, redis_path, replay, unread};
use crate::ledger::{At, Counter, Partition};

impl Allocator {
    /// Checks a request and shows what its number would look like. Takes nothing.
    ///
    /// # Errors
    /// Whatever `issue` would refuse before taking a number.
    pub async fn preview(&self, request: Request) -> Result<Preview, AllocError> {
        let context = &self.shared.context;
        let order = Order::check(&self.catalog(), request, context.clock.as_ref())?;
        if let Some(closed) = order.closed {
            return Err(closed.into());
        }
        self.check_chronology(&order).await?;
        let serials = order.served.series.serials();
        let mut values = Vec::with_capacity(serials.len());
        for (index, (serial, key)) in serials.iter().zip(&order.record.counter_keys).enumerate() {
            let value = self.next_value(Some(order.record.series_id), serial, key).await?;
            if value > serial.max {
                return Err(replay::exhausted(&order, index));
            }
            values.push(value);
        }
        Ok(Preview { number: order.partial.fill(&values)?, record: order.record, values })
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
            nexts.push(self.next_value(series_id, serial, &key.to_string()).await?);
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

    /// The value that a counter gives next, as far as the ledger knows.
    async fn next_value(
        &self,
        series_id: Option<i64>,
        serial: &Serial,
        key: &str,
    ) -> Result<u64, AllocError> {
        let Some(series_id) = series_id else { return Ok(serial.start) };
        let row = self.shared.context.ledger.counter(series_id, &serial.name, key).await;
        let row = row.map_err(|error| unread(&error))?;
        let Some(counter) = row else { return Ok(serial.start) };
        let value = self.spoken_for(&counter).await?;
        Ok(u64::try_from(value + redis_path::signed(serial.step)).unwrap_or(serial.start))
    }

    /// The highest value of a counter that is spoken for, as far as the ledger knows.
    async fn spoken_for(&self, counter: &Counter) -> Result<i64, AllocError> {
        let Counter { partition, epoch, .. } = *counter;
        let context = &self.shared.context;
        let is_home = |row: &&Partition| row.partition == partition;
        let known = context
            .membership
            .news()
            .borrow()
            .iter()
            .find(is_home)
            .map_or(Some(false), |home| home.is_above_ceiling(epoch));
        let is_above = match known {
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
