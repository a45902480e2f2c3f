//! Worker threads with a shared queue, and the permits to enter it.
//!
//! Two lanes: interactive inputs precede bulk inputs (ingest), but at least every n-th batch is bulk. A free worker
//! takes the waiting inputs as one batch; there is no timer. Bulk batches are limited in time, because a query that
//! arrives meanwhile waits for their end. A worker may also let queries pass between the steps of a bulk batch: one input
//! of a large model takes longer than a query should wait. `watch` replaces workers that don't finish. The pool is generic
//! over its workers; `encoders` runs encoders on it.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};
use tracing::Span;

use crate::Cause;
use crate::batch::Limits;

mod desk;
mod encoders;
mod pace;
mod watch;
mod worker;

use desk::Post;
pub use encoders::EncoderWorker;
use pace::Pace;
pub use watch::MOST_REPLACED;

/// Processes batches of inputs; each worker of a pool has its own thread. A clone shares the weights: it takes the place
/// of a worker that got stuck.
pub trait Worker: Clone + Send + 'static {
    /// One input.
    type Input: Send + 'static;
    /// The result for one input.
    type Output: Send + 'static;
    /// The error for one input.
    type Error: From<PoolError> + Clone + Send + 'static;

    /// Name of what it runs. Its thread has this name and a number.
    fn name(&self) -> String;

    /// The cost of `input`, as [`Limits`] counts it.
    fn cost(&self, input: &Self::Input) -> usize;

    /// Processes a batch; one output per input, in order. Calls `pause` wherever a long batch may be interrupted: other
    /// batches then run on a clone of this worker before the call returns.
    ///
    /// # Errors
    /// If the batch failed as a whole.
    fn run(&mut self, batch: &[Self::Input], pause: &dyn Fn()) -> Result<Vec<Self::Output>, Self::Error>;

    /// Refuses a faulty output.
    ///
    /// # Errors
    /// The reason.
    fn check(&self, input: &Self::Input, output: Self::Output) -> Result<Self::Output, Self::Error>;

    /// Whether an input caused the error; the pool then runs each input of the batch alone.
    fn is_inputs_fault(error: &Self::Error) -> bool;
}

/// Why the pool gave no output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PoolError {
    /// The pool has admitted as many requests as it may.
    Overloaded {
        /// The most requests.
        capacity: usize,
    },
    /// The pool takes no new work.
    Closed,
    /// A worker did not finish its batch in time.
    Stuck {
        /// The limit, in seconds.
        seconds: u64,
    },
    /// A worker panicked, or gave another number of outputs than it got inputs.
    Failed(Cause),
}

/// The right of one request to queue inputs. Its jobs hold it, not its caller. A clone shares the request's place.
#[derive(Debug, Clone)]
pub struct Permit {
    /// Released when the request's last job has run or has left the queue, and the last clone is dropped.
    _place: Arc<OwnedSemaphorePermit>,
}

/// Sizes of a pool.
#[derive(Debug, Clone, Copy)]
pub struct Settings {
    /// Limits of one forward pass.
    pub limits: Limits,
    /// Largest number of requests admitted at once.
    pub requests: usize,
    /// Largest number of bulk inputs in the queue; further callers wait.
    pub bulk_waiting: usize,
    /// At least every n-th batch is bulk work while there is any; 0 counts as 1.
    pub bulk_every: usize,
    /// Longest duration of a bulk batch, estimated from earlier ones: a query that arrives meanwhile waits for its end, or
    /// for the worker's next pause. A single input may take longer.
    pub bulk_time: Duration,
    /// Longest run of a batch, beside a tenth of a second for each unit of its cost. Its callers then get
    /// [`PoolError::Stuck`], and another worker takes the place of the stuck one.
    pub stuck_after: Duration,
}

impl Default for Settings {
    /// Batches of up to 32 inputs and 16,384 tokens, 64 requests, 64 waiting bulk inputs. Every fourth batch is bulk
    /// and takes at most half a second. A worker is stuck after two minutes.
    fn default() -> Self {
        let limits = Limits { inputs: 32, cost: 16_384 };
        let bulk_time = Duration::from_millis(500);
        let stuck_after = Duration::from_secs(120);
        Settings { limits, requests: 64, bulk_waiting: 64, bulk_every: 4, bulk_time, stuck_after }
    }
}

/// The queue of an input.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Lane {
    /// A request waits for the result.
    Interactive,
    /// Ingest; no request waits.
    Bulk,
}

/// Measurements of one finished batch.
#[derive(Debug, Clone)]
pub struct BatchReport {
    /// The lane of the batch's inputs.
    pub lane: Lane,
    /// Waiting time of each input until the batch started.
    pub waited: Vec<Duration>,
    /// Duration of the forward pass, retries included, but without the queries that passed it.
    pub encoding: Duration,
    /// Inputs that got an error.
    pub failed: usize,
}

/// Sums over all batches so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Stats {
    /// Finished batches.
    pub batches: u64,
    /// Inputs in them.
    pub inputs: u64,
    /// Inputs that got an error.
    pub failed: u64,
    /// Total waiting time of all inputs.
    pub waited: Duration,
    /// Total duration of all forward passes.
    pub encoding: Duration,
}

/// Runs workers on their own threads, each one batch at a time. Cheap to clone.
///
/// After the last clone is dropped, the threads finish the queue and end.
pub struct Pool<W: Worker = EncoderWorker> {
    handle: Arc<Handle<W>>,
}

impl<W: Worker> Clone for Pool<W> {
    fn clone(&self) -> Self {
        Pool { handle: Arc::clone(&self.handle) }
    }
}

/// State that all clones of a pool share; its drop closes the queue.
struct Handle<W: Worker> {
    shared: Arc<Shared<W>>,
    requests: Arc<Semaphore>,
    bulk_room: Arc<Semaphore>,
    settings: Settings,
    name: String,
}

/// State that the pool and its threads share.
struct Shared<W: Worker> {
    queue: Mutex<Queue<W>>,
    work: Condvar,
    settings: Settings,
    stats: Mutex<Stats>,
    /// Pace of bulk batches.
    pace: Mutex<Pace>,
    observer: OnceLock<Observer>,
    /// The running threads; lowered with the queue locked.
    alive: AtomicUsize,
    /// A thread ended.
    ended: Condvar,
    posts: Mutex<Vec<Post<W>>>,
    abandoned: AtomicUsize,
}

type Observer = Box<dyn Fn(&BatchReport) + Send + Sync>;

struct Queue<W: Worker> {
    interactive: VecDeque<Job<W>>,
    bulk: VecDeque<Job<W>>,
    /// Interactive batches since the last bulk batch, counted while bulk work waits.
    passed_over: usize,
    closed: bool,
}

impl<W: Worker> Default for Queue<W> {
    fn default() -> Self {
        Queue { interactive: VecDeque::new(), bulk: VecDeque::new(), passed_over: 0, closed: false }
    }
}

struct Job<W: Worker> {
    input: W::Input,
    reply: oneshot::Sender<Result<W::Output, W::Error>>,
    since: Instant,
    /// Held while the job is queued or running; a caller that disconnects does not release it early.
    permit: Option<Arc<Permit>>,
    /// Bulk only: the place in the queue, released when the job leaves it.
    room: Option<OwnedSemaphorePermit>,
    /// The span of the call, which learns the size of the batch.
    span: Span,
}

impl<W: Worker> Pool<W> {
    /// Starts one thread per worker; all workers must give the same output for an input.
    ///
    /// Without a worker, or if no thread starts, the pool is closed at once.
    pub fn start(workers: Vec<W>, settings: Settings) -> Pool<W> {
        let shared = Arc::new(Shared {
            queue: Mutex::default(),
            work: Condvar::new(),
            settings,
            stats: Mutex::default(),
            pace: Mutex::default(),
            observer: OnceLock::new(),
            alive: AtomicUsize::new(0),
            ended: Condvar::new(),
            posts: Mutex::default(),
            abandoned: AtomicUsize::new(0),
        });
        let name = workers.first().map(Worker::name).unwrap_or_default();
        worker::start(workers, &shared);
        watch::start(&shared);
        let handle = Handle {
            requests: Arc::new(Semaphore::new(settings.requests.min(Semaphore::MAX_PERMITS))),
            bulk_room: Arc::new(Semaphore::new(settings.bulk_waiting.clamp(1, Semaphore::MAX_PERMITS))),
            settings,
            name,
            shared,
        };
        if handle.shared.alive.load(Ordering::SeqCst) == 0 {
            handle.stop_taking();
        }
        Pool { handle: Arc::new(handle) }
    }

    /// Admits one request, or fails at once if the pool is full.
    ///
    /// # Errors
    /// [`PoolError::Overloaded`] if `Settings::requests` requests are in the pool, [`PoolError::Closed`] after
    /// [`Pool::close`].
    pub fn admit(&self) -> Result<Permit, W::Error> {
        if lock(&self.handle.shared.queue).closed {
            return Err(PoolError::Closed.into());
        }
        match Arc::clone(&self.handle.requests).try_acquire_owned() {
            Ok(place) => Ok(Permit { _place: Arc::new(place) }),
            Err(_) => Err(PoolError::Overloaded { capacity: self.handle.settings.requests }.into()),
        }
    }

    /// Runs the inputs of one admitted request ahead of bulk work. Returns outputs in order.
    ///
    /// Dropping the future removes its waiting inputs from the queue. Running inputs finish and keep the permit until
    /// then.
    ///
    /// # Errors
    /// The error of the first failed input; [`PoolError::Closed`] after [`Pool::close`].
    pub async fn run(&self, permit: Permit, inputs: Vec<W::Input>) -> Result<Vec<W::Output>, W::Error> {
        let permit = Arc::new(permit);
        let jobs = inputs.into_iter().map(|input| job::<W>(input, Some(Arc::clone(&permit)), None));
        let (jobs, replies) = jobs.unzip();
        drop(permit);
        // All at once, so that the inputs of one request share a batch.
        self.handle.shared.push(Lane::Interactive, jobs)?;
        collect::<W>(replies).await
    }

    /// Runs bulk inputs; waits for room in the queue. Returns outputs in order.
    ///
    /// # Errors
    /// As [`Pool::run`]. A call that still waits for room fails when the pool closes.
    pub async fn run_bulk(&self, inputs: Vec<W::Input>) -> Result<Vec<W::Output>, W::Error> {
        let mut replies = Vec::with_capacity(inputs.len());
        for input in inputs {
            let room = Arc::clone(&self.handle.bulk_room).acquire_owned().await;
            let room = room.map_err(|_| PoolError::Closed)?;
            let (job, reply) = job::<W>(input, None, Some(room));
            self.handle.shared.push(Lane::Bulk, vec![job])?;
            replies.push(reply);
        }
        collect::<W>(replies).await
    }

    /// Refuses new work, finishes the queue and ends the threads, but for abandoned ones. Blocks.
    pub fn close(&self) {
        self.handle.stop_taking();
        watch::wait_for_end(&self.handle.shared);
    }

    /// Cost of an input, as [`Limits`] counts it. `None` if no worker is left.
    pub fn cost(&self, input: &W::Input) -> Option<usize> {
        lock(&self.handle.shared.posts).first().map(|post| post.spare.cost(input))
    }

    /// Waiting inputs: (interactive, bulk).
    pub fn waiting(&self) -> (usize, usize) {
        let queue = lock(&self.handle.shared.queue);
        (queue.interactive.len(), queue.bulk.len())
    }

    /// Whether a worker thread is alive.
    pub fn alive(&self) -> bool {
        self.handle.shared.alive.load(Ordering::SeqCst) > 0
    }

    /// Name of what the workers run.
    fn name(&self) -> &str {
        &self.handle.name
    }

    /// Threads that did not finish a batch in time and were abandoned, so far. A thread that is abandoned never comes
    /// back; it keeps its memory, and perhaps a core, until the process ends.
    pub fn abandoned(&self) -> usize {
        self.handle.shared.abandoned.load(Ordering::SeqCst)
    }

    /// Sums over all batches so far.
    pub fn stats(&self) -> Stats {
        *lock(&self.handle.shared.stats)
    }

    /// Calls `observer` on the worker's thread after each finished batch, before callers get their answers. Only the first
    /// observer counts; returns whether this was the first.
    pub fn observe(&self, observer: impl Fn(&BatchReport) + Send + Sync + 'static) -> bool {
        self.handle.shared.observer.set(Box::new(observer)).is_ok()
    }
}

impl<W: Worker> Handle<W> {
    fn stop_taking(&self) {
        lock(&self.shared.queue).closed = true;
        self.bulk_room.close();
        self.shared.work.notify_all();
    }
}

impl<W: Worker> Drop for Handle<W> {
    /// Does not join: the last clone may be dropped on a thread that must not block.
    fn drop(&mut self) {
        self.stop_taking();
    }
}

impl<W: Worker> Shared<W> {
    fn push(&self, lane: Lane, jobs: Vec<Job<W>>) -> Result<(), PoolError> {
        let mut queue = lock(&self.queue);
        if queue.closed {
            return Err(PoolError::Closed);
        }
        match lane {
            Lane::Interactive => queue.interactive.extend(jobs),
            Lane::Bulk => queue.bulk.extend(jobs),
        }
        drop(queue);
        self.work.notify_one();
        Ok(())
    }
}

type Reply<W> = oneshot::Receiver<Result<<W as Worker>::Output, <W as Worker>::Error>>;

fn job<W: Worker>(
    input: W::Input,
    permit: Option<Arc<Permit>>,
    room: Option<OwnedSemaphorePermit>,
) -> (Job<W>, Reply<W>) {
    let (sender, reply) = oneshot::channel();
    (Job { input, reply: sender, since: Instant::now(), permit, room, span: Span::current() }, reply)
}

/// A job dropped without an answer means that the pool's last thread ended.
async fn collect<W: Worker>(replies: Vec<Reply<W>>) -> Result<Vec<W::Output>, W::Error> {
    let mut outputs = Vec::with_capacity(replies.len());
    for reply in replies {
        outputs.push(reply.await.map_err(|_| PoolError::Closed)??);
    }
    Ok(outputs)
}

/// Ignores poisoning: no statement leaves the guarded values inconsistent.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
