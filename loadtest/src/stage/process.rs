//! What processes use: processor time and memory, as the kernel counts them.

use std::collections::BTreeMap;
use std::time::Duration;

use testkit::redis;

/// Processor time that some processes have used, by a name.
#[derive(Clone, Debug, Default)]
pub(crate) struct Usage(BTreeMap<&'static str, Duration>);

impl Usage {
    /// What processes and their children have used so far; this process counts without its
    /// children, which are the others.
    pub(crate) fn now(processes: &[(&'static str, u32)]) -> Self {
        let used = |id: u32| {
            let file = format!("/proc/{id}/task/{id}/children");
            let children = std::fs::read_to_string(file).unwrap_or_default();
            let children = children.split_whitespace().filter_map(|child| child.parse().ok());
            let of_children = children.filter(|_| id != std::process::id()).map(of_one);
            of_one(id) + of_children.sum::<Duration>()
        };
        Usage(processes.iter().map(|(name, id)| (*name, used(*id))).collect())
    }

    /// Microseconds per item by name, since an earlier time.
    #[expect(clippy::cast_precision_loss, reason = "figures of three digits")]
    pub(crate) fn since(&self, before: &Usage, items: u64) -> BTreeMap<&'static str, f64> {
        let cost = |(name, used): (&&'static str, &Duration)| {
            let spent = used.saturating_sub(before.0.get(name).copied().unwrap_or_default());
            (*name, spent.as_secs_f64() * 1e6 / items.max(1) as f64)
        };
        self.0.iter().map(cost).collect()
    }
}

/// Memory of a process that is in use, in MiB.
pub(crate) fn resident_mb(id: u32) -> Option<f64> {
    status_mb(id, "VmRSS:")
}

/// The most that it has used so far, in MiB.
pub(crate) fn resident_peak_mb(id: u32) -> Option<f64> {
    status_mb(id, "VmHWM:")
}

/// Memory that the Redis on a port uses, in bytes.
///
/// # Errors
/// When it does not show it.
pub(crate) fn redis_bytes(port: u16) -> Result<f64, String> {
    let info = redis::cli(port, &["info", "memory"]);
    let line = info.lines().find_map(|line| line.strip_prefix("used_memory:"));
    line.and_then(|value| value.trim().parse().ok()).ok_or_else(|| "no used_memory".to_owned())
}

fn status_mb(id: u32, field: &str) -> Option<f64> {
    let status = std::fs::read_to_string(format!("/proc/{id}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(field))?;
    let kb: f64 = line.trim().trim_end_matches(" kB").parse().ok()?;
    Some(kb / 1_024.0)
}

/// What a process has used, with its ended children.
fn of_one(id: u32) -> Duration {
    let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
    let (_, behind_name) = stat.rsplit_once(") ").unwrap_or_default();
    // utime, stime, and the same of ended children.
    let times = behind_name.split(' ').skip(11).take(4);
    let ticks: u64 = times.filter_map(|field| field.parse::<u64>().ok()).sum();
    Duration::from_millis(ticks * 1_000 / rustix::param::clock_ticks_per_second())
}
