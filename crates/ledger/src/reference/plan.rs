//! Judges a change of reference data against the present data: all rules in one place, for a dry
//! run and, under the ledger's lock, for the change itself. Writes nothing.

use std::collections::{BTreeMap, HashSet};

use numbering::{
    Membership, ReferenceData, ReferenceRow, check_reference, check_reference_id, is_table_name,
};

use crate::{Effect, ReferenceChange, ReferencePlan};

/// Most rows and memberships of one change.
pub const REFERENCE_CHANGE_MAX: usize = 10_000;

/// Most rows of one table: all of them are in the memory of every process.
const TABLE_ROWS_MAX: usize = 100_000;

/// Most mistakes that a refusal lists.
const LISTED_MAX: usize = 20;

/// What a change would do.
///
/// # Errors
/// The first 20 mistakes: a value that no table takes, an id or code twice, a code that belongs to
/// another id, a membership of a row that does not exist.
pub fn plan_reference(
    now: &ReferenceData,
    change: &ReferenceChange,
) -> Result<ReferencePlan, Vec<String>> {
    let size = change.rows.len() + change.memberships.len();
    if size == 0 || size > REFERENCE_CHANGE_MAX {
        let why = format!("an import has 1 to {REFERENCE_CHANGE_MAX} rows, not {size}; split it");
        return Err(vec![why]);
    }
    let mut plan = ReferencePlan::default();
    let mut mistakes = Vec::new();
    let (mut ids, mut codes) = (HashSet::new(), HashSet::new());
    for (index, row) in change.rows.iter().enumerate() {
        let mut row = row.upon(&change.table, now.by_id(&change.table, &row.id));
        let judged = check_reference(&mut row).map_err(|flaw| flaw.to_string());
        let judged = judged.and_then(|()| {
            let is_new = ids.insert(row.id.clone()) && codes.insert(row.code.clone());
            let twice = || format!("id {} or code {:?} appears twice", row.id, row.code);
            if is_new { effect_on_row(now, &row) } else { Err(twice()) }
        });
        match judged {
            Ok(effect) => plan.rows.push((row, effect)),
            Err(why) => mistakes.push(format!("row {}: {why}", index + 1)),
        }
    }
    let added = plan.rows.iter().filter(|(_, effect)| *effect == Effect::Added).count();
    if now.rows(&change.table).count() + added > TABLE_ROWS_MAX {
        mistakes.push(format!("a table has at most {TABLE_ROWS_MAX} rows"));
    }
    let known: BTreeMap<_, bool> =
        now.memberships().iter().map(|known| (ends(known), known.active)).collect();
    let mut seen = HashSet::new();
    for (index, membership) in change.memberships.iter().enumerate() {
        let ends_of = [&*change.table, &membership.id, &membership.of_table, &membership.of_id];
        let was_active = known.get(&ends_of).copied();
        let membership = membership.upon(&change.table, was_active);
        let judged = check_membership(now, &membership).and_then(|()| {
            let owned = |end: [&str; 4]| end.map(str::to_owned);
            let is_new = seen.insert(owned(ends(&membership)));
            if is_new { Ok(()) } else { Err("appears twice".to_owned()) }
        });
        let effect = match was_active {
            None => Effect::Added,
            Some(active) => switched(active, membership.active).unwrap_or(Effect::Unchanged),
        };
        match judged {
            Ok(()) => plan.memberships.push((membership, effect)),
            Err(why) => mistakes.push(format!("row {}: {why}", index + 1)),
        }
    }
    if mistakes.is_empty() {
        return Ok(plan);
    }
    let more = mistakes.len().saturating_sub(LISTED_MAX);
    mistakes.truncate(LISTED_MAX);
    if more > 0 {
        mistakes.push(format!("and {more} more"));
    }
    Err(mistakes)
}

/// The effect on one row. A code that another id ever had is refused: a number that shows it would
/// mean two things.
fn effect_on_row(now: &ReferenceData, row: &ReferenceRow) -> Result<Effect, String> {
    if let Some(owner) = now.by_code(&row.table, &row.code).filter(|owner| owner.id != row.id) {
        return Err(format!(
            "code {:?} belongs to id {} of {} for ever, since numbers may show it; use another \
             code for id {}",
            row.code, owner.id, row.table, row.id
        ));
    }
    Ok(match now.by_id(&row.table, &row.id) {
        None => Effect::Added,
        Some(old) if old.code != row.code => {
            Effect::Renamed { from: old.code.clone(), switched: old.active != row.active }
        }
        Some(old) => match switched(old.active, row.active) {
            Some(effect) => effect,
            None if old.name == row.name => Effect::Unchanged,
            None => Effect::Changed,
        },
    })
}

/// The effect on an active or inactive row.
fn switched(was_active: bool, is_active: bool) -> Option<Effect> {
    match (was_active, is_active) {
        (false, true) => Some(Effect::Activated),
        (true, false) => Some(Effect::Deactivated),
        _ => None,
    }
}

/// Both ends of a membership must exist.
fn check_membership(now: &ReferenceData, membership: &Membership) -> Result<(), String> {
    let Membership { table, id, of_table, of_id, .. } = membership;
    for (field, table, id) in [("id", table, id), ("of_id", of_table, of_id)] {
        check_reference_id(field, id).map_err(|flaw| flaw.to_string())?;
        if !is_table_name(table) || now.by_id(table, id).is_none() {
            return Err(format!("{field}: {table} has no id {id}; import that row first"));
        }
    }
    if (table, id) == (of_table, of_id) {
        return Err("nothing is a member of itself".into());
    }
    Ok(())
}

fn ends(membership: &Membership) -> [&str; 4] {
    [&membership.table, &membership.id, &membership.of_table, &membership.of_id]
}
