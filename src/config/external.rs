//! `external.*`: the sources that give values to numbers, each under the name by which series call
//! it. The only place where their addresses stand.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use numbering::is_source_name;
use serde::{Deserialize, Serialize};

use super::DurationText;
use super::bounds::{Checked, millis, secs, wait, within, wrong};
use crate::engine::sources::{SourceSettings, is_trustworthy};

/// A settings file is read by people.
const SOURCES_MAX: usize = 100;

/// One of `external.*`.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct WrittenSource {
    /// Where it is asked.
    pub(super) address: Option<String>,
    /// Longest time of one attempt.
    pub(super) time_limit: DurationText,
    /// Attempts for one value.
    pub(super) attempts_max: u32,
    /// Calls at once; more are refused.
    pub(super) concurrency_max: usize,
    /// The file of the token that it is sent.
    pub(super) token_file: Option<PathBuf>,
    /// Codes of the series to which it is given; none: to whichever.
    pub(super) series: Vec<String>,
    /// Codes of the projects to which it is given; none: to whichever.
    pub(super) projects: Vec<String>,
}

impl Default for WrittenSource {
    fn default() -> Self {
        WrittenSource {
            address: None,
            time_limit: DurationText(Duration::from_secs(2)),
            attempts_max: 3,
            concurrency_max: 32,
            token_file: None,
            series: Vec::new(),
            projects: Vec::new(),
        }
    }
}

/// The sources.
pub(super) fn external(written: &BTreeMap<String, WrittenSource>) -> Checked<Vec<SourceSettings>> {
    if written.len() > SOURCES_MAX {
        return wrong("external", format!("has more than {SOURCES_MAX} sources"));
    }
    written.iter().map(source).collect()
}

fn source((name, written): (&String, &WrittenSource)) -> Checked<SourceSettings> {
    let setting = |field| format!("external.{name}.{field}");
    if !is_source_name(name) {
        let why = "is no name of a source; write 1 to 32 of a-z, 0-9 and `-`, a letter first";
        return wrong(format!("external.{name}"), why.into());
    }
    let time_limit = wait(setting("time_limit"), written.time_limit, millis(10)..=secs(30))?;
    let attempts_max = within(setting("attempts_max"), written.attempts_max, 1..=10)?;
    let concurrency_max = within(setting("concurrency_max"), written.concurrency_max, 1..=1_000)?;
    let address = written.address.as_deref().map(str::parse);
    let Some(Ok(address)) = address else {
        return wrong(setting("address"), "is missing; write https://HOST/PATH".into());
    };
    if !is_trustworthy(&address) {
        return wrong(
            setting("address"),
            "is no address that numbers can be trusted from; write https://HOST/PATH without user \
             and password, or http:// of a loopback address; addresses of the link, of a cloud's \
             metadata and of nobody are never asked"
                .into(),
        );
    }
    Ok(SourceSettings {
        name: name.clone(),
        address,
        time_limit,
        attempts_max,
        concurrency_max,
        token_file: written.token_file.clone(),
    })
}
