//! What became of a number, as a condition of a search. The search calls its rows `i`.

use crate::NumberStatus;

/// What became of a row's number. A range is void or replaced as far as one of its numbers is, and
/// issued as its first one is.
pub(crate) fn condition_of(status: NumberStatus) -> &'static str {
    match status {
        NumberStatus::Issued => {
            " and not exists (select 1 from revision r where r.counter_id = i.counter_id
             and r.value = i.first_value) and not exists (select 1 from life l
             where l.counter_id = i.counter_id and l.first_value = i.first_value
             and l.once = 'voided')"
        }
        NumberStatus::Revised => {
            " and exists (select 1 from revision r where r.counter_id = i.counter_id
             and r.value = i.first_value)"
        }
        NumberStatus::Voided => {
            " and exists (select 1 from life l where l.counter_id = i.counter_id
             and l.first_value >= i.first_value
             and l.first_value <= coalesce(i.last_value, i.first_value)
             and l.once = 'voided' and not exists (select 1 from life r
             where r.counter_id = l.counter_id and r.first_value = l.first_value
             and r.once = 'replaced'))"
        }
        NumberStatus::Replaced => {
            " and exists (select 1 from life l where l.counter_id = i.counter_id
             and l.first_value >= i.first_value
             and l.first_value <= coalesce(i.last_value, i.first_value)
             and l.once = 'replaced')"
        }
    }
}
