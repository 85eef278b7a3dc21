//! Series as files.

use numbering::SeriesDefinition;
use serde::Serialize;

/// The text of a series file with one series.
pub(crate) fn write_series(definition: SeriesDefinition) -> Result<String, toml::ser::Error> {
    toml::to_string_pretty(&SeriesFile { series: [definition] })
}

/// The form of a series file.
#[derive(Serialize)]
struct SeriesFile {
    series: [SeriesDefinition; 1],
}
