//! The series that a ledger without any gets at the first start: those of `series.load`. Changes no
//! ledger that has series.

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use numbering::{SeriesDefinition, read_series};

use crate::clock::SharedClock;
use crate::config::SeriesSource;
use crate::ledger::{Expected, SeriesChange, SharedLedger};

/// Most bytes read of a file; one that is larger is refused by the reader.
const FILE_BYTES_MAX: u64 = 1_048_576;

/// Most files of one folder.
const FILES_MAX: usize = 1_000;

/// What helps where a file cannot be loaded.
const REMEDY: &str =
    "series.load names what cannot be used; correct it, or take it out of the setting";

/// Saves the series of the settings in a ledger that has none, all or none.
///
/// # Errors
/// A file that cannot be read or used, with its name; series that conflict with each other.
pub(crate) async fn load(
    sources: &[SeriesSource],
    ledger: &SharedLedger,
    clock: &SharedClock,
) -> anyhow::Result<()> {
    let definitions = definitions(sources, ledger).await?;
    if definitions.is_empty() {
        return Ok(());
    }
    let change = |definition| SeriesChange {
        definition,
        expected: Expected::Anything,
        saved_by: "numerator".into(),
        reason: "series.load, for a ledger without series".into(),
        saved_at_us: clock.now_us(),
    };
    let changes: Vec<SeriesChange> = definitions.into_iter().map(change).collect();
    let saved = ledger.series().apply(&changes).await;
    let saved = saved.context("the series of series.load cannot be saved")?;
    // Of several processes that find the ledger empty, one saves.
    let loaded = saved.iter().filter(|version| version.is_new).count();
    if loaded > 0 {
        let named: Vec<String> = sources.iter().map(ToString::to_string).collect();
        let named = named.join(", ");
        tracing::warn!(series = loaded, "the ledger has no series: loaded {named}");
    }
    Ok(())
}

/// The series that a ledger without any gets; none where it has some.
///
/// # Errors
/// A file that cannot be read or used, with its name.
pub(crate) async fn definitions(
    sources: &[SeriesSource],
    ledger: &SharedLedger,
) -> anyhow::Result<Vec<SeriesDefinition>> {
    let mut definitions = Vec::new();
    if ledger.series().stamp().await? != 0 {
        return Ok(definitions);
    }
    for source in sources {
        match source {
            // On a server, others may be setting the ledger up; and an operator who brings series
            // wants no others.
            SeriesSource::BuiltIn
                if ledger.engine() == "sqlite" && !ledger.series().has_own().await? =>
            {
                let builtin = numbering::builtin_series().into_iter();
                definitions.extend(builtin.map(SeriesDefinition::says_its_dates));
            }
            SeriesSource::BuiltIn => {}
            SeriesSource::Path(path) => {
                for file in files(path)? {
                    definitions.extend(read_series_file(&file).context(REMEDY)?);
                }
            }
        }
    }
    Ok(definitions)
}

/// The file itself, or those of a folder whose names end in `.toml`, in the order of their names.
fn files(path: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let told = || format!("{REMEDY}: {} cannot be read", path.display());
    if !path.metadata().with_context(told)?.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let mut files = Vec::new();
    for entry in path.read_dir().with_context(told)?.take(FILES_MAX) {
        let file = entry.with_context(told)?.path();
        if file.extension().is_some_and(|ending| ending == "toml") {
            files.push(file);
        }
    }
    files.sort_unstable();
    Ok(files)
}

/// Reads and checks the series of a file, each as it is meant where it is written now; never more
/// of it than a series file may hold.
pub(crate) fn read_series_file(file: &Path) -> anyhow::Result<Vec<SeriesDefinition>> {
    let (name, mut text) = (file.display(), String::new());
    File::open(file)
        .and_then(|opened| opened.take(FILE_BYTES_MAX + 1).read_to_string(&mut text))
        .with_context(|| format!("{name} cannot be read"))?;
    let read = read_series(&text).with_context(|| format!("{name}"))?;
    Ok(read.into_iter().map(SeriesDefinition::says_its_dates).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_with_a_mistake_is_told_by_its_name_and_place() {
        let folder = tempfile::tempdir().expect("folder");
        let file = folder.path().join("orders.toml");
        let missing = format!("{:#}", read_series_file(&file).expect_err("missing"));
        assert!(missing.contains("orders.toml cannot be read"), "{missing}");
        std::fs::write(&file, "[[series]]\ncode = 5\n").expect("written");
        let wrong = format!("{:#}", read_series_file(&file).expect_err("wrong"));
        assert!(wrong.contains("orders.toml: line 2, column 8"), "{wrong}");
        let limit = usize::try_from(FILE_BYTES_MAX).expect("fits");
        std::fs::write(&file, " ".repeat(limit + 1)).expect("written");
        let large = format!("{:#}", read_series_file(&file).expect_err("large"));
        assert!(large.contains("orders.toml") && large.contains("at most"), "{large}");
    }
}
