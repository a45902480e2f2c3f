//! The worker threads of one space, their queue, and who may enter it.
//!
//! Two lanes: interactive inputs (someone waits for an answer) go before bulk inputs (ingest), but
//! every n-th batch at the latest is bulk. There is no timer: a batch is cut when a worker is free,
//! from what has arrived. A bulk batch is cut no larger than what is done in a moment, because a query that comes
//! meanwhile waits for its end. Knows nothing of models, text or video.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

use crate::batch::Limits;
use crate::{EncodeError, Encoder, Input};

mod pace;
mod worker;

use pace::Pace;

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
    /// Sum over batches of the time in the encoder.
    pub encoding: Duration,
}

/// Runs encoders on their own threads, one batch at a time each. Cheap to clone.
///
/// When the last clone is dropped, nothing new can come: the threads finish the queue and end.
#[derive(Clone)]
pub struct Pool {
    handle: Arc<Handle>,
}

/// What all clones of a pool share; its drop closes the queue.
struct Handle {
    shared: Arc<Shared>,
    requests: Arc<Semaphore>,
    bulk_room: Arc<Semaphore>,
    settings: Settings,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

/// What the pool and its threads share.
struct Shared {
    queue: Mutex<Queue>,
    work: Condvar,
    settings: Settings,
    stats: Mutex<Stats>,
    /// Of bulk batches.
    pace: Mutex<Pace>,
    observer: OnceLock<Observer>,
    alive: AtomicUsize,
}

type Observer = Box<dyn Fn(&BatchReport) + Send + Sync>;

#[derive(Default)]
struct Queue {
    interactive: VecDeque<Job>,
    bulk: VecDeque<Job>,
    /// Interactive batches cut since the last bulk batch, while bulk work was waiting.
    passed_over: usize,
    closed: bool,
}

struct Job {
    input: Input,
    reply: oneshot::Sender<Result<Vec<f32>, EncodeError>>,
    since: Instant,
    /// Held while the job is queued or running: a caller who hangs up does not free it early.
    permit: Option<Arc<Permit>>,
    /// Bulk only: the place in the queue, given back when the job leaves it.
    room: Option<OwnedSemaphorePermit>,
}

impl Pool {
    /// Starts one thread per encoder; all encoders must be of one space.
    ///
    /// Without an encoder, or if no thread can be started, the pool is closed from the beginning.
    pub fn start(encoders: Vec<Box<dyn Encoder>>, settings: Settings) -> Pool {
        let shared = Arc::new(Shared {
            queue: Mutex::default(),
            work: Condvar::new(),
            settings,
            stats: Mutex::default(),
            pace: Mutex::default(),
            observer: OnceLock::new(),
            alive: AtomicUsize::new(encoders.len()),
        });
        let handle = Handle {
            requests: Arc::new(Semaphore::new(settings.requests.min(Semaphore::MAX_PERMITS))),
            bulk_room: Arc::new(Semaphore::new(settings.bulk_waiting.clamp(1, Semaphore::MAX_PERMITS))),
            settings,
            threads: Mutex::new(worker::start(encoders, &shared)),
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
    /// [`EncodeError::Overloaded`] when `Settings::requests` requests are in the pool,
    /// [`EncodeError::Closed`] after [`Pool::close`].
    pub fn admit(&self) -> Result<Permit, EncodeError> {
        if lock(&self.handle.shared.queue).closed {
            return Err(EncodeError::Closed);
        }
        match Arc::clone(&self.handle.requests).try_acquire_owned() {
            Ok(place) => Ok(Permit { _place: place }),
            Err(_) => Err(EncodeError::Overloaded { capacity: self.handle.settings.requests }),
        }
    }

    /// Encodes the inputs of one admitted request ahead of bulk work. Raw vectors, in order.
    ///
    /// Dropping the future takes its waiting inputs out of the queue; what runs is finished and
    /// keeps the permit until then.
    ///
    /// # Errors
    /// The first input's error in order of inputs; [`EncodeError::Closed`] after [`Pool::close`].
    pub async fn encode(&self, permit: Permit, inputs: Vec<Input>) -> Result<Vec<Vec<f32>>, EncodeError> {
        let permit = Arc::new(permit);
        let jobs = inputs.into_iter().map(|input| job(input, Some(Arc::clone(&permit)), None));
        let (jobs, replies) = jobs.unzip();
        drop(permit);
        // At once, so that the windows of one text share a batch.
        self.handle.shared.push(Lane::Interactive, jobs)?;
        collect(replies).await
    }

    /// Encodes ingest's inputs when no one is waiting; bounded: waits for room. Raw vectors, in order.
    ///
    /// # Errors
    /// As [`Pool::encode`]. A call that was still waiting for room when the pool closed fails.
    pub async fn encode_bulk(&self, inputs: Vec<Input>) -> Result<Vec<Vec<f32>>, EncodeError> {
        let mut replies = Vec::with_capacity(inputs.len());
        for input in inputs {
            let room = Arc::clone(&self.handle.bulk_room).acquire_owned().await;
            let room = room.map_err(|_| EncodeError::Closed)?;
            let (job, reply) = job(input, None, Some(room));
            self.handle.shared.push(Lane::Bulk, vec![job])?;
            replies.push(reply);
        }
        collect(replies).await
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

impl Handle {
    fn stop_taking(&self) {
        lock(&self.shared.queue).closed = true;
        self.bulk_room.close();
        self.shared.work.notify_all();
    }
}

impl Drop for Handle {
    /// Does not join: the last clone may be dropped on a thread that must not block.
    fn drop(&mut self) {
        self.stop_taking();
    }
}

impl Shared {
    fn push(&self, lane: Lane, jobs: Vec<Job>) -> Result<(), EncodeError> {
        let mut queue = lock(&self.queue);
        if queue.closed {
            return Err(EncodeError::Closed);
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

type Reply = oneshot::Receiver<Result<Vec<f32>, EncodeError>>;

fn job(input: Input, permit: Option<Arc<Permit>>, room: Option<OwnedSemaphorePermit>) -> (Job, Reply) {
    let (sender, reply) = oneshot::channel();
    (Job { input, reply: sender, since: Instant::now(), permit, room }, reply)
}

/// A job that is dropped unanswered belonged to a pool whose last thread ended.
async fn collect(replies: Vec<Reply>) -> Result<Vec<Vec<f32>>, EncodeError> {
    let mut vectors = Vec::with_capacity(replies.len());
    for reply in replies {
        vectors.push(reply.await.map_err(|_| EncodeError::Closed)??);
    }
    Ok(vectors)
}

/// The guarded values hold between any two statements, so a poisoned lock is as good as any.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
