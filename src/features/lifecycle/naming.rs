//! Which number is meant: found by its text within what the caller sees, alone, within a range, or
//! by more that is said of it. Reads only.

use std::sync::Arc;

use unicode_normalization::UnicodeNormalization as _;

use super::error::LifecycleError;
use super::reserved::held;
use crate::auth::{COUNT_MAX, Identity, LOCAL_USER};
use crate::engine::allocator::Catalog;
use crate::ledger::{
    AssignedNumber, JournalFilter, JournalRow, LedgerError, NewAct, SeriesVersion, SharedLedger,
    ValueOf,
};
use crate::node::NodeId;
use crate::web::journal_wait::TryOf;
use crate::web::middleware::Caller;
use crate::web::problem::Problem;

/// Most rows with one text that are looked at: one for each scope of uniqueness.
pub(super) const ROWS_MAX: u32 = 100;

/// What names a number: its text, and where several have it, something more.
#[derive(Clone, Debug, Default)]
pub(crate) struct NumberName {
    /// The text.
    pub(crate) number: String,
    /// Code of its series.
    pub(crate) series: Option<String>,
    /// Its project.
    pub(crate) project: Option<String>,
    /// Its document.
    pub(crate) document_id: Option<String>,
}

impl NumberName {
    /// The name of a number in a field of a request.
    ///
    /// # Errors
    /// A text that no number has.
    pub(crate) fn of(field: &str, number: &str) -> Result<Self, Problem> {
        if number.is_empty() || number.chars().any(char::is_control) {
            let why = "must be the number as it was issued, without control characters";
            return Err(Problem::field(field, why));
        }
        Ok(NumberName { number: number.nfc().collect(), ..NumberName::default() })
    }

    /// Whether more is said of the number than its text.
    fn is_narrow(&self) -> bool {
        self.series.is_some() || self.project.is_some() || self.document_id.is_some()
    }
}

/// Who acts.
#[derive(Clone, Debug)]
pub(crate) struct By {
    /// The caller: numbers that it does not see are treated as absent.
    pub(crate) identity: Arc<Identity>,
    /// The user, as the ledger keeps it.
    pub(crate) user_id: String,
    /// From where.
    pub(crate) ip_address: Option<String>,
    /// The node that has a confirmed number journaled at once; without one it is waited for.
    pub(crate) node: Option<NodeId>,
}

impl By {
    /// A caller over HTTP.
    pub(crate) fn of(caller: &Caller) -> Self {
        By {
            identity: Arc::clone(&caller.identity),
            user_id: caller.user_id.to_string(),
            ip_address: caller.address(),
            node: None,
        }
    }

    /// The same through a node.
    pub(crate) fn through(self, node: NodeId) -> Self {
        By { node: Some(node), ..self }
    }

    /// The user of a command, who may do everything.
    pub(crate) fn command(user_id: String) -> Self {
        let identity = Arc::new(Identity::local(LOCAL_USER, COUNT_MAX));
        By { identity, user_id, ip_address: None, node: None }
    }
}

/// A number that was found.
#[derive(Clone, Debug)]
pub(crate) struct FoundNumber {
    /// Its row: of a number within a range, the row of the range.
    pub(crate) row: JournalRow,
    /// Its value.
    pub(crate) of: ValueOf,
    /// Its text.
    pub(crate) number: String,
}

impl FoundNumber {
    /// An act upon it.
    pub(crate) fn act(&self, by: &By, reason: Option<&str>) -> NewAct {
        let row_first = ValueOf::number(&self.row).map_or(self.of.value, |first| first.value);
        NewAct {
            of: self.of,
            row_first,
            allocation_id: self.row.entry.record.allocation_id,
            number: self.number.clone(),
            user_id: by.user_id.clone(),
            ip_address: by.ip_address.clone(),
            reason: reason.map(str::to_owned),
        }
    }

    /// Refuses a number beyond the series and projects to which the caller is narrowed, though it
    /// may see it as one that it took itself.
    pub(crate) fn must_be_within(&self, by: &By) -> Result<(), LifecycleError> {
        let project = self.row.entry.record.project.as_deref();
        if by.identity.scope.has(&self.row.series, project) {
            return Ok(());
        }
        let (user, number) = (by.user_id.clone(), self.number.clone());
        Err(LifecycleError::OutOfReach { user, number })
    }
}

/// Finds the one number that is meant. One that is confirmed is journaled first.
///
/// # Errors
/// See [`LifecycleError`].
pub(crate) async fn find(
    ledger: &SharedLedger,
    catalog: &Arc<Catalog>,
    (name, by): (&NumberName, &By),
    try_of: TryOf,
) -> Result<FoundNumber, LifecycleError> {
    let found = find_journaled(ledger, catalog, (name, &by.identity), try_of).await;
    let (Err(LifecycleError::BeingRecorded { counter_id, id, .. }), Some(node)) = (&found, by.node)
    else {
        return found;
    };
    ledger.reservations().journal_confirmed(node, (*counter_id, *id)).await?;
    find_journaled(ledger, catalog, (name, &by.identity), try_of).await
}

/// The same as the journal is.
async fn find_journaled(
    ledger: &SharedLedger,
    catalog: &Arc<Catalog>,
    (name, identity): (&NumberName, &Arc<Identity>),
    try_of: TryOf,
) -> Result<FoundNumber, LifecycleError> {
    let number = &name.number;
    let series_id = match &name.series {
        None => None,
        Some(code) => match ledger.series().id_of(code).await? {
            None => return Err(LifecycleError::NotFound { number: number.clone() }),
            found => found,
        },
    };
    let filter = JournalFilter {
        number: Some(number.clone()),
        document_id: name.document_id.clone(),
        project: name.project.clone(),
        series_id,
        limit: ROWS_MAX,
        shown: identity.row_visibility(),
        ..JournalFilter::default()
    };
    let rows = ledger.register().find(&filter).await?;
    let of_row = |row: JournalRow| ValueOf::number(&row).map(|of| (row, of));
    let mut found: Vec<_> =
        rows.into_iter().filter(|row| identity.sees_row(row)).filter_map(of_row).collect();
    if found.is_empty() && try_of == TryOf::First {
        must_be_no_revision(ledger, number, &filter).await?;
    }
    // Another number with the text may be within a range of another scope: which one is meant is
    // not guessed.
    let (members, unsearched) = members(ledger, catalog, &filter, (identity, number)).await?;
    let assigned = assigned(ledger, &filter, number).await?;
    for (row, of) in members.into_iter().chain(assigned) {
        let is_it = |(known, _): &(JournalRow, ValueOf)| {
            known.entry.record.allocation_id == row.entry.record.allocation_id
        };
        if identity.sees_row(&row) && !found.iter().any(is_it) {
            found.push((row, of));
        }
    }
    if let Some(unsearched) = unsearched.filter(|_| found.is_empty() || !name.is_narrow()) {
        return Err(unsearched.into());
    }
    let count = found.len();
    match found.pop() {
        Some(_) if count > 1 => Err(LifecycleError::Several { number: number.clone(), count }),
        Some((row, _)) if row.is_put_aside => {
            Err(LifecycleError::PutAside { number: number.clone() })
        }
        Some((row, of)) => Ok(FoundNumber { row, of, number: number.clone() }),
        None => Err(match held(ledger, identity, &filter).await? {
            Some(held) => held,
            None => missing(ledger, identity, number).await?,
        }),
    }
}

/// Numbers of ranges, each with its range's row; and the error to report where not all ranges were
/// searched.
async fn members(
    ledger: &SharedLedger,
    catalog: &Arc<Catalog>,
    filter: &JournalFilter,
    (identity, number): (&Arc<Identity>, &str),
) -> Result<(Vec<(JournalRow, ValueOf)>, Option<LedgerError>), LedgerError> {
    let (of_series, own) = (filter.series_id, Arc::clone(identity));
    let wanted = move |version: &SeriesVersion| {
        let definition = &version.definition;
        of_series.is_none_or(|wanted| wanted == version.series_id)
            && own.scope.shows(&definition.code, &definition.serves.projects)
    };
    let (found, unsearched) = catalog.find_members(ledger, number, wanted).await?;
    let mut members = Vec::new();
    for (row, value) in found {
        let counter_id = row.entry.taken.first().map(|taken| taken.counter_id);
        let place = counter_id.zip(i64::try_from(value).ok());
        let Some((counter_id, value)) = place.filter(|_| filter.matches(&row)) else { continue };
        members.push((row, ValueOf { counter_id, value }));
    }
    Ok((members, unsearched))
}

/// Numbers of ranges that are assigned to the document by which one is looked for.
async fn assigned(
    ledger: &SharedLedger,
    filter: &JournalFilter,
    number: &str,
) -> Result<Vec<(JournalRow, ValueOf)>, LedgerError> {
    let Some(document_id) = &filter.document_id else { return Ok(Vec::new()) };
    let of_any = JournalFilter { document_id: None, ..filter.clone() };
    let mut assigned = Vec::new();
    for AssignedNumber { counter_id, value, number: text, .. } in
        ledger.life().assigned_to(document_id).await?
    {
        let Some(at) = u64::try_from(value).ok().filter(|_| text == number) else { continue };
        let row = ledger.register().row_of(counter_id, at).await?;
        if let Some(row) = row.filter(|row| of_any.matches(row)) {
            assigned.push((row, ValueOf { counter_id, value }));
        }
    }
    Ok(assigned)
}

/// Refuses the text of a revision that the caller sees.
async fn must_be_no_revision(
    ledger: &SharedLedger,
    number: &str,
    filter: &JournalFilter,
) -> Result<(), LifecycleError> {
    let revisions = ledger.register().revisions_shown_named(number, 1, &filter.shown).await?;
    let Some(revision) = revisions.into_iter().next() else { return Ok(()) };
    let value = u64::try_from(revision.of.value).unwrap_or(u64::MAX);
    let row = ledger.register().row_of(revision.of.counter_id, value).await?;
    match row.filter(|row| filter.matches(row)) {
        None => Ok(()),
        Some(row) => {
            Err(LifecycleError::Revision { number: number.to_owned(), of: row.entry.number })
        }
    }
}

/// Where a number is that the journal does not have. Only a caller that sees everything is shown
/// files of archives.
async fn missing(
    ledger: &SharedLedger,
    identity: &Identity,
    number: &str,
) -> Result<LifecycleError, LedgerError> {
    let number = number.to_owned();
    if identity.sees_everything() {
        let file = ledger.archive().of_number(&number).await?.into_iter().next();
        if file.is_some() {
            return Ok(LifecycleError::Archived { number, file });
        }
    }
    Ok(LifecycleError::NotFound { number })
}
