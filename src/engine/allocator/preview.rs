//! What numbers would look like. Takes nothing: another request may get the same number.

use numbering::{Inputs, Policy, Serial, Series};
use tokio::time::Instant;

use super::drafted::{Drafting, Purpose};
use super::error::unread;
use super::next_values::{CounterReader, must_have_begun, texts};
use super::pending_request::CheckedRequest;
use super::{AllocError, Allocator, Hints, NextValue, Preview, Request, replay};
use crate::ledger::{Counter, Partition, PartitionState};

impl Allocator {
    /// Checks a request and shows what its number would look like. Takes nothing.
    ///
    /// # Errors
    /// Whatever `issue` would refuse before taking a number.
    pub async fn preview(&self, request: Request) -> Result<Preview, AllocError> {
        let order = self.checked(request).await?;
        if let Some(closed) = order.closed {
            return Err(closed.into());
        }
        self.check_chronology(&order).await?;
        let serials = order.served.series.serials();
        let mut nexts = Vec::with_capacity(serials.len());
        for (index, (serial, key)) in serials.iter().zip(&order.record.counter_keys).enumerate() {
            let next = self.next_value(Some(order.record.series_id), serial, key).await?;
            let next = self.or_returned(&order, next).await?;
            must_have_begun(&order.served.version.definition.code, serial, &next)?;
            if next.value > serial.max {
                return Err(replay::exhausted(&order, index));
            }
            nexts.push(next);
        }
        let values: Vec<u64> = nexts.iter().map(|next| next.value).collect();
        let series = order.served.version.definition.code.clone();
        Ok(Preview { number: order.partial.fill(&values)?, series, record: order.record, nexts })
    }

    /// A request as it would be taken now. Asks no source, and takes nothing.
    ///
    /// # Errors
    /// What is wrong with the request.
    pub(super) async fn checked(&self, request: Request) -> Result<CheckedRequest, AllocError> {
        let context = &self.shared.context;
        let request = request.within_scope();
        let began = Instant::now();
        let by = began + context.settings.time_limit;
        let drafted =
            self.draft(&request, (began, by), (Purpose::Preview, &Hints::default())).await?;
        let Drafting::Drafted(drafted) = drafted else { unreachable!("a preview asks nobody") };
        CheckedRequest::of(request, drafted, context.clock.as_ref())
    }

    /// The next `count` numbers of a series that may not be saved yet, for one request to it; fewer
    /// where a serial ends. `series_id` names the counters that it would continue with.
    ///
    /// # Errors
    /// `Input` where the series refuses the request; `BelowStart` where its counter has not come to
    /// the first value; `Unavailable` where the ledger does not answer.
    pub async fn preview_series(
        &self,
        series: &Series,
        series_id: Option<i64>,
        inputs: &Inputs,
        count: u64,
    ) -> Result<Vec<String>, AllocError> {
        let now = self.shared.context.clock.now();
        let draft = series.draft(inputs, now)?;
        let mut nexts = Vec::with_capacity(draft.keys.len());
        for (serial, key) in series.serials().iter().zip(&draft.keys) {
            nexts.push(self.next_value(series_id, serial, &key.to_string()).await?);
        }
        texts(series, draft, &nexts, (count, now))
    }

    /// The value that came back from a reservation in place of the next one, where there is one: a
    /// request for several numbers takes none.
    async fn or_returned(
        &self,
        order: &CheckedRequest,
        next: NextValue,
    ) -> Result<NextValue, AllocError> {
        let policy = order.served.version.definition.policy;
        let ([spec], None, Policy::Gapless) = (&order.specs[..], &order.family, policy) else {
            return Ok(next);
        };
        if order.count() != 1 {
            return Ok(next);
        }
        let ledger = &self.shared.context.ledger;
        let lowest = ledger.counters().lowest_returned(spec).await;
        let lowest = lowest.map_err(|error| unread(&error))?;
        let lowest = lowest.and_then(|lowest| u64::try_from(lowest).ok());
        Ok(lowest.map_or(next, |value| NextValue { value, ..next }))
    }

    /// Refuses a preview that is dated before the last number of its counters.
    async fn check_chronology(&self, order: &CheckedRequest) -> Result<(), AllocError> {
        let (Some(family), Some(first)) = (&order.family, order.specs.first()) else {
            return Ok(());
        };
        let ledger = &self.shared.context.ledger;
        let last = ledger.counters().last_date(first.series_id, &first.serial, family).await;
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
        let Some(series_id) = series_id else { return Ok(NextValue::first(serial)) };
        let context = &self.shared.context;
        let row = context.ledger.counters().get(series_id, &serial.name, key).await;
        let row = row.map_err(|error| unread(&error))?;
        let Some(counter) = row else { return Ok(NextValue::first(serial)) };
        let home = self.home_of(&counter).await?;
        let partition = counter.partition;
        let redis = context.redis_of(partition).filter(|_| !context.redis_is_gone(partition));
        let sight = CounterReader { ledger: &context.ledger, redis, keys: &context.keys };
        sight.next(serial, &counter, home.as_ref()).await
    }

    /// Where a counter lives, by the news of this process, or by the ledger where the counter is in
    /// an epoch that has not come to these yet.
    async fn home_of(&self, counter: &Counter) -> Result<Option<Partition>, AllocError> {
        let of = |rows: &[Partition]| {
            rows.iter().find(|row| row.partition == counter.partition).cloned()
        };
        let told = of(&self.shared.context.membership.news().borrow());
        // The news of an epoch that was about to open do not show its owner.
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
}
