//! What time the servers of Redis show, for the comparison of clocks. Decides nothing.

use fred::types::Value;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::Redis;
use super::link::Link;

/// What one master says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerTime {
    /// Where it listens.
    pub server: String,
    /// Its time in microseconds of UTC, and the moments before it was asked and after it answered;
    /// or why it gives none.
    pub told: Result<(i64, Instant, Instant), String>,
}

impl Redis {
    /// Asks every master for the time. Never fails; takes a few `redis.command_timeout` at most.
    pub async fn times(&self) -> Vec<ServerTime> {
        let mut asked = JoinSet::new();
        for link in self.masters.masters().await {
            asked.spawn(async move {
                let server = link.address().to_string();
                ServerTime { server, told: time(&link).await }
            });
        }
        let mut times = asked.join_all().await;
        times.sort_by(|a, b| a.server.cmp(&b.server));
        times
    }
}

async fn time(link: &Link) -> Result<(i64, Instant, Instant), String> {
    let asked = Instant::now();
    let told = link.inquire("TIME", Vec::new()).await;
    let told = told.map_err(|error| link.judge(&link.wire(), &error).cause())?;
    let at_us = read(told).ok_or("its time is none")?;
    Ok((at_us, asked, Instant::now()))
}

/// Seconds and microseconds, as texts.
fn read(told: Value) -> Option<i64> {
    let mut parts = told.into_array().into_iter().map(|part| part.into_string()?.parse().ok());
    let (seconds, micros): (i64, i64) = (parts.next()??, parts.next()??);
    seconds.checked_mul(1_000_000)?.checked_add(micros)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_two_numbers() {
        let told = |parts: &[&str]| Value::Array(parts.iter().map(|part| (*part).into()).collect());
        assert_eq!(read(told(&["1700000000", "250"])), Some(1_700_000_000_000_250));
        assert_eq!([read(told(&["1"])), read(told(&["x", "1"])), read(Value::Null)], [None; 3]);
    }
}
