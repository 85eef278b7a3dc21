//! How far a journal is behind the answers over time, and whether that grows.

use std::time::Duration;

use crate::client::Connection;
use crate::figures::mean;
use crate::report::{Goal, Row};
use crate::stage::metric;

/// Furthest that it may be behind, in seconds.
const LAG_MAX_S: f64 = 1.0;

/// Most that the delay may grow per second, in seconds: a journal that is slower than the numbers
/// by one in two hundred grows, and less cannot be distinguished from chance.
const RISE_MAX: f64 = 0.005;

/// The samples so far, in seconds, at even intervals.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lags(Vec<f64>);

impl Lags {
    /// Asks a service; how far its journal is behind now, in seconds.
    ///
    /// # Errors
    /// When it does not show it.
    pub(crate) async fn look(&mut self, connection: &mut Connection) -> Result<f64, String> {
        let lag_s = metric(connection, "numerator_journal_lag_seconds").await?;
        self.0.push(lag_s);
        Ok(lag_s)
    }

    /// What they show for a load of that length, each compared with its goal.
    pub(crate) fn rows(&self, load: &str, length: Duration) -> [Row; 2] {
        let most = Row::new(format!("journal behind {load}, at most"), self.most(), "s");
        let rise = Row::new(format!("journal behind {load}, growth"), self.rise(length), "s/s");
        let thirds = "mean of the last third of the time against that of the first";
        [most.goal(Goal::AtMost(LAG_MAX_S)), rise.goal(Goal::AtMost(RISE_MAX)).note(thirds)]
    }

    fn most(&self) -> f64 {
        self.0.iter().copied().fold(0.0, f64::max)
    }

    /// By how much it rises per second.
    fn rise(&self, length: Duration) -> f64 {
        let third = self.0.len() / 3;
        if third == 0 {
            return 0.0;
        }
        let mean = |lags: &[f64]| mean(lags.iter().copied());
        let rise = mean(&self.0[self.0.len() - third..]) - mean(&self.0[..third]);
        // Two thirds of the time lie between the middles of the first third and of the last.
        rise / (length.as_secs_f64() * 2.0 / 3.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LENGTH: Duration = Duration::from_secs(9);

    #[test]
    fn a_lag_that_rises_is_told_from_one_that_stands() {
        let rising = Lags((0..90).map(|i| f64::from(i) * 0.1).collect());
        assert!((rising.rise(LENGTH) - 1.0).abs() < 1e-9, "{}", rising.rise(LENGTH));
        let standing = Lags(vec![0.4; 90]);
        assert!(standing.rise(LENGTH).abs() < 1e-9);
        assert!((standing.most() - 0.4).abs() < 1e-9);
        assert!(Lags::default().rise(LENGTH).abs() < 1e-9);
    }

    #[test]
    fn a_journal_that_falls_behind_slowly_is_judged_before_it_is_late() {
        let judged = |lags: Vec<f64>| Lags(lags).rows("", LENGTH).map(|row| row.is_met());
        assert_eq!(
            judged((0..90).map(|i| f64::from(i) * 0.001).collect()),
            [Some(true), Some(false)]
        );
        assert_eq!(judged(vec![0.4; 90]), [Some(true), Some(true)]);
        assert_eq!(judged(vec![1.4; 90]), [Some(false), Some(true)]);
    }
}
