//! When the certificates of this process expire, for the metrics. Files are read from time to time;
//! the owner of the certificate of `http.listen` reports it here.

use std::path::PathBuf;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::time::Instant;

use crate::metrics::{CERTIFICATES, Metrics};
use crate::telemetry::gauges::ends_in;

/// Time between two polls of the files.
const POLL_PERIOD: Duration = Duration::from_secs(60);

/// Whose certificate `http.listen` shows.
const SERVER: &str = "server";

/// When the first certificate of the chain ends that is shown, in microseconds of UTC; 0: not
/// known.
pub type Shown = Arc<AtomicI64>;

/// A file of certificates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertificateFile {
    /// Whose they are: `server`, `database-authority`, `database-client` or `authority`.
    pub of: &'static str,
    /// What names the file.
    pub named_by: &'static str,
    /// Where it is.
    pub path: PathBuf,
}

/// The certificates.
#[derive(Default)]
pub struct Certificates {
    /// Those that are read here.
    files: Vec<CertificateFile>,
    shown: Mutex<Option<Shown>>,
    /// When the files were read last, and the result of each.
    seen: Mutex<Option<(Instant, Vec<Option<i64>>)>>,
}

impl Certificates {
    /// Those that the settings name.
    pub(crate) fn of(mut files: Vec<CertificateFile>) -> Self {
        files.retain(|file| file.of != SERVER);
        Certificates { files, ..Certificates::default() }
    }

    /// Uses the certificate that the listener shows from now on.
    pub fn follow(&self, shown: Shown) {
        *self.shown.lock().expect("no holder of this lock panics") = Some(shown);
    }

    /// Sets the gauges. Reads files now and then: too long for a worker of the runtime.
    pub(crate) fn observe(&self, now_us: i64, metrics: &Metrics) {
        let shown = self.shown.lock().expect("no holder of this lock panics");
        let shown = shown.as_ref().map(|shown| shown.load(Ordering::Relaxed));
        let ends = self.poll();
        for of in CERTIFICATES {
            let place = self.files.iter().position(|file| file.of == of);
            let end_us = match place {
                Some(place) => ends[place],
                None => shown.filter(|end_us| of == SERVER && *end_us != 0),
            };
            let seconds_to = |end_us: i64| end_us.saturating_sub(now_us) as f64 / 1e6;
            metrics.due.certificate_left.of(of).set(end_us.map_or(f64::NAN, seconds_to));
        }
    }

    /// When each file's certificates end, as of the last poll.
    fn poll(&self) -> Vec<Option<i64>> {
        let mut seen = self.seen.lock().expect("no holder of this lock panics");
        if let Some((at, ends)) = &*seen
            && at.elapsed() < POLL_PERIOD
        {
            return ends.clone();
        }
        let end = |file: &CertificateFile| match ends_in(&file.path) {
            Ok(ends) if file.is_of_authorities() => ends.into_iter().max(),
            Ok(ends) => ends.into_iter().min(),
            Err(error) => {
                let (named_by, path) = (file.named_by, file.path.display());
                tracing::debug!(named_by, %path, error, "when a certificate ends is not known");
                None
            }
        };
        let ends: Vec<Option<i64>> = self.files.iter().map(end).collect();
        *seen = Some((Instant::now(), ends.clone()));
        ends
    }
}
