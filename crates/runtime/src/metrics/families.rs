//! Handles of one metric by the values of its labels, looked up once.

use std::borrow::Borrow;
use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{PoisonError, RwLock};

/// Handles by the values of one label, all known at the start.
#[derive(Debug)]
pub struct Family<T>(Vec<(&'static str, T)>);

impl<T> Family<T> {
    /// A handle for each value.
    pub(super) fn new(
        values: impl IntoIterator<Item = &'static str>,
        make: impl Fn(&'static str) -> T,
    ) -> Self {
        Family(values.into_iter().map(|value| (value, make(value))).collect())
    }

    /// The handle of a value.
    ///
    /// # Panics
    /// When the value was not named at the start: labels are words of this program, never input.
    #[must_use]
    pub fn of(&self, value: &str) -> &T {
        let found = self.0.iter().find(|(known, _)| *known == value);
        &found.unwrap_or_else(|| panic!("{value} is not a value of the label")).1
    }
}

impl<T> Family<T> {
    /// Applies a function to every handle.
    pub(super) fn each(&self, mut with: impl FnMut(&'static str, &T)) {
        self.0.iter().for_each(|(value, handle)| with(value, handle));
    }
}

/// Handles by partition.
#[derive(Debug)]
pub struct ByPartition<T>(Vec<T>);

impl<T> ByPartition<T> {
    /// A handle for each partition.
    pub(super) fn new(partitions: u32, make: impl Fn(&str) -> T) -> Self {
        ByPartition((0..partitions).map(|partition| make(&partition.to_string())).collect())
    }

    /// The handle of a partition.
    #[must_use]
    pub fn of(&self, partition: u32) -> &T {
        &self.0[partition as usize]
    }
}

/// Handles that are made when their key first appears: keys are few, but not all of them appear.
#[derive(Debug)]
pub(super) struct Found<K, T>(RwLock<HashMap<K, T>>);

impl<K, T> Default for Found<K, T> {
    fn default() -> Self {
        Found(RwLock::default())
    }
}

impl<K: Eq + Hash, T: Clone> Found<K, T> {
    /// The handle of a key.
    pub(super) fn of<Q>(&self, key: &Q, make: impl FnOnce() -> T) -> T
    where
        K: Borrow<Q>,
        Q: ?Sized + Eq + Hash + ToOwned<Owned = K>,
    {
        let known = self.0.read().unwrap_or_else(PoisonError::into_inner).get(key).cloned();
        known.unwrap_or_else(|| {
            let mut all = self.0.write().unwrap_or_else(PoisonError::into_inner);
            all.entry(key.to_owned()).or_insert_with(make).clone()
        })
    }
}
