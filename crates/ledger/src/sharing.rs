//! What lines have in common: each once, in the order in which they come. The journal's rows point
//! to it.

use std::collections::HashMap;
use std::hash::Hash;

use super::line::Line;
use super::seal::{Sealed, Writing};

/// What rows of one type and project have in common under one version of a series.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Kind<'l> {
    pub(super) series_id: i64,
    pub(super) version: i32,
    pub(super) type_code: &'l str,
    pub(super) project: Option<&'l str>,
}

/// Who took the values of rows of one commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Batch {
    pub(super) partition_id: i32,
    pub(super) epoch: i64,
}

/// Where a line's part of it stands.
#[derive(Clone, Copy, Debug)]
pub(super) struct Places {
    pub(super) user: usize,
    pub(super) address: Option<usize>,
    pub(super) kind: usize,
    pub(super) batch: usize,
}

/// What some lines have in common.
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
    pub(super) fn of(lines: &'l [&Line<'_>]) -> Self {
        let mut shared = Shared::default();
        for line in lines {
            let &Line { series_id, version, type_code, project, partition_id, epoch, .. } = *line;
            let places = Places {
                user: shared.names.place(line.user_id),
                address: line.ip_address.map(|address| shared.names.place(address)),
                kind: shared.kinds.place(Kind { series_id, version, type_code, project }),
                batch: shared.batches.place(Batch { partition_id, epoch }),
            };
            shared.places.push(places);
        }
        shared
    }

    /// What each batch says about these lines, in the order of the batches.
    pub(super) fn seal(&self, lines: &[&Line<'_>], writing: &Writing) -> Vec<Sealed> {
        let mut of_batch: Vec<Vec<&Line<'_>>> = vec![Vec::new(); self.batches.values.len()];
        for (line, places) in lines.iter().zip(&self.places) {
            of_batch[places.batch].push(line);
        }
        let batches = self.batches.values.iter().zip(of_batch);
        batches.map(|(batch, lines)| Sealed::of(*batch, lines, writing)).collect()
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
    /// The place of a value, which is new or not.
    fn place(&mut self, value: T) -> usize {
        // Neighbours are mostly alike.
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
