//! How much of the shared resources one project may take up, where the saving caller is restricted
//! to some: each series is compiled by every process, and compared by the proof of every save.

use std::collections::BTreeMap;

use crate::columns::to_json;
use crate::dialect::Conn;
use crate::series::versions::last_of_all;
use crate::{LedgerError, PROJECT_BYTES_MAX, PROJECT_SERIES_MAX, SeriesRefusal};

/// The projects for which a save is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SavedFor {
    /// For all projects: no bound applies.
    AllProjects,
    /// For some.
    SomeProjects,
}

impl SavedFor {
    /// What the projects take up, where a bound applies.
    pub(crate) async fn footprints(
        self,
        conn: &mut Conn,
    ) -> Result<Option<Footprints>, LedgerError> {
        match self {
            SavedFor::AllProjects => Ok(None),
            SavedFor::SomeProjects => Footprints::read(conn).await.map(Some),
        }
    }
}

/// Refuses a save after which a project takes up more than its bounds, and more than before.
pub(crate) async fn must_have_room(
    conn: &mut Conn,
    before: Option<Footprints>,
) -> Result<(), LedgerError> {
    let Some(before) = before else { return Ok(()) };
    Ok(Footprints::read(conn).await?.must_be_within_bounds(&before)?)
}

/// What the series that serve a project take up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Footprint {
    series: usize,
    bytes: usize,
}

/// What each project takes up.
pub(crate) struct Footprints(BTreeMap<String, Footprint>);

impl Footprints {
    /// The current state of the ledger. A removed series counts as it was: its row stays.
    async fn read(conn: &mut Conn) -> Result<Self, LedgerError> {
        let mut footprints: BTreeMap<String, Footprint> = BTreeMap::new();
        for version in last_of_all(conn).await? {
            let bytes = to_json(&version.definition, "definition")?.len();
            for project in version.definition.serves.projects {
                let footprint = footprints.entry(project).or_default();
                footprint.series += 1;
                footprint.bytes += bytes;
            }
        }
        Ok(Footprints(footprints))
    }

    /// Refuses a project that takes up more than its bounds. One that does already may take up as
    /// much as `before`.
    fn must_be_within_bounds(&self, before: &Footprints) -> Result<(), SeriesRefusal> {
        for (project, now) in &self.0 {
            let before = before.0.get(project).copied().unwrap_or_default();
            let has_grown = |now: usize, before: usize, most: usize| now > most && now > before;
            if has_grown(now.series, before.series, PROJECT_SERIES_MAX)
                || has_grown(now.bytes, before.bytes, PROJECT_BYTES_MAX)
            {
                return Err(SeriesRefusal::ProjectFull { project: project.clone() });
            }
        }
        Ok(())
    }
}
