//! Series in use are proved: those that ship, the examples, those of the pages, and those of the
//! vectors, against each other.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde::Deserialize;

use super::super::super::testing::reference;
use super::super::super::{
    ReferenceData, ReferenceRow, SeriesDefinition, builtin_series, read_series,
};
use super::super::{GiveUp, prove_saved};

/// A file of vectors, as far as it is read here.
#[derive(Deserialize)]
struct Vectors {
    #[serde(default)]
    series: Vec<SeriesDefinition>,
    #[serde(default)]
    imports: Vec<Import>,
}

#[derive(Deserialize)]
struct Import {
    table: String,
    of: Option<String>,
    rows: Vec<[String; 3]>,
}

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(name)
}

fn text(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The files of a folder with an ending.
fn files(name: &str, ending: &str) -> Vec<PathBuf> {
    let entries = folder(name).read_dir().expect("a folder");
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry").path()).collect();
    files.retain(|path| path.extension().is_some_and(|found| found == ending));
    files.sort();
    files
}

/// That all are proved against each other, and none needs to be accepted.
#[track_caller]
fn assert_proved(what: &str, all: &[SeriesDefinition], tables: &Arc<ReferenceData>) {
    match prove_saved(all, tables, |_| true, &[], &[], &GiveUp::default()) {
        Ok(accepted) => assert_eq!(accepted, [], "{what}"),
        Err(error) => panic!("{what}: {error}"),
    }
}

/// Some series and those that ship, except those that they replace or would tie with.
fn beside_builtin(own: Vec<SeriesDefinition>) -> Vec<SeriesDefinition> {
    let is_replaced =
        |shipped: &SeriesDefinition| own.iter().any(|other| other.code == shipped.code);
    let shipped = builtin_series().into_iter().filter(|shipped| !is_replaced(shipped));
    let mut all: Vec<SeriesDefinition> = shipped.collect();
    all.extend(own);
    all
}

#[test]
fn every_series_that_ships_is_proved_beside_the_others() {
    let all = builtin_series();
    assert_eq!(all.len(), 22);
    assert_proved("all", &all, &Arc::default());
}

#[test]
fn every_example_is_proved_beside_those_that_ship() {
    for path in files("examples/series", "toml") {
        let own = read_series(&text(&path)).expect("reads");
        assert_proved(&path.display().to_string(), &beside_builtin(own), &Arc::default());
    }
}

#[test]
fn the_series_on_the_seed_data_are_proved_beside_those_that_ship() {
    let own = read_series(&text(&folder("examples/reference/correspondence.toml"))).expect("reads");
    let mut rows: Vec<ReferenceRow> = Vec::new();
    for path in files("examples/reference", "csv") {
        let table = path.file_stem().expect("a name").to_string_lossy().into_owned();
        let text = text(&path);
        let lines = text.lines().skip(1).filter(|_| table != "members");
        rows.extend(lines.map(|line| {
            let mut fields = line.split(',');
            let (id, code) = (fields.next().expect("an id"), fields.next().expect("a code"));
            reference(&table, id, code, true)
        }));
    }
    assert_proved("seed", &beside_builtin(own), &Arc::new(ReferenceData::new(rows, [])));
}

#[test]
fn every_series_of_the_pages_is_proved_beside_its_own() {
    let pages = ["docs/numbering.md", "docs/numbering-tutorial.md"].map(|page| text(&folder(page)));
    let blocks: Vec<&str> = pages.iter().flat_map(|page| page.split("```toml\n").skip(1)).collect();
    assert_eq!(blocks.len(), 18);
    for block in blocks {
        let (toml, _) = block.split_once("```").expect("an end");
        assert_proved(toml, &read_series(toml).expect("reads"), &Arc::default());
    }
}

#[test]
fn every_series_of_the_vectors_is_proved() {
    let mut count = 0;
    for path in files("tests/vectors", "toml") {
        let Vectors { series, imports } = toml::from_str(&text(&path)).expect("reads");
        let tables = imports.iter().filter(|import| import.of.is_none());
        let rows = tables.flat_map(|import| {
            import.rows.iter().map(|[id, code, _]| reference(&import.table, id, code, true))
        });
        let tables = Arc::new(ReferenceData::new(rows, []));
        count += series.len();
        assert_proved(&path.display().to_string(), &series, &tables);
    }
    assert_eq!(count, 64);
}

/// Goal: a save among a thousand others takes no longer than a second. Method: letters that begin
/// alike, so that each pair is searched; a busy machine gets twenty, far less than all pairs take.
#[test]
fn a_series_beside_a_thousand_others_is_soon_proved() {
    let mut shipped = builtin_series().into_iter();
    let letter = shipped.find(|one| one.code == "LETTER").expect("ships");
    let numbered = (0..=1_000).map(|index| {
        let mut one = SeriesDefinition { code: format!("S{index}"), ..letter.clone() };
        one.serves.types = vec![one.code.clone()];
        one.unique_within = vec!["project".into()];
        one.template = one.template.replace("{SEQ", &format!("X{index}-{{SEQ"));
        one
    });
    let (all, begun) = (numbered.collect::<Vec<_>>(), Instant::now());
    let saved =
        prove_saved(&all, &Arc::default(), |one| one.code == "S7", &[], &[], &GiveUp::default());
    assert_eq!(saved, Ok(Vec::new()));
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
}
