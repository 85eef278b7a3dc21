//! This machine's clock compared with those of the stores (F37), and whether it is synchronised.

use jiff::SignedDuration;
use tokio::time::Instant;

use super::findings::{Findings, Grade};
use super::kernel_clock;
use super::ledger::Known;
use crate::clock::SharedClock;
use crate::config::Settings;
use crate::engine::node::CLOCK_NOTICED_US;
use crate::ledger::Heard;
use crate::redis::ServerTime;

const CHECK: &str = "clock";
const NTP: &str = "ntp";

/// The remedy for a difference.
const REMEDY: &str =
    "set the clock that is wrong, and have NTP keep it (chrony, systemd-timesyncd)";

/// Compares it with every clock that is known.
pub(super) fn compare(
    settings: &Settings,
    clock: &SharedClock,
    known: &Known,
    of_redis: &[ServerTime],
    findings: &mut Findings,
) {
    let max_us = i64::try_from(settings.allocator.clock_offset_max.as_micros()).unwrap_or(i64::MAX);
    let mut heard = Vec::new();
    if let Some(times) = &known.times {
        heard.extend(times.server.map(|server| ("PostgreSQL".to_owned(), server)));
        // With a file there is no other clock, and a time of writing in the future was written by a
        // clock that was ahead.
        let (own_us, newest_us) = (clock.now_us(), times.journaled_us.unwrap_or(i64::MIN));
        if times.server.is_none() && newest_us > own_us.saturating_add(max_us) {
            let says = format!(
                "the newest row of the journal is {} later than this machine's clock says",
                spelled(newest_us - own_us)
            );
            findings.add((CHECK, Grade::SomethingToDo), says, REMEDY);
        }
    }
    for ServerTime { server, told } in of_redis {
        match told {
            Ok((at_us, asked, answered)) => {
                let told = Heard { at_us: *at_us, asked: *asked, answered: *answered };
                heard.push((format!("Redis {server}"), told));
            }
            Err(why) => {
                let says = format!("Redis {server} does not tell the time: {why}");
                let remedy = "give the user the rights of deploy/redis-users.acl";
                findings.add((CHECK, Grade::Hazard), says, remedy);
            }
        }
    }
    for (whose, told) in heard {
        let offset_us = told.offset_us(clock.now_us(), Instant::now());
        let (apart, way) = (spelled(offset_us), if offset_us < 0 { "behind" } else { "ahead of" });
        let says = format!("this machine's clock is {apart} {way} that of {whose}");
        if offset_us.abs() > max_us {
            let says = format!("{says}: beyond node.clock_offset_max, no process starts");
            findings.add((CHECK, Grade::SomethingToDo), says, REMEDY);
        } else if offset_us.abs() > CLOCK_NOTICED_US {
            findings.add((CHECK, Grade::SomethingToDo), says, REMEDY);
        } else {
            findings.well(CHECK, says);
        }
    }
    let says = "nobody else tells the time here";
    findings.well_unless_found(CHECK, says);
}

/// Whether the kernel reports that NTP keeps the clock.
pub(super) fn ask_kernel(findings: &mut Findings) {
    let remedy = "run chrony or systemd-timesyncd; a machine whose host keeps its clock needs none";
    match kernel_clock::is_synchronised() {
        Ok(true) => findings.well(NTP, "the kernel says that its clock is synchronised"),
        Ok(false) => {
            let says = "the kernel does not say that its clock is synchronised";
            findings.add((NTP, Grade::Hazard), says, remedy);
        }
        Err(error) => {
            let says = format!("cannot tell whether the clock is synchronised: {error}");
            findings.add((NTP, Grade::Hazard), says, remedy);
        }
    }
}

/// A difference as people say it.
fn spelled(us: i64) -> String {
    let apart = SignedDuration::from_micros(us).abs();
    let apart = match apart.as_secs() {
        0 => SignedDuration::from_millis(i64::try_from(apart.as_millis()).unwrap_or(i64::MAX)),
        seconds => SignedDuration::from_secs(seconds),
    };
    format!("{apart:#}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_is_told_in_units_that_people_use() {
        assert_eq!([0, 2_500, -90_000_000].map(spelled), ["0s", "2ms", "1m 30s"]);
    }
}
