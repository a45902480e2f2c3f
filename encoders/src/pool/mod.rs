//! Worker threads with a common queue, and the permits to enter it.
//!
//! Two lanes: interactive inputs go before bulk inputs (ingest), but every n-th batch at the latest is bulk. There is no
//! timer: a free worker takes the waiting inputs as one batch. A bulk batch is bounded in time, because a query that
//! comes meanwhile waits for its end. The pool is generic over its workers; `encoders` makes one of encoders.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

use crate::Cause;
use crate::batch::Limits;

mod encoders;
mod pace;
mod worker;

pub use encoders::EncoderWorker;
use pace::Pace;

/// Works on batches of inputs; each worker of a pool has a thread of its own.
pub trait Worker: Send + 'static {
    /// What it takes.
    type Input: Send + 'static;
    /// What it makes of one input.
    type Output: Send + 'static;
    /// Why it made nothing of an input.
    type Error: From<PoolError> + Clone + Send + 'static;

    /// The name of its thread, without a number.
    fn name(&self) -> String;

    /// What `input` takes of a batch's budget.
    fn cost(&self, input: &Self::Input) -> usize;

    /// One output per input, in order.
    ///
    /// # Errors
    /// The batch failed as a whole.
    fn run(&mut self, batch: &[Self::Input]) -> Result<Vec<Self::Output>, Self::Error>;

    /// Refuses an output that its caller must not get.
    ///
    /// # Errors
    /// The reason.
    fn check(&self, input: &Self::Input, output: Self::Output) -> Result<Self::Output, Self::Error>;

    /// Whether an input of the batch is at fault; then each is run again by itself.
    fn is_inputs_fault(error: &Self::Error) -> bool;
}

/// Why the pool itself gave no output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PoolError {
    /// As many requests as may be are admitted.
    Overloaded {
        /// The places that there are.
        capacity: usize,
    },
    /// Nothing new is taken.
    Closed,
    /// A worker panicked, or gave another number of outputs than it got inputs.
    Failed(Cause),
}

/// The right of one request to have inputs in the queue; held by its jobs, not by its caller.
#[derive(Debug)]
pub struct Permit {
    /// Given back when the last job of the request has run or was dropped from the queue.
    _place: OwnedSemaphorePermit,
}

/// How a pool is sized.
#[derive(Debug, Clone, Copy)]
pub struct Settings {
    /// What one forward pass may hold.
    pub limits: Limits,
    /// How many requests may be admitted at once.
    pub requests: usize,
    /// How many bulk inputs may wait; further callers wait their turn.
    pub bulk_waiting: usize,
    /// At least every n-th batch is bulk work while there is any; 0 counts as 1.
    pub bulk_every: usize,
    /// How long a bulk batch should take at most, judged by those before it: a query that comes meanwhile waits for
    /// its end. A single input takes as long as it takes.
    pub bulk_time: Duration,
}

impl Default for Settings {
    /// Batches of up to 32 inputs and 16,384 tokens, 64 requests, 64 waiting bulk inputs, every
    /// fourth batch bulk, which takes no longer than half a second.
    fn default() -> Self {
        let limits = Limits { inputs: 32, cost: 16_384 };
        let bulk_time = Duration::from_millis(500);
        Settings { limits, requests: 64, bulk_waiting: 64, bulk_every: 4, bulk_time }
    }
}

/// Which queue an input waits in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Lane {
    /// Someone is waiting.
    Interactive,
    /// Ingest.
    Bulk,
}

/// What one finished batch took.
#[derive(Debug, Clone)]
pub struct BatchReport {
    /// Whose inputs they were.
    pub lane: Lane,
    /// How long each input had waited when the batch was cut.
    pub waited: Vec<Duration>,
    /// The forward pass, retries included.
    pub encoding: Duration,
    /// Inputs that got an error.
    pub failed: usize,
}

/// Sums over all batches so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Stats {
    /// Batches run.
    pub batches: u64,
    /// Inputs in them.
    pub inputs: u64,
    /// Inputs that got an error.
    pub failed: u64,
    /// Sum over inputs of the time in the queue.
    pub waited: Duration,
    /// Sum over batches of the time in the worker.
    pub encoding: Duration,
}

/// Runs workers on their own threads, one batch at a time each. Cheap to clone.
///
/// When the last clone is dropped, nothing new can come: the threads finish the queue and end.
pub struct Pool<W: Worker = EncoderWorker> {
    handle: Arc<Handle<W>>,
}

impl<W: Worker> Clone for Pool<W> {
    fn clone(&self) -> Self {
        Pool { handle: Arc::clone(&self.handle) }
    }
}

/// What all clones of a pool share; its drop closes the queue.
struct Handle<W: Worker> {
    shared: Arc<Shared<W>>,
    requests: Arc<Semaphore>,
    bulk_room: Arc<Semaphore>,
    settings: Settings,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

/// What the pool and its threads share.
struct Shared<W: Worker> {
    queue: Mutex<Queue<W>>,
    work: Condvar,
    settings: Settings,
    stats: Mutex<Stats>,
    /// Of bulk batches.
    pace: Mutex<Pace>,
    observer: OnceLock<Observer>,
    alive: AtomicUsize,
}

type Observer = Box<dyn Fn(&BatchReport) + Send + Sync>;

struct Queue<W: Worker> {
    interactive: VecDeque<Job<W>>,
    bulk: VecDeque<Job<W>>,
    /// Interactive batches cut since the last bulk batch, while bulk work was waiting.
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
    /// Held while the job is queued or running: a caller who hangs up does not free it early.
    permit: Option<Arc<Permit>>,
    /// Bulk only: the place in the queue, given back when the job leaves it.
    room: Option<OwnedSemaphorePermit>,
}

impl<W: Worker> Pool<W> {
    /// Starts one thread per worker; all must give the same output for an input.
    ///
    /// Without a worker, or if no thread can be started, the pool is closed from the beginning.
    pub fn start(workers: Vec<W>, settings: Settings) -> Pool<W> {
        let shared = Arc::new(Shared {
            queue: Mutex::default(),
            work: Condvar::new(),
            settings,
            stats: Mutex::default(),
            pace: Mutex::default(),
            observer: OnceLock::new(),
            alive: AtomicUsize::new(workers.len()),
        });
        let handle = Handle {
            requests: Arc::new(Semaphore::new(settings.requests.min(Semaphore::MAX_PERMITS))),
            bulk_room: Arc::new(Semaphore::new(settings.bulk_waiting.clamp(1, Semaphore::MAX_PERMITS))),
            settings,
            threads: Mutex::new(worker::start(workers, &shared)),
            shared,
        };
        if handle.shared.alive.load(Ordering::SeqCst) == 0 {
            handle.stop_taking();
        }
        Pool { handle: Arc::new(handle) }
    }

    /// Admits one request, or says at once that the pool is full.
    ///
    /// # Errors
    /// [`PoolError::Overloaded`] when `Settings::requests` requests are in the pool,
    /// [`PoolError::Closed`] after [`Pool::close`].
    pub fn admit(&self) -> Result<Permit, W::Error> {
        if lock(&self.handle.shared.queue).closed {
            return Err(PoolError::Closed.into());
        }
        match Arc::clone(&self.handle.requests).try_acquire_owned() {
            Ok(place) => Ok(Permit { _place: place }),
            Err(_) => Err(PoolError::Overloaded { capacity: self.handle.settings.requests }.into()),
        }
    }

    /// Runs the inputs of one admitted request ahead of bulk work. Outputs in order.
    ///
    /// Dropping the future takes its waiting inputs out of the queue; what runs is finished and
    /// keeps the permit until then.
    ///
    /// # Errors
    /// The first input's error in order of inputs; [`PoolError::Closed`] after [`Pool::close`].
    pub async fn run(&self, permit: Permit, inputs: Vec<W::Input>) -> Result<Vec<W::Output>, W::Error> {
        let permit = Arc::new(permit);
        let jobs = inputs.into_iter().map(|input| job::<W>(input, Some(Arc::clone(&permit)), None));
        let (jobs, replies) = jobs.unzip();
        drop(permit);
        // At once, so that the inputs of one request share a batch.
        self.handle.shared.push(Lane::Interactive, jobs)?;
        collect::<W>(replies).await
    }

    /// Runs inputs that no request waits for; waits for room in the queue. Outputs in order.
    ///
    /// # Errors
    /// As [`Pool::run`]. A call that was still waiting for room when the pool closed fails.
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

    /// Refuses new work, finishes the queue, joins the threads. Blocks.
    pub fn close(&self) {
        self.handle.stop_taking();
        let threads = std::mem::take(&mut *lock(&self.handle.threads));
        for thread in threads {
            // A thread that ended by a panic has already failed its callers.
            drop(thread.join());
        }
    }

    /// Inputs that wait now: (interactive, bulk).
    pub fn waiting(&self) -> (usize, usize) {
        let queue = lock(&self.handle.shared.queue);
        (queue.interactive.len(), queue.bulk.len())
    }

    /// Whether a worker thread still lives.
    pub fn alive(&self) -> bool {
        self.handle.shared.alive.load(Ordering::SeqCst) > 0
    }

    /// Sums over all batches so far.
    pub fn stats(&self) -> Stats {
        *lock(&self.handle.shared.stats)
    }

    /// Has `observer` called on the worker's thread after each batch, before its callers are
    /// answered. Only the first observer counts; returns whether this was the first.
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
    (Job { input, reply: sender, since: Instant::now(), permit, room }, reply)
}

/// A job that is dropped unanswered belonged to a pool whose last thread ended.
async fn collect<W: Worker>(replies: Vec<Reply<W>>) -> Result<Vec<W::Output>, W::Error> {
    let mut outputs = Vec::with_capacity(replies.len());
    for reply in replies {
        outputs.push(reply.await.map_err(|_| PoolError::Closed)??);
    }
    Ok(outputs)
}

/// The guarded values hold between any two statements, so a poisoned lock is as good as any.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
