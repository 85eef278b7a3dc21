//! What each series issues, and how full its counters are.

use super::model::{Dashboard, Panel, Row};
use super::promql::{by, of_series, per_minute, rate};

pub(super) fn dashboard() -> Dashboard {
    Dashboard {
        uid: "numerator-series",
        title: "numerator: series",
        description: "What each series issues, and how long its counters will last.",
        rows: vec![numbers(), counters(), serials(), sources()],
    }
}

fn numbers() -> Row {
    let panels = vec![
        Panel::lines(
            "Numbers per minute by series",
            "short",
            vec![(per_minute("series", "numerator_issued_total"), "{{series}}")],
            "Numbers issued per minute.",
        ),
        Panel::lines(
            "Numbers per minute by path",
            "short",
            vec![(per_minute("series, path", "numerator_issued_total"), "{{series}} by {{path}}")],
            "Who took them: Redis, or the database path.",
        ),
        Panel::bars(
            "Numbers of the last day",
            "short",
            (
                by(
                    "sum",
                    "series",
                    &format!("increase({}[1d])", of_series("numerator_issued_total")),
                ),
                "{{series}}",
            ),
            "Numbers issued within a day, as far as Prometheus saw them.",
        ),
        Panel::lines(
            "Replays per minute",
            "short",
            vec![(per_minute("series", "numerator_replayed_total"), "{{series}}")],
            "Requests answered with the number that they had before: retries of callers.",
        ),
    ];
    Row { title: "Numbers", panels }
}

fn counters() -> Row {
    let panels = vec![
        Panel::bars(
            "Fullest counters",
            "percentunit",
            (sorted("sort_desc", "max", "numerator_counter_used_ratio"), "{{key}} ({{series}})"),
            "Share of its values that a counter has taken: the fullest from which a number was \
             taken within a day.",
        )
        .above(&[(0.9, "orange"), (0.95, "red")])
        .see("a-counter-is-nearly-full"),
        Panel::bars(
            "Time until counters are used up",
            "s",
            (sorted("sort", "min", "numerator_counter_exhaustion_seconds"), "{{key}} ({{series}})"),
            "At its rate of the last minutes; one that was watched for less than a minute has \
             none. A counter that begins anew before then does not matter.",
        )
        .below(&[(86_400.0, "orange"), (604_800.0, "green")])
        .see("a-counter-is-nearly-full"),
    ];
    Row { title: "Counters", panels }
}

fn serials() -> Row {
    let panels = vec![
        Panel::lines(
            "Checks of interface serials",
            "reqps",
            vec![(rate("outcome", "numerator_serial_checks_total"), "{{outcome}}")],
            "Calls that asked whether an interface serial is seen for the first time.",
        ),
        Panel::lines(
            "Steps of system serials",
            "reqps",
            vec![(rate("outcome", "numerator_serial_steps_total"), "{{outcome}}")],
            "Calls about steps, by what became of them.",
        ),
    ];
    Row { title: "Exchange serials", panels }
}

fn sources() -> Row {
    let panels = vec![
        Panel::lines(
            "Values of sources",
            "reqps",
            vec![(rate("outcome", "numerator_external_calls_total"), "{{outcome}}")],
            "Values that series asked of the sources in the settings, by what became of them.",
        )
        .see("a-source-of-numbers-does-not-answer"),
    ];
    Row { title: "Sources", panels }
}

/// A metric of counters, one value for each, in order.
fn sorted(order: &str, how: &str, metric: &str) -> String {
    format!("{order}({})", by(how, "series, serial, key", &of_series(metric)))
}
