//! One thread with one worker: takes batches, runs them, answers their callers.

use std::cell::{Cell, RefCell};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use super::desk::{Batch, BatchCaller, Desk, Post};
use super::{BatchReport, Job, Lane, PoolError, Queue, Settings, Shared, Worker, lock};
use crate::batch::{self, Limits};
use crate::on_cores;

/// Field of the callers' spans.
const BATCH_SIZE: &str = "batch_size";

/// Starts one thread per worker.
pub(super) fn start<W: Worker>(workers: Vec<W>, shared: &Arc<Shared<W>>) {
    for (number, worker) in workers.into_iter().enumerate() {
        let name = format!("encode-{}-{number}", worker.name());
        match spawn(shared, name, worker) {
            Ok(post) => lock(&shared.posts).push(post),
            Err(error) => tracing::error!(%error, "a worker thread did not start"),
        }
    }
}

/// Starts a thread with this name.
///
/// # Errors
/// The system has no thread to give.
pub(super) fn spawn<W: Worker>(shared: &Arc<Shared<W>>, name: String, worker: W) -> io::Result<Post<W>> {
    let (spare, desk) = (worker.clone(), Arc::new(Desk::default()));
    shared.alive.fetch_add(1, Ordering::SeqCst);
    let alive = Alive { shared: Arc::clone(shared), desk: Arc::clone(&desk) };
    // The closure owns `alive`, so the count also falls if the thread never starts.
    let own = name.clone();
    let work = move || on_cores(&own, || work(&alive, worker));
    let thread = std::thread::Builder::new().name(name).spawn(work)?;
    Ok(Post { spare, desk, thread: Some(thread) })
}

/// Counts a running thread. An abandoned one was counted when it was abandoned.
struct Alive<W: Worker> {
    shared: Arc<Shared<W>>,
    desk: Arc<Desk<W>>,
}

impl<W: Worker> Drop for Alive<W> {
    fn drop(&mut self) {
        // Callers are left here only by a panic outside the worker.
        self.desk.clear();
        if !self.desk.is_abandoned() {
            leave(&self.shared);
        }
    }
}

/// Counts a thread that has ended or was abandoned; when the last one leaves, all waiting calls fail.
pub(super) fn leave<W: Worker>(shared: &Shared<W>) {
    let mut queue = lock(&shared.queue);
    if shared.alive.fetch_sub(1, Ordering::SeqCst) == 1 {
        queue.closed = true;
        queue.interactive.clear();
        queue.bulk.clear();
    }
    shared.ended.notify_all();
}

fn work<W: Worker>(alive: &Alive<W>, mut worker: W) {
    let Alive { shared, desk } = alive;
    let other = RefCell::new(worker.clone());
    let let_pass = || serve_waiting(alive, &mut other.borrow_mut());
    while !desk.is_abandoned() {
        let Some((lane, jobs)) = next_batch(shared, &worker) else { return };
        let pause: &dyn Fn() -> Duration = match lane {
            Lane::Interactive => &|| Duration::ZERO,
            Lane::Bulk => &let_pass,
        };
        run(alive, &mut worker, Taken { lane, jobs, pause });
    }
}

/// Jobs to run as one batch.
struct Taken<'a, W: Worker> {
    lane: Lane,
    jobs: Vec<Job<W>>,
    /// Called when the batch can be interrupted; gives how long it waited.
    pause: &'a dyn Fn() -> Duration,
}

/// Runs the requests that wait, in the pause of a bulk batch. Gives the time that they took.
fn serve_waiting<W: Worker>(alive: &Alive<W>, worker: &mut W) -> Duration {
    let Alive { shared, desk } = alive;
    let mut queue = lock(&shared.queue);
    queue.interactive.retain(|job| !job.reply.is_closed());
    if queue.interactive.is_empty() || desk.is_abandoned() {
        return Duration::ZERO;
    }
    let limits = shared.limits(Lane::Interactive);
    let jobs = batch::take(&mut queue.interactive, limits, |job| worker.cost(&job.input));
    drop(queue);
    let start = Instant::now();
    run(alive, worker, Taken { lane: Lane::Interactive, jobs, pause: &|| Duration::ZERO });
    start.elapsed()
}

/// Waits for work; `None` if the pool is closed and the queue empty.
fn next_batch<W: Worker>(shared: &Shared<W>, worker: &W) -> Option<(Lane, Vec<Job<W>>)> {
    let mut queue = lock(&shared.queue);
    loop {
        queue.interactive.retain(|job| !job.reply.is_closed());
        queue.bulk.retain(|job| !job.reply.is_closed());
        if let Some(lane) = queue.next_lane(shared.settings.bulk_every) {
            let waiting = match lane {
                Lane::Interactive => &mut queue.interactive,
                Lane::Bulk => &mut queue.bulk,
            };
            let limits = shared.limits(lane);
            let jobs = batch::take(waiting, limits, |job| worker.cost(&job.input));
            if !(queue.interactive.is_empty() && queue.bulk.is_empty()) {
                shared.work.notify_one();
            }
            return Some((lane, jobs));
        }
        if queue.closed {
            return None;
        }
        queue = shared.work.wait(queue).unwrap_or_else(PoisonError::into_inner);
    }
}

impl<W: Worker> Shared<W> {
    /// Limits of the next batch of this lane.
    fn limits(&self, lane: Lane) -> Limits {
        let Settings { limits, bulk_time, .. } = self.settings;
        match lane {
            Lane::Interactive => limits,
            Lane::Bulk => lock(&self.pace).limits(limits, bulk_time),
        }
    }
}

impl<W: Worker> Queue<W> {
    /// The lane of the next batch: interactive first, but bulk after `bulk_every - 1` interactive batches.
    fn next_lane(&mut self, bulk_every: usize) -> Option<Lane> {
        let lane = match (self.interactive.is_empty(), self.bulk.is_empty()) {
            (true, true) => return None,
            (false, true) => Lane::Interactive,
            (true, false) => Lane::Bulk,
            (false, false) if self.passed_over + 1 < bulk_every => Lane::Interactive,
            (false, false) => Lane::Bulk,
        };
        let passed_over = lane == Lane::Interactive && !self.bulk.is_empty();
        self.passed_over = if passed_over { self.passed_over + 1 } else { 0 };
        Some(lane)
    }
}

fn run<W: Worker>(alive: &Alive<W>, worker: &mut W, taken: Taken<'_, W>) {
    let (Alive { shared, desk }, Taken { lane, jobs, pause }) = (alive, taken);
    let start = Instant::now();
    let mut inputs = Vec::with_capacity(jobs.len());
    let mut callers = Vec::with_capacity(jobs.len());
    let size = jobs.len();
    for Job { input, reply, since, permit, room, span } in jobs {
        drop(room);
        span.record(BATCH_SIZE, size);
        inputs.push(input);
        callers.push(BatchCaller { reply, since, permit });
    }
    desk.put(Batch { start, callers });
    let paused = Cell::new(Duration::ZERO);
    let answers = answers(alive, worker, &inputs, &|| paused.set(paused.get() + pause()));
    let encoding = start.elapsed().saturating_sub(paused.get());
    // Without a batch this thread is abandoned.
    let Some(batch) = desk.take() else { return };
    if lane == Lane::Bulk {
        lock(&shared.pace).learn(padded_cost(worker, &inputs), encoding);
    }
    let report = BatchReport {
        lane,
        waited: batch.waited().collect(),
        encoding,
        failed: answers.iter().filter(|answer| answer.is_err()).count(),
    };
    if let Some(observe) = shared.observer.get() {
        // A panicking observer must not kill the worker.
        drop(catch_unwind(AssertUnwindSafe(|| observe(&report))));
    }
    answer(shared, batch, answers);
}

/// The cost of a batch whose inputs are padded to the longest.
fn padded_cost<W: Worker>(worker: &W, inputs: &[W::Input]) -> usize {
    let dearest = inputs.iter().map(|input| worker.cost(input)).max().unwrap_or_default();
    dearest.saturating_mul(inputs.len())
}

/// One answer per input. If an input caused the failure, each input runs again alone, so that its neighbours succeed.
fn answers<W: Worker>(
    alive: &Alive<W>,
    worker: &mut W,
    inputs: &[W::Input],
    pause: &dyn Fn(),
) -> Vec<Result<W::Output, W::Error>> {
    alive.desk.run_for(alive.shared.settings.longest_run(padded_cost(worker, inputs)));
    match guarded(worker, inputs, pause) {
        Ok(outputs) => {
            inputs.iter().zip(outputs).map(|(input, output)| worker.check(input, output)).collect()
        }
        Err(error) if W::is_inputs_fault(&error) && inputs.len() > 1 => {
            let alone = |input| answers(alive, worker, std::slice::from_ref(input), pause);
            inputs.iter().flat_map(alone).collect()
        }
        Err(error) => inputs.iter().map(|_| Err(error.clone())).collect(),
    }
}

/// Runs a batch; panics and wrong numbers of outputs become errors.
fn guarded<W: Worker>(
    worker: &mut W,
    inputs: &[W::Input],
    pause: &dyn Fn(),
) -> Result<Vec<W::Output>, W::Error> {
    let outputs = catch_unwind(AssertUnwindSafe(|| worker.run(inputs, pause)));
    let outputs =
        outputs.unwrap_or_else(|panic| Err(PoolError::Failed(message(panic.as_ref()).into()).into()))?;
    if outputs.len() == inputs.len() {
        return Ok(outputs);
    }
    Err(PoolError::Failed(format!("{} vectors for {} inputs", outputs.len(), inputs.len()).into()).into())
}

fn message(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no message");
    format!("it panicked: {text}")
}

/// Counts the batch and sends its answers, one a caller.
pub(super) fn answer<W: Worker>(
    shared: &Shared<W>,
    batch: Batch<W>,
    answers: Vec<Result<W::Output, W::Error>>,
) {
    let mut stats = lock(&shared.stats);
    stats.batches += 1;
    stats.inputs += batch.callers.len() as u64;
    stats.failed += answers.iter().filter(|answer| answer.is_err()).count() as u64;
    stats.waited += batch.waited().sum();
    stats.encoding += batch.start.elapsed();
    drop(stats);
    for (BatchCaller { reply, permit, .. }, answer) in batch.callers.into_iter().zip(answers) {
        drop(permit);
        // Fails only if the caller disconnected meanwhile.
        drop(reply.send(answer));
    }
}
