//! The loops that observe the clocks and Redis for this process. They read and report; they decide
//! nothing.

use std::sync::Arc;

use tokio::time::Instant;

use super::clocks::reported_after;
use super::{Clocks, Context, PROBE_PERIOD, RedisHealth};
use crate::redis::Redis;
use crate::task::{Task, Ticks};

impl Clocks {
    /// Reports the time and reads that of others, as long as the process runs.
    #[must_use]
    pub fn start(context: Arc<Context>) -> Task {
        let period = reported_after(&context.settings);
        Task::start("clocks", move |stop| async move {
            let mut ticks = Ticks::every(period, stop);
            while ticks.next().await {
                let clocks = &context.clocks;
                match context.ledger.report_time(context.membership.node()).await {
                    Ok((server, others)) => {
                        clocks.hear(server, &others);
                        clocks.tell();
                    }
                    Err(error) => tracing::debug!(%error, "the clocks are not compared"),
                }
                let offset_us = clocks.offset_us();
                let shown = offset_us.map_or(f64::NAN, |offset_us| offset_us as f64 / 1e6);
                context.metrics.clock_offset.set(shown);
            }
        })
    }
}

impl RedisHealth {
    /// Starts the watch: one probe per wanted partition and [`PROBE_PERIOD`].
    #[must_use]
    pub fn start(context: Arc<Context>, redis: Redis) -> Task {
        Task::start("redis health", move |stop| async move {
            let mut ticks = Ticks::every(PROBE_PERIOD, stop);
            loop {
                tokio::select! {
                    goes_on = ticks.next() => if !goes_on { return },
                    () = context.redis_health.wanted.notified() => {}
                }
                for partition in context.redis_health.numbers() {
                    if context.redis_health.claim(partition) {
                        tokio::spawn(probe(Arc::clone(&context), redis.clone(), partition));
                    }
                }
            }
        })
    }
}

/// Probes one partition and notes the answer.
async fn probe(context: Arc<Context>, redis: Redis, partition: u32) {
    let asked_at = Instant::now();
    let probed = match redis.probe(&context.keys, partition).await {
        Ok(probe) if probe.is_master => Ok(probe),
        Ok(_) => Err("the server of redis.url is not a master".to_owned()),
        Err(error) => Err(error.cause()),
    };
    let health = &context.redis_health;
    // A command reports it where it matters there.
    let why = probed.as_ref().err().cloned();
    health.note(partition, asked_at, probed);
    if context.eager {
        health.tell(partition, why.as_ref());
    }
}
