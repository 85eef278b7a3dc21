//! A call to the ledger: its connections, its time limit, and its counting. Owns no statement.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{Either, select};
use tokio::time::Instant;

use crate::call_timeout::CallTimeout;
use crate::connections::Share;
use crate::dialect::Reader;
use crate::store::Store;
use crate::{Ledger, LedgerError};

/// Kind of a call, as its users may watch it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Call {
    share: Share,
    call_timeout: CallTimeout,
    /// Its name in the metrics; `None`: it is not counted.
    kind: Option<&'static str>,
}

/// A few statements, on the connections that all calls share.
pub(crate) const CALL: Call =
    Call { share: Share::Common, call_timeout: CallTimeout::Call, kind: Some("other") };

/// Work that may search through all values of a counter, or write to all counters.
pub(crate) const SEARCH: Call = Call { call_timeout: CallTimeout::Search, ..CALL };

/// Work that reads the whole journal.
pub(crate) const WALK: Call = Call { call_timeout: CallTimeout::Walk, ..CALL };

/// A noun of the ledger: a type with all methods of its subject, the ledger's method that gives it,
/// and the kinds of calls that it makes.
macro_rules! noun {
    ($(#[$doc:meta])* $kind:ident, $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy)]
        pub struct $kind<'a>(pub(crate) &'a $crate::Ledger);

        impl $crate::Ledger {
            $(#[$doc])*
            #[must_use]
            pub fn $name(&self) -> $kind<'_> {
                $kind(self)
            }
        }

        #[allow(dead_code, reason = "not every noun makes calls of each kind")]
        impl $kind<'_> {
            pub(crate) async fn read<T>(
                self,
                work: impl AsyncFnOnce(&$crate::dialect::Reader) -> Result<T, $crate::LedgerError>,
            ) -> Result<T, $crate::LedgerError> {
                self.0.read(work).await
            }

            pub(crate) async fn write<T>(
                self,
                work: impl AsyncFnOnce(&$crate::store::Store) -> Result<T, $crate::LedgerError>,
            ) -> Result<T, $crate::LedgerError> {
                self.0.write(work).await
            }

            pub(crate) async fn search<T>(
                self,
                work: impl AsyncFnOnce(&$crate::store::Store) -> Result<T, $crate::LedgerError>,
            ) -> Result<T, $crate::LedgerError> {
                self.0.search(work).await
            }

            pub(crate) async fn call<T>(
                self,
                call: $crate::calls::Call,
                work: impl AsyncFnOnce(&$crate::store::Store) -> Result<T, $crate::LedgerError>,
            ) -> Result<T, $crate::LedgerError> {
                self.0.call(call, work).await
            }
        }
    };
}

pub(crate) use noun;

impl Call {
    /// The same on others' connections.
    pub(crate) const fn of(self, share: Share) -> Self {
        Call { share, ..self }
    }

    /// The same, watched apart.
    pub(crate) const fn named(self, kind: &'static str) -> Self {
        Call { kind: Some(kind), ..self }
    }

    /// The same for automatic repeated calls, which are not watched.
    pub(crate) const fn uncounted(self) -> Self {
        Call { kind: None, ..self }
    }
}

impl Ledger {
    /// The current connections, with what statements need.
    pub(crate) fn store(&self, share: Share) -> Arc<Store> {
        self.0.store(share)
    }

    /// A call of a few statements that write nothing.
    ///
    /// # Errors
    /// Those of [`Ledger::call`], here and below.
    pub(crate) async fn read<T>(
        &self,
        work: impl AsyncFnOnce(&Reader) -> Result<T, LedgerError>,
    ) -> Result<T, LedgerError> {
        self.call_on(CALL, |store| &store.reader, work).await
    }

    /// A call of a few statements, mostly one transaction.
    pub(crate) async fn write<T>(
        &self,
        work: impl AsyncFnOnce(&Store) -> Result<T, LedgerError>,
    ) -> Result<T, LedgerError> {
        self.call(CALL, work).await
    }

    /// A call that may search through all values of a counter, or write to all counters.
    pub(crate) async fn search<T>(
        &self,
        work: impl AsyncFnOnce(&Store) -> Result<T, LedgerError>,
    ) -> Result<T, LedgerError> {
        self.call(SEARCH, work).await
    }

    /// Works on the engine's connections of now, within a call's time, and counts it.
    ///
    /// # Errors
    /// Those of the work; `Unreachable` after its time, when it may have written.
    pub(crate) async fn call<T>(
        &self,
        call: Call,
        work: impl AsyncFnOnce(&Store) -> Result<T, LedgerError>,
    ) -> Result<T, LedgerError> {
        self.call_on(call, |store| store, work).await
    }

    /// The same on a part of the store.
    async fn call_on<P, T>(
        &self,
        call: Call,
        part: fn(&Store) -> &P,
        work: impl AsyncFnOnce(&P) -> Result<T, LedgerError>,
    ) -> Result<T, LedgerError> {
        let store = self.0.store(call.share);
        let started = Instant::now();
        // Boxed: the state of a call between its statements is no part of its callers.
        let work = Box::pin(work(part(&store)));
        // The work first: an answer that came counts, however late.
        let outcome = match select(work, self.0.is_late(&store, call.call_timeout)).await {
            Either::Left((outcome, _)) => outcome,
            Either::Right(((), _unfinished)) => {
                // Before the work is dropped: its connection must not go back to a living pool.
                self.0.give_up(&store, "the ledger does not answer");
                Err(no_answer())
            }
        };
        self.note(&store, call, started.elapsed(), outcome.as_ref().err());
        outcome
    }

    /// Notes how a call ended. No part of [`Ledger::call_on`], which is compiled for each work.
    fn note(&self, store: &Arc<Store>, call: Call, took: Duration, error: Option<&LedgerError>) {
        if error.is_some_and(LedgerError::is_of_outdated_query) {
            self.0.give_up(store, "the schema has changed");
        }
        if matches!(error, Some(LedgerError::Fault(_))) {
            store.faults().notify_one();
        }
        let Some(kind) = call.kind else { return };
        store.meter.count(kind, took, error.map(LedgerError::reason));
        store.call_failures.note(kind, error);
        if matches!(call.call_timeout, CallTimeout::Call) {
            store.slow.note(kind, took, error);
        }
    }

    /// Whether the ledger accepts a connection now. One try: the connections that calls use wait
    /// longer between two.
    pub async fn knock(&self) -> bool {
        self.0.knock().await
    }
}

fn no_answer() -> LedgerError {
    LedgerError::Unreachable { cause: "no answer in time".to_owned(), maybe_written: true }
}
