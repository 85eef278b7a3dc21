//! What this process uses of its machine: processor, memory, file descriptors. Linux shows all but
//! the first in files; what it does not show is not known.

use std::fs::{read_dir, read_to_string};

use rustix::process::{Resource, Rlimit, getrlimit};
use rustix::time::{ClockId, Timespec, clock_gettime};

use crate::metrics::ProcessUse;

/// What it uses now.
pub(super) fn own_use() -> ProcessUse {
    let Timespec { tv_sec, tv_nsec } = clock_gettime(ClockId::ProcessCPUTime);
    let Rlimit { current, .. } = getrlimit(Resource::Nofile);
    // The folder is open while it is read.
    let open = read_dir("/proc/self/fd").ok().map(|entries| entries.count().saturating_sub(1));
    ProcessUse {
        cpu_seconds: Some(tv_sec as f64 + tv_nsec as f64 / 1e9),
        resident_bytes: read_to_string("/proc/self/status").ok().and_then(|text| resident(&text)),
        open_fds: open.map(|open| open as f64),
        max_fds: Some(current.map_or(f64::INFINITY, |current| current as f64)),
    }
}

/// The resident set in bytes, from the text of `/proc/self/status`.
fn resident(status: &str) -> Option<f64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kilobytes: f64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kilobytes * 1024.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_uses_something_of_all_of_it() {
        assert_eq!(resident("Name:\tx\nVmRSS:\t   45836 kB\nRssAnon:\t1 kB\n"), Some(46_936_064.0));
        assert_eq!(resident("Name:\tx\n"), None);
        let used = own_use();
        let all = [used.cpu_seconds, used.resident_bytes, used.open_fds, used.max_fds];
        assert!(all.iter().all(|used| used.is_some_and(|used| used > 0.0)), "{used:?}");
    }
}
