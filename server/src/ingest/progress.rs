//! Progress and stop signal of a running job, shared by the job, its decoder and its heartbeat.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU8, Ordering};
use std::time::Instant;

use tokio_util::sync::CancellationToken;

use super::error::{IngestError, Stop};
use crate::catalog::{Heartbeat, Progress};

/// The progress of one running job.
pub struct JobProgress {
    started: Instant,
    stage: Mutex<&'static str>,
    frames_done: AtomicI64,
    frames_total: AtomicI64,
    time_ms: AtomicI64,
    duration_ms: AtomicI64,
    has_kept: AtomicBool,
    stop: AtomicU8,
    stopping: CancellationToken,
}

impl JobProgress {
    pub(crate) fn new() -> JobProgress {
        JobProgress {
            started: Instant::now(),
            stage: Mutex::new("probe"),
            frames_done: AtomicI64::new(0),
            frames_total: AtomicI64::new(0),
            time_ms: AtomicI64::new(0),
            duration_ms: AtomicI64::new(0),
            has_kept: AtomicBool::new(false),
            stop: AtomicU8::new(0),
            stopping: CancellationToken::new(),
        }
    }

    pub(crate) fn stage(&self, stage: &'static str) {
        *self.stage.lock().unwrap_or_else(|poisoned| poisoned.into_inner()) = stage;
    }

    /// Sets the probe's estimates of duration and frame rate.
    pub(crate) fn expect(&self, duration_ms: i64, frame_rate: f64) {
        self.duration_ms.store(duration_ms, Ordering::Relaxed);
        self.frames_total.store((duration_ms as f64 / 1000.0 * frame_rate).round() as i64, Ordering::Relaxed);
    }

    pub(crate) fn frame(&self, time_ms: i64) {
        self.frames_done.fetch_add(1, Ordering::Relaxed);
        self.reached(time_ms);
    }

    pub(crate) fn reached(&self, time_ms: i64) {
        self.time_ms.fetch_max(time_ms, Ordering::Relaxed);
    }

    /// Records that the disk holds work which a restart of the job will not repeat.
    pub(crate) fn kept(&self) {
        self.has_kept.store(true, Ordering::Relaxed);
    }

    pub(crate) fn stop(&self, why: Stop) {
        let code = match why {
            Stop::Cancelled => 1,
            Stop::Lost => 2,
            Stop::Closing => 3,
        };
        let _ = self.stop.compare_exchange(0, code, Ordering::AcqRel, Ordering::Acquire);
        self.stopping.cancel();
    }

    /// Does `work` until its end or a stop signal, which drops it. Batches that wait in a pool are dropped with it.
    ///
    /// # Errors
    /// Errors of `work`, or [`IngestError::Stopped`].
    pub(super) async fn unless_stopped<T>(
        &self,
        work: impl Future<Output = Result<T, IngestError>>,
    ) -> Result<T, IngestError> {
        tokio::select! {
            // First the work: a fault of its own also stops its decoder.
            biased;
            done = work => done,
            () = self.stopping.cancelled() => {
                Err(IngestError::Stopped(self.stopped().unwrap_or(Stop::Lost)))
            }
        }
    }

    pub(crate) fn stopped(&self) -> Option<Stop> {
        match self.stop.load(Ordering::Acquire) {
            1 => Some(Stop::Cancelled),
            2 => Some(Stop::Lost),
            3 => Some(Stop::Closing),
            _ => None,
        }
    }

    /// Data for the next heartbeat. The fraction is the decoded share of the video's time, because decoding is nearly
    /// all of the work.
    pub(crate) fn heartbeat(&self) -> Heartbeat {
        let duration_ms = self.duration_ms.load(Ordering::Relaxed);
        let time_ms = self.time_ms.load(Ordering::Relaxed);
        let fraction =
            if duration_ms > 0 { (time_ms as f64 / duration_ms as f64).clamp(0.0, 0.99) } else { 0.0 };
        let elapsed = self.started.elapsed().as_secs_f64();
        let total = self.frames_total.load(Ordering::Relaxed);
        let progress = Progress {
            stage: (*self.stage.lock().unwrap_or_else(|poisoned| poisoned.into_inner())).to_owned(),
            fraction,
            frames_done: self.frames_done.load(Ordering::Relaxed),
            frames_total: (total > 0).then_some(total),
            eta_s: (fraction > 0.01).then(|| elapsed * (1.0 - fraction) / fraction),
        };
        Heartbeat { progress, has_kept: self.has_kept.load(Ordering::Relaxed) }
    }
}
