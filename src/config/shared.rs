//! The series and projects to which sources and tables of reference data are given: lists for each
//! of them. A caller that is restricted to those may name them in series.

use std::collections::BTreeMap;

use numbering::is_table_name;
use serde::{Deserialize, Serialize};

use super::bounds::{Checked, wrong};
use super::external::WrittenSource;
use crate::auth::Shared;
use crate::auth::scope::Scope;

/// A settings file is read by people.
const TABLES_MAX: usize = 1_000;
/// Codes of one list.
const CODES_MAX: usize = 1_000;
/// Longest code of a series or project.
const CODE_CHARS_MAX: usize = 255;

section! {
    /// One of `reference.*`.
    WrittenTable {
        /// Codes of the series to which the table is given. Every principal that sees a series with
        /// a table may read the table.
        series: Vec<String> = Vec::new(), "at most 1,000 codes of 1 to 255 characters";
        /// Codes of the projects to which it is given, as those of a source.
        projects: Vec<String> = Vec::new(), "at most 1,000 codes of 1 to 255 characters";
    }
}

/// The lists of each.
pub(super) fn shared(
    sources: &BTreeMap<String, WrittenSource>,
    tables: &BTreeMap<String, WrittenTable>,
) -> Checked<Shared> {
    if tables.len() > TABLES_MAX {
        return wrong("reference", format!("has more than {TABLES_MAX} tables"));
    }
    let strange = tables.keys().find(|name| !is_table_name(name));
    if let Some(name) = strange {
        let why = "is no name of a table; write it as series and imports name it";
        return wrong(format!("reference.{name}"), why.into());
    }
    let of_source = |(name, source): (&String, &WrittenSource)| {
        let to = given(&format!("external.{name}"), &source.series, &source.projects)?;
        Ok((name.clone(), to))
    };
    let of_table = |(name, table): (&String, &WrittenTable)| {
        let to = given(&format!("reference.{name}"), &table.series, &table.projects)?;
        Ok((name.clone(), to))
    };
    let sources = sources.iter().map(of_source).collect::<Checked<_>>()?;
    Ok(Shared::of(sources, tables.iter().map(of_table).collect::<Checked<_>>()?))
}

fn given(section: &str, series: &[String], projects: &[String]) -> Checked<Scope> {
    for (field, list) in [("series", series), ("projects", projects)] {
        let is_code = |code: &String| (1..=CODE_CHARS_MAX).contains(&code.chars().count());
        if list.len() > CODES_MAX || !list.iter().all(is_code) {
            let why =
                format!("must be at most {CODES_MAX} codes of 1 to {CODE_CHARS_MAX} characters");
            return wrong(format!("{section}.{field}"), why);
        }
    }
    Ok(Scope::of(series.to_vec(), projects.to_vec()))
}
