//! Whether definitions could render numbers that are kept as written (F48), as a save asks. Few
//! pairs are compared in the transaction that asks; more of them between two transactions, since a
//! search would leave one idle. Writes nothing.

use std::collections::HashSet;
use std::sync::Arc;

use numbering::{GiveUp, ReferenceData, Series, SeriesDefinition, WidenedSeries};
use sqlx_macros::FromRow;

use crate::dialect::Conn;
use crate::query::query_as;
use crate::reference::tables;
use crate::series::acceptance::newest;
use crate::series::versions;
use crate::{LedgerError, SeriesRefusal, giving_up};

/// Most pairs of a definition and a text that are compared in a transaction: they take some tens of
/// milliseconds, and the whole ledger's texts with a few definitions are no more.
const PAIRS_IN_TRANSACTION_MAX: usize = 10_000;

/// A number that is kept as written.
#[derive(FromRow)]
struct KeptText {
    /// Code of its series.
    code: String,
    number: String,
}

/// The newest change of reference data, and when it was made: see
/// [`crate::series::kept::KeptStamp`].
pub(crate) type TablesStamp = (i64, i64);

/// The tables by which definitions render texts.
struct Tables {
    /// Before the change, if they change.
    stamp: TablesStamp,
    now: Arc<ReferenceData>,
    /// As they were, if they change: what could be rendered by these is no matter of the change.
    before: Option<Arc<ReferenceData>>,
}

/// The question whether any of some definitions could render any of some texts.
pub(crate) struct TextQuestion {
    definitions: Vec<Arc<SeriesDefinition>>,
    tables: Tables,
    texts: Vec<KeptText>,
}

/// Texts that none of some definitions could render.
pub(crate) struct Unread {
    definitions: Vec<Arc<SeriesDefinition>>,
    stamp: TablesStamp,
    texts: HashSet<String>,
}

impl TextQuestion {
    /// The question of a save; none where no number is kept as written.
    pub(crate) async fn of_save(
        conn: &mut Conn,
        saved: Vec<SeriesDefinition>,
    ) -> Result<Option<Self>, LedgerError> {
        let texts = kept_texts(conn).await?;
        if texts.is_empty() {
            return Ok(None);
        }
        let now = Arc::new(tables::read(conn).await?);
        let tables = Tables { stamp: stamp(conn).await?, now, before: None };
        let definitions = saved.into_iter().map(Arc::new).collect();
        Ok(Some(TextQuestion { definitions, tables, texts }))
    }

    /// The question of a change of a table, behind the change: of the versions that show its codes.
    /// None where there are none, or no number is kept as written.
    pub(crate) async fn of_change(
        conn: &mut Conn,
        table: &str,
        (stamp, before): (TablesStamp, ReferenceData),
    ) -> Result<Option<Self>, LedgerError> {
        let texts = kept_texts(conn).await?;
        if texts.is_empty() {
            return Ok(None);
        }
        let all = versions::that_may_render(conn).await?.into_iter().map(|one| one.definition);
        let mut definitions: Vec<_> = all.filter(|one| shows_codes_of(one, table)).collect();
        // A version that turns a series off or on renders as the one before it.
        definitions.dedup();
        if definitions.is_empty() {
            return Ok(None);
        }
        let now = Arc::new(tables::read(conn).await?);
        let tables = Tables { stamp, now, before: Some(Arc::new(before)) };
        Ok(Some(TextQuestion { definitions, tables, texts }))
    }

    /// Answers it where few pairs are left that are not known. Where there are more, it returns the
    /// question, to be [compared](TextQuestion::compare) in no transaction.
    ///
    /// # Errors
    /// Those of [`TextQuestion::compare`].
    pub(crate) async fn answer(
        mut self,
        known: Option<&Unread>,
    ) -> Result<Option<Self>, LedgerError> {
        let known = known.filter(|known| known.is_of(&self));
        let is_known =
            |text: &KeptText| known.is_some_and(|known| known.texts.contains(&text.number));
        let left = self.texts.iter().filter(|text| !is_known(text)).count();
        if left.saturating_mul(self.definitions.len()) > PAIRS_IN_TRANSACTION_MAX {
            return Ok(Some(self));
        }
        self.texts.retain(|text| !is_known(text));
        self.compare().await?;
        Ok(None)
    }

    /// Compares each definition with each text, on a separate thread.
    ///
    /// # Errors
    /// `Series` with `ReadsKept`, or `Refused` where tables change, where one could be rendered;
    /// `GivenUp` where no caller waits any more.
    pub(crate) async fn compare(self) -> Result<Unread, LedgerError> {
        giving_up::search(move |give_up| -> Result<Unread, LedgerError> {
            let TextQuestion { definitions, tables, texts } = self;
            for definition in &definitions {
                if let Some(text) = tables.first_read(definition, &texts, give_up)? {
                    return Err(tables.refusal(definition, text));
                }
            }
            let texts = texts.into_iter().map(|text| text.number).collect();
            Ok(Unread { definitions, stamp: tables.stamp, texts })
        })
        .await
    }
}

impl Unread {
    /// Whether it is of the same definitions by the same tables.
    fn is_of(&self, question: &TextQuestion) -> bool {
        self.stamp == question.tables.stamp && self.definitions == question.definitions
    }
}

impl Tables {
    /// The first text that a definition could render.
    fn first_read<'t>(
        &self,
        definition: &SeriesDefinition,
        texts: &'t [KeptText],
        give_up: &GiveUp,
    ) -> Result<Option<&'t KeptText>, LedgerError> {
        let Some(now) = reader(definition, &self.now) else { return Ok(None) };
        let before = self.before.as_ref().and_then(|tables| reader(definition, tables));
        for text in texts {
            if give_up.is_given_up() {
                return Err(LedgerError::GivenUp);
            }
            if now.could_render(&text.number)
                && before.as_ref().is_none_or(|before| !before.could_render(&text.number))
            {
                return Ok(Some(text));
            }
        }
        Ok(None)
    }

    fn refusal(&self, definition: &SeriesDefinition, text: &KeptText) -> LedgerError {
        let code = definition.code.clone();
        if self.before.is_some() {
            return LedgerError::Refused(format!(
                "series {code} could render a number that is kept as written with these codes: \
                 use other codes"
            ));
        }
        let (number, kept_by) = (text.number.clone(), text.code.clone());
        SeriesRefusal::ReadsKept { code, number, kept_by }.into()
    }
}

/// A version as it reads texts. What does not compile gives no numbers.
pub(crate) fn reader(
    definition: &SeriesDefinition,
    tables: &Arc<ReferenceData>,
) -> Option<WidenedSeries> {
    let series = Series::restore(definition.clone()).ok()?;
    Some(series.with_reference(Arc::clone(tables)).widened())
}

/// Whether what a definition renders depends on the codes of a table: of types, or of projects. A
/// variable shows whatever its own rule allows.
fn shows_codes_of(definition: &SeriesDefinition, table: &str) -> bool {
    let references = &definition.references;
    let shown = [&references.type_code, &references.project];
    shown.into_iter().flatten().any(|of| of.as_str() == table)
}

/// What the tables are of at this moment.
pub(crate) async fn stamp(conn: &mut Conn) -> Result<TablesStamp, LedgerError> {
    let newest = newest(conn).await?;
    Ok((newest.reference, newest.changed_at_us))
}

/// Every number that is kept as written. They stay in the journal.
async fn kept_texts(conn: &mut Conn) -> Result<Vec<KeptText>, LedgerError> {
    Ok(query_as(
        "select s.code, j.number from series s
         join counter c on c.series_id = s.series_id and c.serial = 'as-written'
         join journal j on j.counter_id = c.counter_id and j.number is not null
         order by j.counter_id, j.first_value",
    )
    .fetch_all(conn)
    .await?)
}

/// The texts of all numbers that are kept as written.
pub(crate) async fn all(conn: &mut Conn) -> Result<HashSet<String>, LedgerError> {
    Ok(kept_texts(conn).await?.into_iter().map(|text| text.number).collect())
}
