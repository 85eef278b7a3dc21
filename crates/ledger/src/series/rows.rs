//! What is written once per ledger, and series with their versions.

use std::fmt;

use numbering::{Ambiguity, ChangeError, Hasty, RuleError, SeriesDefinition};
use thiserror::Error;
use uuid::Uuid;

/// A partition in one epoch: where a fenced write belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct At {
    /// The partition.
    pub partition: u32,
    /// The epoch.
    pub epoch: u64,
}

/// What is written once per ledger (F8).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deployment {
    /// Random id of this ledger and everything that belongs to it.
    pub deployment_id: Uuid,
    /// The number of partitions over which series are spread by their code. One more serves all
    /// gapless series, and only them.
    pub partitions: u32,
    /// Prefix of all Redis keys.
    pub prefix: String,
}

impl Deployment {
    /// The partition of gapless series, the last one: the database always owns it.
    #[must_use]
    pub fn gapless_partition(&self) -> u32 {
        self.partitions
    }

    /// How many partitions there are, that of gapless series included; they count from 0.
    #[must_use]
    pub fn partitions_total(&self) -> u32 {
        self.partitions + 1
    }
}

/// Most series of a ledger, active or not: every process compiles all of them, and each one that is
/// saved is proved against all others.
pub const SERIES_MAX: u32 = 2_000;

/// Most series that serve one project, active or not and removed ones included, as far as they are
/// saved by callers restricted to projects.
pub const PROJECT_SERIES_MAX: usize = 100;

/// Most bytes of their definitions, likewise.
pub const PROJECT_BYTES_MAX: usize = 1_024 * 1_024;

/// A definition to save: of a new series, or as a new version of one.
#[derive(Clone, Debug)]
pub struct SeriesChange {
    /// The definition, already compiled once without an error.
    pub definition: SeriesDefinition,
    /// What must be there already.
    pub expected: Expected,
    /// Who saves it.
    pub saved_by: String,
    /// Why.
    pub reason: String,
    /// When.
    pub saved_at_us: i64,
}

impl SeriesChange {
    /// Refuses a day, where it is a new one, that closes the series for years to come.
    pub(crate) fn must_close_plausibly(
        &self,
        before: Option<&SeriesVersion>,
    ) -> Result<(), SeriesRefusal> {
        let closed = &self.definition.closed_before;
        let is_known = before.is_some_and(|before| before.definition.closed_before == *closed);
        let flaw = numbering::flaw_of_closing(&self.definition, self.saved_at_us);
        flaw.filter(|_| !is_known).map_or(Ok(()), |why| Err(SeriesRefusal::Closing(why)))
    }
}

/// A series to activate or to deactivate.
#[derive(Clone, Debug)]
pub struct ActivityChange {
    /// The series.
    pub series_id: i64,
    /// Whether it shall serve requests.
    pub active: bool,
    /// The version that it must be at; `None`: any.
    pub expected: Option<u32>,
    /// Who changes it.
    pub saved_by: String,
    /// Why.
    pub reason: String,
    /// When.
    pub saved_at_us: i64,
}

/// A series to remove.
#[derive(Clone, Debug)]
pub struct SeriesRemoval {
    /// The series.
    pub series_id: i64,
    /// The version that it must be at; `None`: any.
    pub expected: Option<u32>,
    /// Who removes it.
    pub removed_by: String,
    /// Why.
    pub reason: String,
    /// When.
    pub removed_at_us: i64,
}

/// What a change builds on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Expected {
    /// Any state: a series file states the result.
    #[default]
    Anything,
    /// No series has the code.
    Nothing,
    /// This series in this version.
    Version {
        /// The series.
        series_id: i64,
        /// Its version.
        version: u32,
    },
}

/// Why a change of series was not saved; nothing of it was. The same change is refused again.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SeriesRefusal {
    /// There is no such series.
    #[error("no series has the id {series_id}")]
    Unknown {
        /// The id.
        series_id: i64,
    },
    /// The ledger has as many series as it may have.
    #[error(
        "code: the ledger has {SERIES_MAX} series, and may have no more; let one series number \
         several types or projects by a variable or `{{PROJECT}}`, or give a series that is not \
         used another template instead"
    )]
    TooMany,
    /// A project has as many series as a caller restricted to it may save.
    #[error(
        "project {project} has as much as one project takes up of what all share: \
         {PROJECT_SERIES_MAX} series, or {PROJECT_BYTES_MAX} bytes of definitions; let one series \
         number several types, or have somebody who is not narrowed save it"
    )]
    ProjectFull {
        /// The project.
        project: String,
    },
    /// A series of that code is there already, active or not.
    #[error("code: series {code} is there already; change that one, or use another code")]
    CodeTaken {
        /// The code.
        code: String,
    },
    /// A series keeps its code.
    #[error("code: the series has the code {code} for good; save {wanted} as a new series")]
    CodeChanged {
        /// The code that it has.
        code: String,
        /// The code of the definition.
        wanted: String,
    },
    /// Another caller changed the series first.
    #[error(
        "series {code} stands at version {found}, not {expected}: somebody changed it; read it \
         again and change that"
    )]
    VersionConflict {
        /// The code.
        code: String,
        /// The version that the change builds on.
        expected: u32,
        /// The version in force.
        found: u32,
    },
    /// It would be closed for all documents of years to come.
    #[error("{0}")]
    Closing(String),
    /// Two active series would serve a request equally well.
    #[error(transparent)]
    Rule(#[from] RuleError),
    /// Two numbers of the series could be equal, or one of it and one that another series gives or
    /// may have given, and the series does not accept it.
    #[error(transparent)]
    Ambiguous(Box<Ambiguity>),
    /// The series accepts it, and not every series of the pair is `gapless` (F43).
    #[error(transparent)]
    Hasty(Box<Hasty>),
    /// The series could render a number that is kept as written.
    #[error(
        "series {code} could render {number:?}, which is kept as written in series {kept_by}; \
         begin the template with a prefix of its own"
    )]
    ReadsKept {
        /// Code of the series.
        code: String,
        /// The number.
        number: String,
        /// Code of the series that it belongs to.
        kept_by: String,
    },
    /// The ledger may have forgotten a number that is kept as written, and that the series could
    /// render (F9).
    #[error(
        "series {code} is not saved while a partition is held: the ledger went back, and may have \
         forgotten a number that is kept as written; release it first (`reconcile \
         --ledger-restored`)"
    )]
    MayReadForgotten {
        /// The code.
        code: String,
    },
    /// The series has counters, and the change would move them to another partition (F8).
    #[error(
        "series {code} has issued numbers: its policy cannot change to or from `gapless` any more; \
         apply a new series, of another code, instead"
    )]
    Policy {
        /// The code.
        code: String,
    },
    /// The series has counters, so it is not removed.
    #[error(
        "series {code} has counters: numbers of it may be out, so it is never removed; keep it \
         from serving requests instead, by `series deactivate {code}` or `POST …/deactivate`"
    )]
    Used {
        /// The code.
        code: String,
    },
    /// The series keeps numbers as written, so it is not removed, and stays in its partition (F8).
    #[error(
        "series {code} keeps numbers as written: it is not removed, and its policy does not change \
         to or from `gapless`; deactivate it by `series deactivate {code}` or \
         `POST …/deactivate`, and apply a new series, of another code, instead"
    )]
    KeepsNumbers {
        /// The code.
        code: String,
    },
    /// Its partition is held, and it is unknown whether the series has counters (F9).
    #[error(
        "series {code} is not removed while its partition is held: the ledger went back, and may \
         have forgotten counters; release it first (`reconcile --ledger-restored`), or deactivate \
         the series"
    )]
    Held {
        /// The code.
        code: String,
    },
    /// Counters of the series have not reached the `start` that the change gives them: they would
    /// give nothing any more.
    #[error("{0}")]
    BelowStart(Box<BelowStart>),
    /// The series has counters, and the change could render a number of theirs again, or give a
    /// document a second one.
    #[error("series {code} has issued numbers as of version {version}: {why}")]
    Repeats {
        /// The code.
        code: String,
        /// The earlier version.
        version: u32,
        /// What is wrong with the change, and the remedy.
        why: ChangeError,
    },
}

/// Counters that have not come to a new `start`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BelowStart {
    /// Code of the series.
    pub code: String,
    /// The field, such as `serials[0].start`.
    pub field: String,
    /// The serial, its new start, and the distance of its values.
    pub serial: (String, u64, u64),
    /// Start and distance in the version in force, by which counters are moved; none where the
    /// counters are those of an earlier one.
    pub before: Option<(u64, u64)>,
    /// Some of the counters, with their keys and the values that they go on with.
    pub counters: Vec<(i64, String, i64)>,
    /// How many there are, among the newest that were looked at.
    pub total: usize,
}

impl fmt::Display for BelowStart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let BelowStart { code, field, serial: (serial, start, step), counters, total, .. } = self;
        write!(f, "{field}: series {code} has counters of serial {serial} below {start}, which ")?;
        f.write_str("would give nothing any more: ")?;
        let mut move_to = (0, 0);
        for (index, (counter_id, key, next)) in counters.iter().enumerate() {
            let between = if index == 0 { "" } else { ", " };
            let key = if key.is_empty() { String::new() } else { format!(" ({key})") };
            write!(f, "{between}counter {counter_id}{key} goes on with {next}")?;
            if index == 0 {
                // From there the new version goes on by its own step.
                let by = self.before.map_or(*step, |(_, by)| by);
                let least = i128::from(*start) + i128::from(by) - i128::from(*step);
                let distance = u64::try_from(least - i128::from(*next)).unwrap_or(0);
                let steps = i128::from(distance.div_ceil(by)) * i128::from(by);
                move_to = (*counter_id, i128::from(*next) + steps);
            }
        }
        if *total > counters.len() {
            write!(f, ", and at least {} more", total - counters.len())?;
        }
        let (counter_id, next) = move_to;
        f.write_str(match self.before {
            Some(_) => "; move each first",
            None => "; save the serial with `start` 1 first, and move each then",
        })?;
        write!(
            f,
            ", by `numerator move-counter {counter_id} --next {next} --reason …`
             or, where callers have tokens, by `reset-counter`, for which two people answer"
        )?;
        match self.before {
            Some((before, _)) => write!(f, "; or keep the start as it was, {before}"),
            None => Ok(()),
        }
    }
}

/// One version of a series.
#[derive(Clone, Debug, PartialEq)]
pub struct SeriesVersion {
    /// The series; `config_id` on the API.
    pub series_id: i64,
    /// Version, from 1.
    pub version: u32,
    /// Whether the series serves requests in this version.
    pub active: bool,
    /// Its partition: the one of gapless series, or a hash of the code modulo the number of the
    /// others.
    pub partition: u32,
    /// The definition.
    pub definition: SeriesDefinition,
    /// Who saved it.
    pub saved_by: String,
    /// When.
    pub saved_at_us: i64,
    /// Why.
    pub reason: String,
    /// Whether the call wrote this version just now.
    pub is_new: bool,
    /// Its place among the versions of all series: every later version has a higher one.
    pub stamp: i64,
}

/// A series that is deactivated or removed. The requests that it took while active go to no other
/// series saved before it rested, until that one is proved for them: saved or activated again.
#[derive(Clone, Debug, PartialEq)]
pub struct RestingSeries {
    /// The version by which it served requests last.
    pub last: SeriesVersion,
    /// The stamp of the version that deactivated it.
    pub since: i64,
}
