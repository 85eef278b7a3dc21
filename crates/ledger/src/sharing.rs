//! The common parts of lines: each once, in order of appearance. The journal's rows point to it.

use std::collections::HashMap;
use std::hash::Hash;

use super::new_row::NewRow;
use super::seal::{Sealed, Writing};

/// The common part of rows of one type and project under one version of a series.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Kind<'l> {
    pub(super) series_id: i64,
    pub(super) version: i32,
    pub(super) type_code: &'l str,
    pub(super) project: Option<&'l str>,
}

/// The partition and the epoch in which the values of rows of one commit were taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Batch {
    pub(super) partition_id: i32,
    pub(super) epoch: i64,
}

/// The places of a line's parts in it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Places {
    pub(super) user: usize,
    pub(super) address: Option<usize>,
    pub(super) kind: usize,
    pub(super) batch: usize,
}

/// The common parts of some lines.
#[derive(Debug, Default)]
pub(super) struct Shared<'l> {
    /// Users and addresses.
    pub(super) names: Distinct<&'l str>,
    pub(super) kinds: Distinct<Kind<'l>>,
    pub(super) batches: Distinct<Batch>,
    /// Of each line.
    pub(super) places: Vec<Places>,
}

impl<'l> Shared<'l> {
    /// Of these lines.
    pub(super) fn of(new_rows: &'l [&NewRow<'_>]) -> Self {
        let mut shared = Shared::default();
        for new_row in new_rows {
            let &NewRow { series_id, version, type_code, project, partition_id, epoch, .. } =
                *new_row;
            let places = Places {
                user: shared.names.place(new_row.user_id),
                address: new_row.ip_address.map(|address| shared.names.place(address)),
                kind: shared.kinds.place(Kind { series_id, version, type_code, project }),
                batch: shared.batches.place(Batch { partition_id, epoch }),
            };
            shared.places.push(places);
        }
        shared
    }

    /// The seal of each batch of these lines, in the order of the batches.
    pub(super) fn seal(&self, new_rows: &[&NewRow<'_>], writing: &Writing) -> Vec<Sealed> {
        let mut of_batch: Vec<Vec<&NewRow<'_>>> = vec![Vec::new(); self.batches.values.len()];
        for (new_row, places) in new_rows.iter().zip(&self.places) {
            of_batch[places.batch].push(new_row);
        }
        let batches = self.batches.values.iter().zip(of_batch);
        batches.map(|(batch, new_rows)| Sealed::of(*batch, new_rows, writing)).collect()
    }
}

/// Values, each once.
#[derive(Debug)]
pub(super) struct Distinct<T> {
    values: Vec<T>,
    places: HashMap<T, usize>,
}

impl<T> Default for Distinct<T> {
    fn default() -> Self {
        Distinct { values: Vec::new(), places: HashMap::new() }
    }
}

impl<T: Copy + Eq + Hash> Distinct<T> {
    /// The place of a value, whether it is new or not.
    fn place(&mut self, value: T) -> usize {
        // Neighbours are mostly equal.
        if self.values.last() == Some(&value) {
            return self.values.len() - 1;
        }
        *self.places.entry(value).or_insert_with(|| {
            self.values.push(value);
            self.values.len() - 1
        })
    }

    /// One part of each value.
    pub(super) fn column<U>(&self, of: impl Fn(T) -> U) -> Vec<U> {
        self.values.iter().map(|value| of(*value)).collect()
    }
}
