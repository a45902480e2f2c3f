//! One thread with one worker: takes batches, runs them, answers their callers.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::thread::JoinHandle;
use std::time::Instant;

use super::{BatchReport, Job, Lane, PoolError, Queue, Settings, Shared, Worker, lock};
use crate::batch::{self, Limits};

/// Starts one thread per worker; a worker without a thread counts as dead.
pub(super) fn start<W: Worker>(workers: Vec<W>, shared: &Arc<Shared<W>>) -> Vec<JoinHandle<()>> {
    let mut threads = Vec::with_capacity(workers.len());
    for (number, worker) in workers.into_iter().enumerate() {
        let name = format!("{}-{number}", worker.name());
        let alive = Alive(Arc::clone(shared));
        // The closure owns `alive`, so the count also falls if the thread never starts.
        match std::thread::Builder::new().name(name).spawn(move || work(&alive.0, worker)) {
            Ok(thread) => threads.push(thread),
            Err(error) => tracing::error!(%error, "a worker thread did not start"),
        }
    }
    threads
}

/// Counts a living thread; when the last one ends, all waiting calls fail.
struct Alive<W: Worker>(Arc<Shared<W>>);

impl<W: Worker> Drop for Alive<W> {
    fn drop(&mut self) {
        if self.0.alive.fetch_sub(1, Ordering::SeqCst) == 1 {
            let mut queue = lock(&self.0.queue);
            queue.closed = true;
            queue.interactive.clear();
            queue.bulk.clear();
        }
    }
}

fn work<W: Worker>(shared: &Shared<W>, mut worker: W) {
    while let Some((lane, jobs)) = next_batch(shared, &worker) {
        run(shared, &mut worker, lane, jobs);
    }
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

fn run<W: Worker>(shared: &Shared<W>, worker: &mut W, lane: Lane, jobs: Vec<Job<W>>) {
    let start = Instant::now();
    let mut inputs = Vec::with_capacity(jobs.len());
    let mut callers = Vec::with_capacity(jobs.len());
    for Job { input, reply, since, permit, room } in jobs {
        drop(room);
        inputs.push(input);
        callers.push((reply, since, permit));
    }
    let answers = answers(worker, &inputs);
    if lane == Lane::Bulk {
        let dearest = inputs.iter().map(|input| worker.cost(input)).max().unwrap_or_default();
        lock(&shared.pace).learn(dearest.saturating_mul(inputs.len()), start.elapsed());
    }
    let report = BatchReport {
        lane,
        waited: callers.iter().map(|(_, since, _)| start.saturating_duration_since(*since)).collect(),
        encoding: start.elapsed(),
        failed: answers.iter().filter(|answer| answer.is_err()).count(),
    };
    record(shared, &report);
    for ((reply, _, permit), answer) in callers.into_iter().zip(answers) {
        drop(permit);
        // Fails only if the caller disconnected meanwhile.
        drop(reply.send(answer));
    }
}

/// One answer per input. If an input caused the failure, each input runs again alone, so that its neighbours succeed.
fn answers<W: Worker>(worker: &mut W, inputs: &[W::Input]) -> Vec<Result<W::Output, W::Error>> {
    match guarded(worker, inputs) {
        Ok(outputs) => {
            inputs.iter().zip(outputs).map(|(input, output)| worker.check(input, output)).collect()
        }
        Err(error) if W::is_inputs_fault(&error) && inputs.len() > 1 => {
            inputs.iter().flat_map(|input| answers(worker, std::slice::from_ref(input))).collect()
        }
        Err(error) => inputs.iter().map(|_| Err(error.clone())).collect(),
    }
}

/// Runs a batch; panics and wrong numbers of outputs become errors.
fn guarded<W: Worker>(worker: &mut W, inputs: &[W::Input]) -> Result<Vec<W::Output>, W::Error> {
    let outputs = catch_unwind(AssertUnwindSafe(|| worker.run(inputs)));
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

fn record<W: Worker>(shared: &Shared<W>, report: &BatchReport) {
    let mut stats = lock(&shared.stats);
    stats.batches += 1;
    stats.inputs += report.waited.len() as u64;
    stats.failed += report.failed as u64;
    stats.waited += report.waited.iter().sum();
    stats.encoding += report.encoding;
    drop(stats);
    if let Some(observe) = shared.observer.get() {
        // A panicking observer must not kill the worker.
        drop(catch_unwind(AssertUnwindSafe(|| observe(report))));
    }
}
