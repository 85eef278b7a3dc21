//! `external.*`: the sources that give values to numbers, each under the name by which series call
//! it. Their addresses occur nowhere else.

use std::collections::BTreeMap;
use std::path::PathBuf;

use numbering::is_source_name;
use serde::{Deserialize, Serialize};

use super::DurationText;
use super::bounds::{Checked, millis, secs, wrong};
use crate::engine::sources::{SourceSettings, is_trustworthy};

/// A settings file is read by people.
const SOURCES_MAX: usize = 100;

section! {
    /// One of `external.*`.
    WrittenSource {
        /// The address that is called. [What is never called](security.md#whom-the-service-asks),
        /// whatever a name stands for.
        address: Option<String> = None,
            "`https://…`, or `http://` of a loopback address; no user and password",
            absent "none: it must be given",
            like "an address in quotes" "\"https://erp.example.com/next\"";
        /// Longest time of one attempt. A request waits for all of them no longer than
        /// `http.time_limit`.
        time_limit: DurationText = secs(2), millis(10)..=secs(30);
        /// Attempts for one value, 100 ms apart and then twice as much each time: where it does not
        /// answer, or with 5xx, 408, 409, 425 or 429.
        attempts_max: u32 = 3, 1..=10;
        /// Calls of this process at once, half of them (rounded up) of one caller at most:
        /// [turns at a source](#turns-at-a-source).
        concurrency_max: usize = 32, 1..=1_000;
        /// A file that holds one token of at most 4,096 characters, sent as
        /// `Authorization: Bearer`. Read at start; restart the process for another one.
        token_file: Option<PathBuf> = None, "path", absent "none: without a token",
            like "a path in quotes" "\"/etc/numerator/erp.token\"";
        /// Codes of the series to which the source is given:
        /// [to whom](#to-whom-a-source-is-given).
        series: Vec<String> = Vec::new(), "at most 1,000 codes of 1 to 255 characters";
        /// Codes of the projects to which it is given.
        projects: Vec<String> = Vec::new(), "at most 1,000 codes of 1 to 255 characters";
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
        time_limit: written.time_limit.0,
        attempts_max: written.attempts_max,
        concurrency_max: written.concurrency_max,
        token_file: written.token_file.clone(),
    })
}
