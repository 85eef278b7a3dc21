//! The ambiguity proof at the saving of series: made between two transactions, since a search would
//! leave one idle; a change is saved if what would be active then is what was proved.

use std::sync::Arc;

use numbering::{
    self, Accepted, EarlierVersion, GiveUp, IssuedVersion, ProofError, ReferenceData,
    SeriesDefinition,
};

use crate::dialect::Conn;
use crate::events::insert_event;
use crate::reference::tables;
use crate::series::succession::issued_beside;
use crate::series::{acceptance, versions};
use crate::{Event, LedgerError, SeriesRefusal, SeriesVersion, giving_up};

/// A version that is in force now.
pub(crate) struct Saved {
    pub(crate) version: SeriesVersion,
    /// Whether it has to be proved: what it gives, or what it takes, is not proved yet. Not of one
    /// that is turned off as it was.
    pub(crate) asks: bool,
    /// The definition by which it took requests before, where it may now leave some to others.
    pub(crate) frees: Option<SeriesDefinition>,
}

/// Whether some definitions may be active together, as far as it is not known yet.
#[derive(Debug)]
pub(crate) struct ProofQuestion {
    /// All of them, by code.
    definitions: Vec<SeriesDefinition>,
    /// Codes of those among them that have to be proved.
    new: Vec<String>,
    /// Earlier versions of these, and of those whose values the proof builds on, as far as numbers
    /// may have been issued under them.
    earlier: Vec<EarlierVersion>,
    /// What others have issued, for each of those that are compared with it.
    issued: Vec<IssuedVersion>,
    /// The tables that they refer to. A proof holds for every later state of these.
    reference: Arc<ReferenceData>,
}

/// A question that was answered with yes.
pub(crate) struct Proved {
    question: ProofQuestion,
    /// The ambiguities that administrators accepted.
    accepted: Vec<Accepted>,
    /// Codes of the series whose numbers may be equal by that.
    concerned: Vec<String>,
}

impl ProofQuestion {
    /// The question of a change; none where the change lets no series give numbers that were not
    /// proved. Only changed series are compared with others: a ledger whose series were proved by
    /// other rules can still change one of them, and a save does not compare all with all.
    pub(crate) async fn of(
        conn: &mut Conn,
        active: &[SeriesVersion],
        saved: &[Saved],
    ) -> Result<Option<Self>, LedgerError> {
        let asking = saved.iter().filter(|saved| saved.asks && saved.version.is_new);
        let asking: Vec<&SeriesVersion> =
            asking.map(|saved| &saved.version).filter(|version| version.active).collect();
        if asking.is_empty() && saved.iter().all(|saved| saved.frees.is_none()) {
            return Ok(None);
        }
        let (mut new, mut earlier) = (Vec::new(), Vec::new());
        for after in asking {
            new.push(after.definition.code.clone());
            earlier.extend(versions::before(conn, after).await?);
        }
        for other in active.iter().filter(|other| !new.contains(&other.definition.code)) {
            if other.definition.leaves_values_out() {
                earlier.extend(versions::before(conn, other).await?);
            }
        }
        let issued = issued(conn, active, saved, &new).await?;
        if new.is_empty() && issued.is_empty() {
            return Ok(None);
        }
        let definitions = active.iter().map(|version| version.definition.clone()).collect();
        Ok(Some(ProofQuestion { definitions, new, earlier, issued, reference: Arc::default() }))
    }

    /// The same question with the current reference data.
    pub(crate) async fn with_reference(self, conn: &mut Conn) -> Result<Self, LedgerError> {
        let reference = Arc::new(tables::read(conn).await?);
        Ok(ProofQuestion { reference, ..self })
    }

    /// The series whose numbers may be equal by what is accepted; `None` where it was given up.
    fn concerned(&self, accepted: &[Accepted], give_up: &GiveUp) -> Option<Vec<String>> {
        let is_accepted =
            |one: &&SeriesDefinition| accepted.iter().any(|accepted| accepted.code == one.code);
        let accepting: Vec<_> = self.definitions.iter().filter(is_accepted).collect();
        let earlier = self.earlier.iter().map(|earlier| &earlier.definition);
        let issued = self.issued.iter().map(|issued| &*issued.definition);
        let all: Vec<_> = self.definitions.iter().chain(earlier).chain(issued).collect();
        let codes = numbering::concerned(&accepting, &all, &self.reference, give_up)?;
        Some(codes.into_iter().collect())
    }

    /// Searches for a proof, on a separate thread.
    pub(crate) async fn prove(self) -> Result<Proved, LedgerError> {
        let proving = giving_up::search(move |give_up| {
            let asked = |series: &SeriesDefinition| self.new.contains(&series.code);
            let (of, tables) = (&self.definitions, &self.reference);
            let (earlier, issued) = (&self.earlier, &self.issued);
            let mut accepted = numbering::prove_saved(of, tables, asked, earlier, issued, give_up)?;
            // The acceptances of others were recorded when those were saved.
            accepted.retain(|accepted| self.new.contains(&accepted.code));
            let concerned = self.concerned(&accepted, give_up).ok_or(ProofError::GivenUp)?;
            Ok(Proved { question: self, accepted, concerned })
        });
        proving.await.map_err(|error| match error {
            ProofError::Ambiguity(ambiguity) => SeriesRefusal::Ambiguous(ambiguity).into(),
            ProofError::Hasty(hasty) => SeriesRefusal::Hasty(hasty).into(),
            ProofError::GivenUp => LedgerError::GivenUp,
            error @ ProofError::Series { .. } => LedgerError::Refused(error.to_string()),
        })
    }
}

/// What others have issued, for those that are new; and, for all, what the series have issued that
/// leave requests to others: a rule that is gone no longer keeps a request from any of them.
async fn issued(
    conn: &mut Conn,
    active: &[SeriesVersion],
    saved: &[Saved],
    new: &[String],
) -> Result<Vec<IssuedVersion>, LedgerError> {
    let written = saved.iter().filter(|saved| saved.version.is_new);
    let Some(first) = written.map(|saved| saved.version.stamp).min() else { return Ok(Vec::new()) };
    let stretches = versions::that_may_have_issued(conn).await?;
    let freeing: Vec<(i64, &SeriesDefinition)> = saved
        .iter()
        .filter_map(|saved| Some((saved.version.series_id, saved.frees.as_ref()?)))
        .collect();
    let mut issued = Vec::new();
    for subject in active {
        let is_new = new.contains(&subject.definition.code);
        // A series that it took nothing from gets nothing now.
        let freed: Vec<i64> = freeing
            .iter()
            .filter(|(_, before)| numbering::may_come_before(before, &subject.definition))
            .map(|(series_id, _)| *series_id)
            .collect();
        let beside = stretches.iter().filter(|one| is_new || freed.contains(&one.series_id));
        issued.extend(issued_beside(conn, subject, beside, first).await?);
    }
    Ok(issued)
}

impl Proved {
    /// Whether this is the question that was answered, regardless of the current tables.
    pub(crate) fn answers(&self, question: &ProofQuestion) -> bool {
        let ProofQuestion { definitions, new, earlier, issued, reference: _ } = &self.question;
        (definitions, new) == (&question.definitions, &question.new)
            && (earlier, issued) == (&question.earlier, &question.issued)
    }

    /// Refuses what was accepted where numbers of a series that it concerns are archived.
    pub(crate) async fn must_keep_texts_apart(&self, conn: &mut Conn) -> Result<(), LedgerError> {
        acceptance::must_keep_texts_apart(conn, &self.concerned).await
    }

    /// Writes what was accepted into the ledger's events.
    pub(crate) async fn record(
        &self,
        conn: &mut Conn,
        saved: &[SeriesVersion],
    ) -> Result<(), LedgerError> {
        for accepted in &self.accepted {
            let version = saved.iter().find(|version| version.definition.code == accepted.code);
            let version = version.expect("only what is saved is asked about");
            insert_event(conn, &event(version, accepted)).await?;
        }
        Ok(())
    }
}

fn event(version: &SeriesVersion, accepted: &Accepted) -> Event {
    Event {
        at_us: version.saved_at_us,
        kind: "ambiguity-accepted".into(),
        partition: None,
        epoch: None,
        node_id: None,
        detail: serde_json::json!({
            "config_id": version.series_id,
            "code": accepted.code,
            "version": version.version,
            "user": version.saved_by,
            "reason": accepted.reason,
            "ambiguity": accepted.ambiguity.to_string(),
        }),
    }
}
