//! One thread with one encoder: cuts batches, runs them, answers their callers.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::thread::JoinHandle;
use std::time::Instant;

use super::{BatchReport, Job, Lane, Queue, Settings, Shared, lock};
use crate::batch::Limits;
use crate::{EncodeError, Encoder, Input, Space, batch};

/// One thread per encoder; an encoder whose thread does not start counts as dead.
pub(super) fn start(encoders: Vec<Box<dyn Encoder>>, shared: &Arc<Shared>) -> Vec<JoinHandle<()>> {
    let mut threads = Vec::with_capacity(encoders.len());
    for (number, encoder) in encoders.into_iter().enumerate() {
        let name = format!("encode-{}-{number}", encoder.space().name);
        let alive = Alive(Arc::clone(shared));
        // The closure owns `alive`, so a thread that never starts is counted down as well.
        match std::thread::Builder::new().name(name).spawn(move || work(&alive.0, encoder)) {
            Ok(thread) => threads.push(thread),
            Err(error) => tracing::error!(%error, "an encoder thread did not start"),
        }
    }
    threads
}

/// Counts its thread as living; when the last one ends, whoever still waits is let go.
struct Alive(Arc<Shared>);

impl Drop for Alive {
    fn drop(&mut self) {
        if self.0.alive.fetch_sub(1, Ordering::SeqCst) == 1 {
            let mut queue = lock(&self.0.queue);
            queue.closed = true;
            queue.interactive.clear();
            queue.bulk.clear();
        }
    }
}

fn work(shared: &Shared, mut encoder: Box<dyn Encoder>) {
    while let Some((lane, jobs)) = next_batch(shared, encoder.as_ref()) {
        run(shared, encoder.as_mut(), lane, jobs);
    }
}

/// Waits for work; `None` once the pool is closed and its queue empty.
fn next_batch(shared: &Shared, encoder: &dyn Encoder) -> Option<(Lane, Vec<Job>)> {
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
            let jobs = batch::take(waiting, limits, |job| encoder.cost(&job.input));
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

impl Shared {
    /// What the next batch of this lane may hold.
    fn limits(&self, lane: Lane) -> Limits {
        let Settings { limits, bulk_time, .. } = self.settings;
        match lane {
            Lane::Interactive => limits,
            Lane::Bulk => lock(&self.pace).limits(limits, bulk_time),
        }
    }
}

impl Queue {
    /// Whose turn it is: interactive first, but bulk after `bulk_every - 1` interactive batches.
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

fn run(shared: &Shared, encoder: &mut dyn Encoder, lane: Lane, jobs: Vec<Job>) {
    let start = Instant::now();
    let mut inputs = Vec::with_capacity(jobs.len());
    let mut callers = Vec::with_capacity(jobs.len());
    for Job { input, reply, since, permit, room } in jobs {
        drop(room);
        inputs.push(input);
        callers.push((reply, since, permit));
    }
    let answers = encode(encoder, &inputs);
    if lane == Lane::Bulk {
        let dearest = inputs.iter().map(|input| encoder.cost(input)).max().unwrap_or_default();
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
        // Fails only if the caller hung up meanwhile.
        drop(reply.send(answer));
    }
}

/// One answer per input. An input that is its own caller's fault must not fail its neighbours, so
/// such a batch is run again one by one.
fn encode(encoder: &mut dyn Encoder, inputs: &[Input]) -> Vec<Result<Vec<f32>, EncodeError>> {
    match guarded(encoder, inputs) {
        Ok(vectors) => {
            let values = |input: &Input| values_for(encoder.space(), input);
            inputs.iter().map(values).zip(vectors).map(|(values, it)| checked(it, values)).collect()
        }
        Err(EncodeError::BadInput(_) | EncodeError::Unsupported { .. }) if inputs.len() > 1 => {
            inputs.iter().flat_map(|input| encode(encoder, std::slice::from_ref(input))).collect()
        }
        Err(error) => vec![Err(error); inputs.len()],
    }
}

/// `encode` with a panic made an error, and as many vectors as inputs.
fn guarded(encoder: &mut dyn Encoder, inputs: &[Input]) -> Result<Vec<Vec<f32>>, EncodeError> {
    let encoded = catch_unwind(AssertUnwindSafe(|| encoder.encode(inputs)));
    let vectors = encoded.unwrap_or_else(|panic| Err(EncodeError::Failed(message(panic.as_ref()))))?;
    if vectors.len() == inputs.len() {
        return Ok(vectors);
    }
    Err(EncodeError::Failed(format!("{} vectors for {} inputs", vectors.len(), inputs.len())))
}

/// How many values an input's vector has.
fn values_for(space: &Space, input: &Input) -> usize {
    match (input, space.frame_stage) {
        (Input::Frame(_), Some(width)) => width,
        _ => space.dim,
    }
}

fn checked(vector: Vec<f32>, dim: usize) -> Result<Vec<f32>, EncodeError> {
    if vector.len() != dim {
        return Err(EncodeError::Failed(format!("a vector of {} values instead of {dim}", vector.len())));
    }
    if !vector.iter().all(|value| value.is_finite()) {
        return Err(EncodeError::Failed("a vector with values that are not finite".to_owned()));
    }
    if vector.iter().all(|value| *value == 0.0) {
        return Err(EncodeError::BadInput("its vector has norm 0".to_owned()));
    }
    Ok(vector)
}

fn message(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no message");
    format!("it panicked: {text}")
}

fn record(shared: &Shared, report: &BatchReport) {
    let mut stats = lock(&shared.stats);
    stats.batches += 1;
    stats.inputs += report.waited.len() as u64;
    stats.failed += report.failed as u64;
    stats.waited += report.waited.iter().sum();
    stats.encoding += report.encoding;
    drop(stats);
    if let Some(observe) = shared.observer.get() {
        // A panicking observer must not take the worker with it.
        drop(catch_unwind(AssertUnwindSafe(|| observe(report))));
    }
}
