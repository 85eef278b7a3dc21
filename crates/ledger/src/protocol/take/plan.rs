//! What one transaction of the database path is going to write: planned under its locks, then
//! journaled or reserved as a whole, or each with a verdict of its own.

mod holding;

use std::collections::{BTreeMap, BTreeSet, HashMap, btree_map};

use numbering::{InputError, PartialNumber, Range, TakenRange, first_values};

use super::Name;
use super::reserving::{Hold, Reserving, takes_returned, too_few};
use crate::batch::{Move, Moves};
use crate::columns::{self, ownership, signed, unsigned};
use crate::counters::table;
use crate::dialect::Conn;
use crate::last_seen::takes::known::{Sighting, finds_sole};
use crate::last_seen::takes::{ConfirmedNumber, CounterTurn};
use crate::new_row::NewRow;
use crate::protocol::chronology::LastDates;
use crate::protocol::entries::{self, Judged, Verdict};
use crate::protocol::keys::Named;
use crate::protocol::planned::{Planned, Working};
use crate::protocol::put_aside;
use crate::protocol::seed::name;
use crate::register::gaps;
use crate::reservations::pool;
use crate::seal::Writing;
use crate::store::Store;
use crate::{
    At, CounterSpec, Entry, IssuePath, LedgerError, TakeOutcome, TakeRequest, progression,
};
use holding::losses;

/// What the transaction is going to write.
pub(super) struct Plan {
    at: At,
    counters: BTreeMap<Name, Working>,
    dates: LastDates,
    entries: Vec<Entry>,
    keys: HashMap<Named, usize>,
    reserving: Reserving,
    /// Whether the ledger has any reservation; read behind all locks.
    is_any_reserved: bool,
    /// The entries that are reserved, by their places.
    holds: BTreeMap<usize, Hold>,
    /// The places of entries whose values had returned.
    reissued: BTreeSet<usize>,
    /// Of each entry its turn, and whether nothing of its document was live (L12).
    turns: Vec<(i64, bool)>,
    /// The texts of blocks that others have, by the places of their entries, and their values.
    met_of: BTreeMap<usize, BTreeMap<i64, String>>,
}

impl Plan {
    /// An empty one.
    pub(super) fn new(
        at: At,
        counters: BTreeMap<Name, Working>,
        dates: LastDates,
        (reserving, is_any_reserved): (Reserving, bool),
    ) -> Self {
        Plan {
            at,
            counters,
            dates,
            entries: Vec::new(),
            keys: HashMap::new(),
            reserving,
            is_any_reserved,
            holds: BTreeMap::new(),
            reissued: BTreeSet::new(),
            turns: Vec::new(),
            met_of: BTreeMap::new(),
        }
    }

    /// Plans one order: the number that an earlier order of the batch took under its keys, or its
    /// own.
    pub(super) fn order(&mut self, order: &TakeRequest) -> Result<Planned, LedgerError> {
        let question = &order.question;
        let place = |name: Option<Named>| name.and_then(|name| self.keys.get(&name)).copied();
        let by_key = place(Named::caller(question));
        let by_document = place(Named::document(question))
            .filter(|place| question.is_answered_by(&self.entries[*place]));
        if by_key.is_some() || by_document.is_some() {
            return Ok(Planned::Same { by_key, by_document });
        }
        if let Some(last_date) = self.dates.refuse(order).map(str::to_owned) {
            return Ok(Planned::Answered(TakeOutcome::BeforeLast { last_date }));
        }
        if let Some(refused) = self.reserving.refuse(order) {
            return Ok(Planned::Answered(refused));
        }
        let hold = order
            .reserve_us
            .map(|reserve_us| self.reserving.hold(order, reserve_us))
            .transpose()?;
        let returned = self.returned(order)?;
        let taken = match returned {
            Some(taken) => vec![taken],
            None => match self.ranges(order)? {
                Ok(taken) => taken,
                Err(refused) => return Ok(Planned::Answered(refused)),
            },
        };
        let partial = PartialNumber::parse(&order.record.mask)
            .map_err(|e| LedgerError::Refused(format!("mask: {e}")))?;
        let number = match partial.fill(&first_values(&taken)) {
            Ok(number) => number,
            Err(InputError::SerialTooWide { serial, .. }) => {
                let serial = u16::try_from(serial).unwrap_or(u16::MAX);
                return Ok(Planned::Answered(TakeOutcome::Exhausted { serial }));
            }
            Err(other) => return Err(LedgerError::Refused(format!("mask: {other}"))),
        };
        // Only now is the order certain to take its values.
        let place = self.entries.len();
        let mut turn = None;
        for (spec, taken) in order.specs.iter().zip(&taken) {
            let last = signed(taken.range.last, "last")?;
            let working = self.working(spec)?;
            match returned {
                Some(_) => working.reissue(last),
                None => working.value = last,
            }
            turn.get_or_insert(working.turn());
        }
        self.reissued.extend(returned.map(|_| place));
        self.turns.push((turn.unwrap_or_default(), finds_sole(question)));
        self.dates.note(order);
        self.holds.extend(hold.map(|hold| (place, hold)));
        self.keys.extend(Named::all_of(order).map(|name| (name, place)));
        self.entries.push(Entry {
            record: order.record.clone(),
            taken,
            number,
            at: self.at,
            retry_count: order.retry_count,
            path: IssuePath::Database,
        });
        Ok(Planned::Entry(place))
    }

    /// The lowest returned value, where an order may take one.
    fn returned(&mut self, order: &TakeRequest) -> Result<Option<TakenRange>, LedgerError> {
        if !takes_returned(order) {
            return Ok(None);
        }
        let spec = &order.specs[0];
        let working = self.working(spec)?;
        let Some(value) = working.pool.lowest(spec)? else { return Ok(None) };
        let value = unsigned(value, "gap.first_value")?;
        let range = Range { first: value, last: value, step: spec.step };
        Ok(Some(TakenRange { counter_id: working.counter.counter_id, range }))
    }

    /// The values that an order's serials would take; else what keeps one of them from it.
    fn ranges(
        &mut self,
        order: &TakeRequest,
    ) -> Result<Result<Vec<TakenRange>, TakeOutcome>, LedgerError> {
        let record = &order.record;
        if order.count == 0 || order.specs.len() != record.counter_keys.len() {
            let why = "an order takes at least one number, and names each serial's counter";
            return Err(LedgerError::Refused(format!("order: {why}")));
        }
        let mut taken = Vec::with_capacity(order.specs.len());
        let mut ahead: BTreeMap<(i64, &str, &str), i64> = BTreeMap::new();
        for (index, spec) in order.specs.iter().enumerate() {
            let (working, serial) = (self.working(spec)?, u16::try_from(index).unwrap_or(u16::MAX));
            let counter_id = working.counter.counter_id;
            let value = match ahead.entry(name(spec)) {
                btree_map::Entry::Vacant(empty) => empty.insert(working.value),
                btree_map::Entry::Occupied(known) => known.into_mut(),
            };
            let step = columns::step(spec.step)?;
            if value.saturating_add(step) < signed(spec.start, "start")? {
                return Ok(Err(TakeOutcome::Below { serial, counter_id, value: *value }));
            }
            let Some((first, last)) = progression::next(*value, step, order.count, spec.max) else {
                let left = progression::left(*value, step, spec.max);
                return Ok(Err(too_few(order, serial, left)));
            };
            *value = last;
            let range = Range {
                first: unsigned(first, "first")?,
                last: unsigned(last, "last")?,
                step: spec.step,
            };
            taken.push(TakenRange { counter_id, range });
        }
        Ok(Ok(taken))
    }

    fn working(&mut self, spec: &CounterSpec) -> Result<&mut Working, LedgerError> {
        self.counters
            .get_mut(&(spec.series_id, spec.serial.clone(), spec.key.clone()))
            .ok_or_else(|| LedgerError::fenced(self.at))
    }

    /// Moves the counters and journals the entries, all of them; else `None`, and nothing of this
    /// may be committed. Reserves nothing.
    pub(super) async fn write(
        &self,
        store: &Store,
        conn: &mut Conn,
        writing: &Writing,
    ) -> Result<Option<Vec<Verdict>>, LedgerError> {
        if self.entries.is_empty() {
            return Ok(Some(Vec::new()));
        }
        let entries: Vec<&Entry> = self.entries.iter().collect();
        let new_rows = entries::new_rows(&entries)?;
        // As in `judge_reserved`: no other transaction reserves a text of these counters.
        if self.is_any_reserved && entries::is_any_text_reserved(conn, &new_rows).await? {
            return Ok(None);
        }
        let verdicts = vec![Verdict::Written; entries.len()];
        let (partition_id, epoch) = ownership(self.at)?;
        let moves = Moves {
            partition_id,
            epoch,
            confirmed: store.last_seen.of(writing.node),
            counters: self.moves(&new_rows, &verdicts)?,
        };
        let (heads, tails): (Vec<_>, Vec<_>) = new_rows.iter().partition(|l| l.head.is_some());
        let mut is_whole = conn.move_and_insert(&moves, &heads, writing).await?;
        if is_whole && !tails.is_empty() {
            is_whole = conn.insert_all(&tails, writing).await?;
        }
        if !is_whole {
            return Ok(None);
        }
        let reissued = new_rows.iter().filter(|row| self.reissued.contains(&row.entry));
        let values: Vec<_> = reissued.map(|row| row.value_range).collect();
        pool::take_out(conn, &values).await?;
        self.dates.write(conn).await?;
        Ok(Some(verdicts))
    }

    /// Journals or reserves the entries that can be, and moves their counters. A number that
    /// another allocation has is spent: its values go to the gap register.
    pub(super) async fn write_judged(
        &mut self,
        conn: &mut Conn,
        writing: &Writing,
    ) -> Result<Vec<Verdict>, LedgerError> {
        if self.entries.is_empty() {
            return Ok(Vec::new());
        }
        let entries: Vec<&Entry> = self.entries.iter().collect();
        let new_rows = entries::new_rows(&entries)?;
        let mut verdicts = vec![Verdict::Written; entries.len()];
        put_aside::judge(conn, &new_rows, &mut verdicts).await?;
        let is_held = |row: &NewRow<'_>| self.holds.contains_key(&row.entry);
        let (held, journaled): (Vec<_>, Vec<_>) = new_rows.into_iter().partition(is_held);
        self.lock_texts(conn, &held).await?;
        let Judged { mut new_rows, mut verdicts } =
            entries::write(conn, writing, journaled, verdicts, self.is_any_reserved).await?;
        let met_of = self.reserve(conn, &held, &mut verdicts).await?;
        new_rows.extend(held);
        // Each returned value leaves the pool once, whatever became of its number: there is nothing
        // left of one whose row filled its gap.
        let reissued = new_rows.iter().filter(|row| self.reissued.contains(&row.entry));
        let values: Vec<_> = reissued.map(|row| row.value_range).collect();
        pool::take_out(conn, &values).await?;
        for row in &new_rows {
            if !matches!(verdicts[row.entry], Verdict::Collided { .. }) {
                continue;
            }
            // Only what nothing accounts for: a value in the journal is no gap.
            for loss in losses(row, met_of.get(&row.entry), self.at.epoch) {
                gaps::register_holes(conn, loss, writing.now_us).await?;
            }
        }
        table::advance(conn, self.at, &self.moves(&new_rows, &verdicts)?).await?;
        self.met_of = met_of;
        self.dates.write(conn).await?;
        Ok(verdicts)
    }

    /// Where each counter goes, and how many values more its rows account for: only those where
    /// count times step says how far they reach. A value is taken whatever becomes of its number.
    fn moves(
        &self,
        new_rows: &[NewRow<'_>],
        verdicts: &[Verdict],
    ) -> Result<Vec<Move>, LedgerError> {
        let mut moves = BTreeMap::new();
        for Working { counter, value, reissued, .. } in self.counters.values() {
            // Also one that only gives a returned value again: its row is the fence.
            if *value != counter.taken || *reissued > 0 {
                let counter_id = counter.counter_id;
                let to = Move { counter_id, value: *value, journaled: 0 };
                moves.insert(counter_id, (to, (signed(counter.step, "step")?, counter.start)));
            }
        }
        let is_journaled = |row: &&NewRow<'_>| {
            verdicts[row.entry] == Verdict::Written && !self.holds.contains_key(&row.entry)
        };
        for row in new_rows.iter().filter(is_journaled) {
            if let Some((to, (step, start))) = moves.get_mut(&row.value_range.counter_id) {
                let is_counted = row.step == *step && row.value_range.first > *start;
                to.journaled += if is_counted { row.count } else { 0 };
            }
        }
        Ok(moves.into_values().map(|(to, _)| to).collect())
    }

    /// Notes what was committed: a ledger that shows less from now on has gone back. Returns the
    /// numbers that were taken without a reservation.
    pub(super) fn remember(&self, store: &Store, verdicts: &[Verdict]) -> Vec<Sighting> {
        let is_written = |place: usize| verdicts[place] == Verdict::Written;
        if !(0..self.entries.len()).any(is_written) {
            return Vec::new();
        }
        let is_journaled = |place: &usize| is_written(*place) && !self.holds.contains_key(place);
        let journaled: Vec<usize> = (0..self.entries.len()).filter(is_journaled).collect();
        let last = journaled.last().map(|place| ConfirmedNumber::of(&self.entries[*place]));
        let values = self.counters.iter().map(|(name, working)| (name.clone(), working.value));
        let mut takes = store.last_seen.takes();
        takes.note(self.at.partition, values, last);
        if !(self.holds.is_empty() && self.reissued.is_empty()) {
            for (name, working) in &self.counters {
                let reissued = working.counter.reissued + working.reissued;
                takes.note_turn(CounterTurn { name: name.clone(), taken: working.value, reissued });
            }
        }
        // Texts are copied from here on, for which others need not wait.
        drop(takes);
        let seen = |place: usize| {
            let (turn, is_sole) = self.turns[place];
            let is_of_value = self.reissued.contains(&place);
            Some(Sighting::taken(&self.entries[place], turn, is_of_value)?.sole(is_sole))
        };
        journaled.into_iter().filter_map(seen).collect()
    }

    /// The answer to an order, once it is committed.
    pub(super) fn outcome(&self, planned: Planned, verdicts: &[Verdict]) -> TakeOutcome {
        let lost = |place| TakeOutcome::Collided { number: self.text_met(place) };
        planned.outcome(&self.entries, verdicts, (lost, |place| self.reservation(place)))
    }
}
