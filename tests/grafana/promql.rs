//! Expressions of panels. Each selects the processes that `$instance` names, and if it has series,
//! those that `$series` names.

/// The processes chosen.
const CHOSEN: &str = r#"instance=~"$instance""#;

/// A metric of the processes chosen.
pub(super) fn of(metric: &str) -> String {
    format!("{metric}{{{CHOSEN}}}")
}

/// The same with a further condition on its labels.
pub(super) fn of_which(metric: &str, condition: &str) -> String {
    format!("{metric}{{{CHOSEN}, {condition}}}")
}

/// The same for the series chosen.
pub(super) fn of_series(metric: &str) -> String {
    of_which(metric, r#"series=~"$series""#)
}

/// An aggregation by some labels, or of everything.
pub(super) fn by(how: &str, labels: &str, inner: &str) -> String {
    if labels.is_empty() {
        format!("{how}({inner})")
    } else {
        format!("{how} by ({labels}) ({inner})")
    }
}

/// An aggregation of a metric of the processes chosen.
pub(super) fn gauge(how: &str, labels: &str, metric: &str) -> String {
    by(how, labels, &of(metric))
}

/// The rise per second of a counter's selection.
pub(super) fn rate_of(labels: &str, selection: &str) -> String {
    by("sum", labels, &format!("rate({selection}[$__rate_interval])"))
}

/// The same for a counter of the processes chosen.
pub(super) fn rate(labels: &str, metric: &str) -> String {
    rate_of(labels, &of(metric))
}

/// The same per minute, for the series chosen.
pub(super) fn per_minute(labels: &str, metric: &str) -> String {
    format!("60 * {}", rate_of(labels, &of_series(metric)))
}

/// The rise of a counter of the processes chosen.
pub(super) fn increase(labels: &str, metric: &str, window: &str) -> String {
    by("sum", labels, &format!("increase({}[{window}])", of(metric)))
}

/// A quantile of a histogram; the first label is `le`.
pub(super) fn quantile(quantile: &str, histogram: &str, labels: &str) -> String {
    let buckets = rate(labels, &format!("{histogram}_bucket"));
    format!("histogram_quantile({quantile}, {buckets})")
}

/// The quantiles shown, with their legends.
pub(super) fn quantiles(histogram: &str) -> Vec<(String, &'static str)> {
    let one = |of, legend| (quantile(of, histogram, "le"), legend);
    vec![one("0.50", "p50"), one("0.95", "p95"), one("0.99", "p99")]
}

/// The mean of a histogram.
pub(super) fn mean(labels: &str, histogram: &str) -> String {
    let part = |part| rate(labels, &format!("{histogram}_{part}"));
    format!("{} / {}", part("sum"), part("count"))
}

/// The rise of a counter under one condition on its labels, as a share of its rise under another; 1
/// while that does not rise.
pub(super) fn share(metric: &str, part: &str, whole: &str) -> String {
    let rate = |condition| rate_of("", &of_which(metric, condition));
    let (part, whole) = (rate(part), rate(whole));
    format!("{part} / ({whole} > 0) or ({whole} == 0) + 1")
}
