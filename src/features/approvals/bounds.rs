//! What a counter may be moved to: the serial that it counts for says it.

use numbering::{Serial, Series, SeriesDefinition};

use crate::engine::allocator::Catalog;
use crate::ledger::WantedChange;
use crate::web::problem::Problem;
use crate::web::visibility::not_found;

/// A serial of a series of a catalog, and the definition that it is of.
pub(crate) fn serial_in(
    catalog: &Catalog,
    series_id: i64,
    name: &str,
) -> Result<(SeriesDefinition, Serial), Problem> {
    let mut of_id = catalog.known().filter(|(version, _)| version.series_id == series_id);
    let (version, compiled) = of_id.next().ok_or_else(|| not_found(series_id))?;
    let serials = compiled.map(Series::serials).unwrap_or_default();
    let serial = serials.iter().find(|serial| serial.name == name);
    let none = || {
        let why = "is of a serial that the configuration has no more, or cannot be used with";
        Problem::field("counter_id", why)
    };
    Ok((version.definition.clone(), serial.cloned().ok_or_else(none)?))
}

/// Refuses a value below the first one of the serial, and one that its numbers never show. One
/// above `max` is the beginning of a block that a later version has: until then the counter gives
/// nothing.
pub(crate) fn must_be_within(
    wanted: &WantedChange,
    definition: &SeriesDefinition,
    serial: &Serial,
) -> Result<(), Problem> {
    let WantedChange::NextValue(next) = *wanted else { return Ok(()) };
    if next < serial.start {
        let why = format!("must be at least {}, the `start` of the serial", serial.start);
        return Err(Problem::field("next_value", why));
    }
    let mut widest = definition.clone();
    for declared in widest.serials.iter_mut().filter(|one| one.name == serial.name) {
        declared.max = None;
    }
    let compiled = Series::restore(widest).ok();
    let mut serials = compiled.iter().flat_map(Series::serials);
    let max = serials.find(|one| one.name == serial.name).map_or(serial.max, |one| one.max);
    if next > max {
        let why = format!("must be at most {max}, the last value that the serial can show");
        return Err(Problem::field("next_value", why));
    }
    Ok(())
}
