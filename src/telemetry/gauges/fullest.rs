//! Which counters in use are the fullest, and how long they will last.

use std::collections::HashMap;

use numbering::Serial;

use super::in_use::CounterInUse;
use crate::engine::allocator::Catalog;
use crate::metrics::Fullness;

/// The fullest `max` of these counters, the fullest first. Counters whose serial the series no
/// longer has are left out: no number is taken from them. Keys contain the projects and
/// organizations of documents: unless they are wanted, a counter is shown by its id in the ledger.
pub(super) fn fullest(
    catalog: &Catalog,
    counters: Vec<CounterInUse>,
    max: usize,
    with_keys: bool,
) -> Vec<Fullness> {
    let series: HashMap<i64, _> =
        catalog.active().iter().map(|served| (served.version.series_id, served)).collect();
    let mut all: Vec<Fullness> = counters
        .into_iter()
        .filter_map(|mut counter| {
            if !with_keys {
                counter.key = format!("#{}", counter.counter_id);
            }
            let served = series.get(&counter.series_id)?;
            let serials = served.series.serials();
            let serial = serials.iter().find(|serial| serial.name == counter.serial)?;
            Some(fullness(&served.version.definition.code, serial, counter))
        })
        .collect();
    all.sort_by(|one, other| {
        other.used_ratio.total_cmp(&one.used_ratio).then_with(|| one.key.cmp(&other.key))
    });
    all.truncate(max);
    all
}

fn fullness(code: &str, serial: &Serial, counter: CounterInUse) -> Fullness {
    let Serial { start, step, max, .. } = *serial;
    // How many values there are, and how many of them are left.
    let all = max.saturating_sub(start) / step + 1;
    let left = max.saturating_sub(counter.value) / step;
    let rate = counter.rate / step as f64;
    Fullness {
        series: code.to_owned(),
        serial: counter.serial,
        key: counter.key,
        used_ratio: 1.0 - (left.min(all) as f64 / all as f64),
        // A used-up counter is used up, whether it moves or not.
        exhaustion_seconds: if left == 0 { 0.0 } else { left as f64 / rate },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn serial(start: u64, step: u64, max: u64) -> Serial {
        Serial { name: "SEQ".into(), start, step, max }
    }

    fn counter(value: u64, rate: f64) -> CounterInUse {
        let (serial, key) = ("SEQ".into(), "k".into());
        CounterInUse { counter_id: 7, series_id: 1, serial, key, value, rate }
    }

    #[test]
    fn fullness_follows_from_the_values_of_the_serial() {
        let at = |value, rate| fullness("S", &serial(1, 1, 999), counter(value, rate));
        assert!((at(900, 3.0).used_ratio - 900.0 / 999.0).abs() < 1e-9);
        assert!((at(900, 3.0).exhaustion_seconds - 33.0).abs() < 1e-9);
        assert!(at(900, 0.0).exhaustion_seconds.is_infinite(), "it does not move");
        assert_eq!((at(999, 0.0).used_ratio, at(999, 0.0).exhaustion_seconds), (1.0, 0.0));
        let stepped = fullness("S", &serial(5, 10, 95), counter(45, 10.0));
        assert!((stepped.used_ratio - 0.5).abs() < 1e-9, "{stepped:?}");
        assert!((stepped.exhaustion_seconds - 5.0).abs() < 1e-9, "5 numbers at 1 a second");
    }
}
