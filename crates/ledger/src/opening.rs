//! Connections that are opened on the runtime that opened the ledger, on behalf of any caller.
//!
//! A driver registers sockets, and starts threads, where a connection is opened. A caller on
//! another runtime must leave none of these to that runtime: callers on others would wait for it.

use std::sync::Arc;

use async_trait::async_trait;
use sqlx::Error;
use tokio::runtime::{EnterGuard, Handle};
use tokio::task::JoinSet;
use tracing::Instrument as _;

use crate::connections::Connections;
use crate::dialect::{Acquired, Begin, Conn, Pool, Transaction};
use crate::incarnation::{Incarnation, Shown};
use crate::{Lack, LedgerCheckup, LedgerError};

/// A runtime that opens connections.
#[derive(Clone, Debug)]
pub(crate) struct Opener(Handle);

/// The runtime of the call.
impl Default for Opener {
    fn default() -> Self {
        Opener(Handle::current())
    }
}

impl Opener {
    /// Until the guard is dropped, pools are made for this runtime.
    pub(crate) fn enter(&self) -> EnterGuard<'_> {
        self.0.enter()
    }

    /// Runs work that may open a connection; dropping the caller ends it.
    async fn run<P, T, E, F>(&self, pool: &Arc<P>, opens: impl FnOnce(Arc<P>) -> F) -> Result<T, E>
    where
        P: ?Sized,
        T: Send + 'static,
        E: From<Error> + Send + 'static,
        F: Future<Output = Result<T, E>> + Send + 'static,
    {
        let opens = opens(Arc::clone(pool));
        if Handle::current().id() == self.0.id() {
            return opens.await;
        }
        let mut opening = JoinSet::new();
        opening.spawn_on(opens.in_current_span(), &self.0);
        match opening.join_next().await {
            Some(Ok(outcome)) => outcome,
            Some(Err(error)) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
            // The runtime has ended, and the ledger with it.
            _ => Err(Error::PoolClosed.into()),
        }
    }
}

/// Connections that an opener opens.
pub(crate) struct Opened {
    pub(crate) opener: Opener,
    pub(crate) pool: Arc<dyn Pool>,
}

#[async_trait]
impl Pool for Opened {
    fn connections(&self) -> Connections {
        self.pool.connections()
    }

    fn fails_over(&self) -> bool {
        self.pool.fails_over()
    }

    async fn acquire(&self) -> Result<Acquired, Error> {
        self.opener.run(&self.pool, |pool| async move { pool.acquire().await }).await
    }

    async fn begin(
        &self,
        required: Option<Incarnation>,
        begin: Begin,
    ) -> Result<Transaction, LedgerError> {
        let begins = |pool: Arc<dyn Pool>| async move { pool.begin(required, begin).await };
        self.opener.run(&self.pool, begins).await
    }

    async fn begin_together(&self) -> Result<Vec<Transaction>, LedgerError> {
        self.opener.run(&self.pool, |pool| async move { pool.begin_together().await }).await
    }

    async fn shown(&self, conn: &mut Conn) -> Result<Option<Shown>, LedgerError> {
        self.pool.shown(conn).await
    }

    async fn held_counters(
        &self,
        required: Incarnation,
        ids: &[i64],
    ) -> Result<Vec<i64>, LedgerError> {
        let ids = ids.to_vec();
        let looks = |pool: Arc<dyn Pool>| async move { pool.held_counters(required, &ids).await };
        self.opener.run(&self.pool, looks).await
    }

    async fn tidy(&self) {
        let tidies = |pool: Arc<dyn Pool>| async move {
            pool.tidy().await;
            Ok::<_, Error>(())
        };
        // Without a runtime there is nothing to tidy.
        let _ = self.opener.run(&self.pool, tidies).await;
    }

    async fn check_up(&self) -> Result<LedgerCheckup, LedgerError> {
        self.opener.run(&self.pool, |pool| async move { pool.check_up().await }).await
    }

    async fn lacks(&self) -> Result<Vec<Lack>, LedgerError> {
        self.opener.run(&self.pool, |pool| async move { pool.lacks().await }).await
    }

    async fn grant_roles(&self) -> Result<bool, LedgerError> {
        self.opener.run(&self.pool, |pool| async move { pool.grant_roles().await }).await
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::runtime::{Builder, Runtime};
    use tokio::sync::oneshot;

    use super::*;

    fn runtime() -> Runtime {
        Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("a thread")
    }

    fn opener_of(runtime: &Runtime) -> Opener {
        let _entered = runtime.enter();
        Opener::default()
    }

    #[test]
    fn connections_are_opened_on_the_runtime_of_the_ledger_whoever_asks() {
        let [own, other] = [runtime(), runtime()];
        let opener = opener_of(&own);
        let opened_on = async || {
            let opens = |_| async { Ok::<_, Error>(Handle::current().id()) };
            opener.run(&Arc::new(()), opens).await.expect("opened")
        };
        for asking in [&own, &other] {
            assert_eq!(asking.block_on(opened_on()), own.handle().id());
        }
    }

    #[test]
    fn a_caller_that_leaves_and_a_runtime_that_has_ended_open_nothing() {
        let [own, other] = [runtime(), runtime()];
        let opener = opener_of(&own);
        let (opened, is_gone) = oneshot::channel::<()>();
        let opens = |_| async move {
            let _opened = opened;
            std::future::pending::<Result<(), Error>>().await
        };
        other.block_on(async {
            let waited = Duration::from_millis(10);
            let pool = Arc::new(());
            let opening = opener.run(&pool, opens);
            assert!(tokio::time::timeout(waited, opening).await.is_err());
            assert!(is_gone.await.is_err(), "it is dropped");
        });
        own.shutdown_background();
        let opens = |_| async { Ok::<_, Error>(()) };
        let outcome = other.block_on(opener.run(&Arc::new(()), opens));
        assert!(matches!(outcome, Err(Error::PoolClosed)), "{outcome:?}");
    }
}
