//! Corrections of variables that a number does not show. The journal's row keeps what the number
//! was issued with; the newest correction of a variable says what it should have been.

use std::collections::BTreeMap;

use super::{Act, COLUMNS, Detail, Life, insert, lock, once};
use crate::columns::from_json;
use crate::dialect::Conn;
use crate::query::QueryBuilder;
use crate::store::commit_alone;
use crate::{
    CORRECTIONS_MAX, Corrected, LedgerError, LifeAct, LifeRow, NewAct, ValueOf, VariableChange,
};

impl Life<'_> {
    /// Notes what variables of a journaled number should have been. Those that have the value
    /// already are left out. Safe to repeat.
    ///
    /// # Errors
    /// `LockTimeout` where a counter is held: worth a retry.
    pub async fn correct(
        self,
        new: &NewAct,
        values: &BTreeMap<String, String>,
    ) -> Result<Corrected, LedgerError> {
        self.write(async |store| {
            let mut tx = store.begin().await?;
            // Two corrections at once follow each other here.
            let Some(journaled) = lock(&mut *tx, new).await? else { return Ok(Corrected::Gone) };
            if let Some(voided) = once(&mut *tx, new.of, LifeAct::Voided).await? {
                return Ok(Corrected::Voided(voided));
            }
            let before = corrections_of(&mut *tx, new.of).await?;
            let context = journaled.context.as_deref();
            let context = context.map(|text| from_json(text, "journal.context")).transpose()?;
            let mut standing: BTreeMap<String, String> = context.unwrap_or_default();
            for (name, change) in before.iter().flat_map(|row| &row.changes) {
                standing.insert(name.clone(), change.new.clone());
            }
            let mut changes = BTreeMap::new();
            for (name, new) in values {
                let old = standing.get(name).cloned();
                if old.as_ref() != Some(new) {
                    changes.insert(name.clone(), VariableChange { old, new: new.clone() });
                }
            }
            if changes.is_empty() {
                return Ok(Corrected::Same(before.into_iter().next_back()));
            }
            if before.len() >= CORRECTIONS_MAX as usize {
                return Ok(Corrected::TooMany);
            }
            let detail = Some(Detail { changes, ..Detail::default() });
            let act = Act {
                document_id: journaled.document_id,
                detail,
                ..Act::of(LifeAct::Corrected, new)
            };
            let Some(row) = insert(store, &mut *tx, act).await? else {
                let why = "life: a correction met a unique key, and corrections have none";
                return Err(LedgerError::Fault(why.into()));
            };
            commit_alone(store, tx).await?;
            Ok(Corrected::Written(row))
        })
        .await
    }
}

/// The corrections of a number, oldest first.
async fn corrections_of(conn: &mut Conn, of: ValueOf) -> Result<Vec<LifeRow>, LedgerError> {
    let mut query = QueryBuilder::new(COLUMNS);
    query.push("where l.counter_id = ").push_bind(of.counter_id);
    query.push(" and l.first_value = ").push_bind(of.value);
    query.push(" and l.once is null and l.act = 'corrected' order by l.life_id");
    query.build().typed::<super::ActRow>().fetch_all_into(conn).await
}
