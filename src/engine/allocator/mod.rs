//! Takes numbers: coalesces waiting requests into flights to Redis or transactions of the ledger.
//!
//! One partition worker per partition is the only place where a number becomes *handed out*: its
//! records enter the journal queue before any waiting caller sees them (F11). The allocator itself
//! only checks a request, finds its worker, and waits for the answer.

mod acknowledgements;
mod already;
mod answers;
mod asking;
mod background_jobs;
mod by_hand;
mod cancellation;
mod catalog;
mod choice;
mod database_path;
mod day_turns;
mod drafted;
mod drafting;
mod earlier;
mod error;
mod handed_out;
mod headroom;
mod intake;
mod joining;
mod next_values;
mod order;
mod pending_request;
mod polls;
mod preview;
mod ranges;
mod readings;
mod redis_path;
mod replay;
mod reserving;
mod retry_policy;
mod scope;
mod snowflakes;
mod status;
mod strayed;
mod turns;
mod waiting;
mod worker;

pub use by_hand::{ReadByHand, SaidByHand};
pub use catalog::{Catalog, CatalogStamp, ServedSeries};
pub use error::{AllocError, NumberTaken, Unavailable};
pub use headroom::Headroom;
pub use next_values::next_numbers;
pub use order::{Hints, Issued, KEY_CHARS_MAX, NextValue, Preview, Request, check_key};
pub use readings::{Reading, ReadingError, Unread};
pub use reserving::BLOCK_TIME;
pub use status::WorkerView;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, RwLock};

use tokio::sync::{Semaphore, mpsc, oneshot};
use tokio::time::{Instant, timeout_at};

use crate::engine::node::{BACKOFF_MAX, Context, Use};
use crate::engine::sources::Sources;
use crate::ledger::{LedgerError, Stamps};
use crate::task::Task;
use answers::Reply;
use drafted::{Drafting, Purpose};
use error::{unavailable, unread};
use pending_request::{CheckedRequest, PendingRequest};
use polls::Polls;
use retry_policy::{Errand, attempt};
use snowflakes::Snowflakes;
use status::{SharedStatus, WorkerStatus};
use worker::PartitionWorker;

/// Hands out numbers. Cheap to clone.
#[derive(Clone)]
pub struct Allocator {
    shared: Arc<Shared>,
}

struct Shared {
    context: Arc<Context>,
    catalog: RwLock<Arc<Catalog>>,
    /// Held while series are read again.
    refreshing: tokio::sync::Mutex<()>,
    polls: Polls,
    workers: Vec<WorkerHandle>,
    snowflakes: Snowflakes,
    sources: Sources,
    stopping: AtomicBool,
}

/// How far workers came that were asked to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stopped {
    /// None of them hands over to the journal any more.
    pub are_ended: bool,
    /// Everything is journaled, and none leaves an outbox behind.
    pub are_drained: bool,
}

struct WorkerHandle {
    partition: u32,
    inbox: mpsc::UnboundedSender<PendingRequest>,
    places: Arc<Semaphore>,
    status: SharedStatus,
    task: Mutex<Option<Task>>,
}

impl Allocator {
    /// Starts one worker per partition. Series may ask these sources.
    #[must_use]
    pub fn start(context: Arc<Context>, catalog: Catalog, sources: Sources) -> Self {
        let workers = (0..context.deployment.partitions_total())
            .map(|partition| WorkerHandle::start(&context, partition))
            .collect();
        catalog.start_counting(&context);
        catalog.tell_unknown(&sources);
        let catalog = RwLock::new(Arc::new(catalog));
        let stopping = AtomicBool::new(false);
        let (refreshing, polls) = (tokio::sync::Mutex::default(), Polls::default());
        let snowflakes = Snowflakes::new(
            Arc::clone(&context.ledger),
            Arc::clone(&context.clock),
            Arc::clone(&context.membership),
            context.settings.snowflake,
            BACKOFF_MAX,
        );
        let shared =
            Shared { context, catalog, refreshing, polls, workers, snowflakes, sources, stopping };
        Allocator { shared: Arc::new(shared) }
    }

    /// Issues a number (or a range of `count`) for a request.
    ///
    /// Dropping the future gives the request up if it has not been sent yet; a number taken for it
    /// is journaled all the same.
    ///
    /// # Errors
    /// See [`AllocError`]; each shows whether a retry is useful and whether a number may have been
    /// taken.
    pub async fn issue(&self, request: Request) -> Result<Issued, AllocError> {
        self.issue_by(request, None).await
    }

    /// The same for a caller that waits no longer than until `by`.
    ///
    /// # Errors
    /// Those of [`Allocator::issue`].
    pub async fn issue_by(
        &self,
        request: Request,
        by: Option<Instant>,
    ) -> Result<Issued, AllocError> {
        self.issue_hinting(request, by, &Hints::default()).await
    }

    /// The same, where requests that come together share the hints of their refusals.
    ///
    /// # Errors
    /// Those of [`Allocator::issue`].
    pub async fn issue_hinting(
        &self,
        request: Request,
        by: Option<Instant>,
        hints: &Hints,
    ) -> Result<Issued, AllocError> {
        let began = Instant::now();
        let limit = began + self.shared.context.settings.time_limit;
        let by = by.map_or(limit, |by| by.min(limit));
        let answer = self.allocate(request.within_scope(), (began, by), hints).await;
        answers::count(&self.shared.context.metrics, began, &answer);
        answer
    }

    // Boxed, as few requests need it: room for it in the future of every request would be moved
    // with that, several times, for nothing.
    async fn allocate(
        &self,
        request: Request,
        (began, by): (Instant, Instant),
        hints: &Hints,
    ) -> Result<Issued, AllocError> {
        let drafted = match self.draft(&request, (began, by), (Purpose::Issue, hints)).await? {
            Drafting::Drafted(drafted) => drafted,
            Drafting::Answered(answer) => return answer,
        };
        let mut order = CheckedRequest::of(request, drafted, self.shared.context.clock.as_ref())?;
        if self.shared.stopping.load(Ordering::Acquire) {
            return Err(unavailable(Unavailable::Stopping, NumberTaken::No));
        }
        if order.reserve_us.is_some() && self.is_full_of_reservations(&order) {
            return Box::pin(self.earlier(&order, by)).await?.unwrap_or_else(|| {
                Err(unavailable(Unavailable::ReservationsFull, NumberTaken::No))
            });
        }
        if let Some(closed) = order.closed.clone() {
            return Box::pin(self.earlier(&order, by)).await?.unwrap_or(Err(closed.into()));
        }
        if order.asking.is_some()
            && let Some(answer) = Box::pin(self.earlier(&order, by)).await?
        {
            return answer;
        }
        if order.reserve_us.is_some() {
            Box::pin(self.learn_unreserved(by)).await?;
        }
        let partition = order.served.version.partition;
        let worker = &self.shared.workers[partition as usize];
        let is_durable = order.is_durable();
        if let Some(why) = worker.refuses(&self.shared.context, is_durable)
            && (why != Unavailable::Ledger || Box::pin(self.is_without_ledger(Use::Write)).await)
        {
            return Err(unavailable(why, NumberTaken::No));
        }
        let Ok(place) = Arc::clone(&worker.places).try_acquire_owned() else {
            return Err(unavailable(Unavailable::QueueFull, NumberTaken::No));
        };
        if order.asking.is_some() {
            Box::pin(self.complete(&mut order, by)).await?;
        }
        if order.snowflake.is_some() {
            let id = timeout_at(by, Box::pin(self.shared.snowflakes.draw())).await;
            let id = id.map_err(|_| self.timed_out(None, NumberTaken::No))?;
            order.put_snowflake(id.map_err(|why| unavailable(why, NumberTaken::No))?);
        }
        let (reply, answer) = oneshot::channel();
        let pending = PendingRequest::of(order, Reply::Number(reply), place);
        self.serve(worker, pending, answer, (is_durable, by)).await
    }

    /// Asks the worker of another series for the number that it has of a request, if it has one.
    async fn ask(
        &self,
        question: CheckedRequest,
        by: Instant,
    ) -> Result<Option<Issued>, AllocError> {
        let worker = &self.shared.workers[question.served.version.partition as usize];
        let Ok(place) = Arc::clone(&worker.places).try_acquire_owned() else {
            return Err(unavailable(Unavailable::QueueFull, NumberTaken::No));
        };
        let (reply, answer) = oneshot::channel();
        let pending = PendingRequest::of(question, Reply::Found(reply), place);
        self.serve(worker, pending, answer, (false, by)).await
    }

    /// The earlier number of a request that gets no new one, as far as the journal has it: a retry
    /// is safe after a period was closed, too.
    async fn earlier(
        &self,
        order: &CheckedRequest,
        by: Instant,
    ) -> Result<Option<Result<Issued, AllocError>>, AllocError> {
        let context = &self.shared.context;
        if Box::pin(self.is_without_ledger(Use::Read)).await {
            return Err(unavailable(Unavailable::Ledger, NumberTaken::No));
        }
        let question = order.question(context.windows_ago_us(1));
        let (asked_at, node) = (Instant::now(), context.membership.node());
        // A separate task while it waits for a permit of questions; it continues when its caller
        // leaves.
        let own = Arc::clone(context);
        let looking = tokio::spawn(async move {
            let ledger = Arc::clone(&own.ledger);
            let asking = async move { ledger.replays(&[question]).await };
            attempt(&own, Errand::Question, asking).await
        });
        let found = timeout_at(by, looking).await;
        let found = found.map_err(|_| self.timed_out(None, NumberTaken::No))?;
        let found = found.expect("a look-up does not panic").map_err(|error| unread(&error))?;
        let slept = context.membership.must_not_have_slept(asked_at, node).await;
        slept.map_err(|error| unread(&error))?;
        Ok(found.into_iter().next().and_then(|found| replay::judge(order, found)))
    }

    /// Whether the ledger is known not to be fit for something, and is not just back.
    async fn is_without_ledger(&self, what: Use) -> bool {
        self.shared.context.membership.availability().still_lacks(what).await
    }

    /// The series, compiled.
    #[must_use]
    pub fn catalog(&self) -> Arc<Catalog> {
        Arc::clone(&self.shared.catalog.read().expect("no holder of this lock panics"))
    }

    /// Reads the series again where any has changed, and puts them in place as a whole; requests
    /// that were checked before keep theirs. Must not be cancelled: it asks the ledger.
    ///
    /// # Errors
    /// A ledger that does not answer; what was there before stays.
    pub async fn refresh_catalog(&self) -> Result<(), LedgerError> {
        let stamps = self.shared.context.ledger.stamps().await?;
        self.refresh_catalog_to(stamps).await
    }

    /// The same, where the stamps of the ledger were just read.
    ///
    /// # Errors
    /// A ledger that does not answer; the last catalog stays.
    pub async fn refresh_catalog_to(&self, stamps: Stamps) -> Result<(), LedgerError> {
        self.shared.context.membership.availability().hear();
        // One after the other: what was read earlier never replaces what was read later.
        let _turn = self.shared.refreshing.lock().await;
        let ledger = &self.shared.context.ledger;
        if CatalogStamp::of(stamps) == self.catalog().stamp() {
            return Ok(());
        }
        let catalog = Arc::new(Catalog::load(ledger).await?);
        catalog.start_counting(&self.shared.context);
        catalog.tell_unknown(&self.shared.sources);
        *self.shared.catalog.write().expect("no holder of this lock panics") = catalog;
        Ok(())
    }

    /// The worker of each partition; that of gapless series comes last.
    #[must_use]
    pub fn workers(&self) -> Vec<WorkerView> {
        self.shared.workers.iter().map(|worker| worker.view(&self.shared.context)).collect()
    }

    /// Refuses new requests, lets waiting ones finish and their records be committed; waits no
    /// longer than until `by`.
    pub async fn stop(&self, by: Instant) -> Stopped {
        self.shared.stopping.store(true, Ordering::Release);
        let take = |worker: &WorkerHandle| worker.task.lock().expect("not poisoned").take();
        let tasks: Vec<Task> = self.shared.workers.iter().filter_map(take).collect();
        tasks.iter().for_each(|task| task.request_stop(by));
        let mut are_ended = true;
        for task in tasks {
            are_ended &= task.stop(by).await;
        }
        let shared = Arc::clone(&self.shared);
        let returned = tokio::spawn(async move { shared.snowflakes.stop().await });
        // Only the wait is bounded: a lease that is not returned expires.
        let _ = timeout_at(by, returned).await;
        let is_drained =
            |worker: &WorkerHandle| worker.status.lock().expect("not poisoned").drained;
        Stopped { are_ended, are_drained: are_ended && self.shared.workers.iter().all(is_drained) }
    }
}

impl WorkerHandle {
    fn start(context: &Arc<Context>, partition: u32) -> Self {
        let (inbox, requests) = mpsc::unbounded_channel();
        let status = Arc::new(Mutex::new(WorkerStatus::default()));
        let worker =
            PartitionWorker::new(Arc::clone(context), partition, requests, Arc::clone(&status));
        WorkerHandle {
            partition,
            inbox,
            places: Arc::new(Semaphore::new(context.settings.queue_max)),
            status,
            task: Mutex::new(Some(Task::start("partition worker", |stop| worker.run(stop)))),
        }
    }

    fn view(&self, context: &Context) -> WorkerView {
        let queue_length = context.settings.queue_max - self.places.available_permits();
        self.status().view(context, self.partition, queue_length)
    }

    /// Why nothing that is sent here now would be served: a store is known to be away. Costs next
    /// to nothing while all is well.
    fn refuses(&self, context: &Context, is_durable: bool) -> Option<Unavailable> {
        let cannot_commit = context.membership.availability().lacks(Use::Write);
        if !cannot_commit && context.redis_health.is_whole() {
            return None;
        }
        let standing = self.status().standing;
        match standing {
            "redis" if context.is_cut_off(self.partition) => Some(Unavailable::Redis),
            // What Redis takes continues below the ceilings; what waits for its commit does not.
            "redis" => (cannot_commit && is_durable).then_some(Unavailable::Ledger),
            // Its state shows it already.
            "held" => None,
            _ => cannot_commit.then_some(Unavailable::Ledger),
        }
    }

    /// What keeps the worker from issuing, by its own report.
    fn trouble(&self) -> Option<Unavailable> {
        self.status().trouble
    }

    fn status(&self) -> std::sync::MutexGuard<'_, WorkerStatus> {
        self.status.lock().expect("no holder of this lock panics")
    }
}
