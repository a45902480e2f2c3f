//! How far an export has come, and whether it may go on: it may be stopped, become too large, or take too long.

use std::sync::Arc;
use std::time::{Duration, Instant};

use reprise_encoders::video::excerpt::Written;
use reprise_encoders::video::{Limits, VideoError};

use super::error::ExportError;
use crate::config::Config;
use crate::ingest::JobProgress;

/// The pace of one export.
pub(super) struct Pace {
    progress: Arc<JobProgress>,
    limits: Limits,
    most_bytes: u64,
    minutes: f64,
    deadline: Instant,
    /// Length of the finished parts, in milliseconds.
    done_ms: i64,
    /// Size of the finished parts.
    done_bytes: u64,
    is_too_large: bool,
}

impl Pace {
    pub(super) fn new(config: &Config, progress: Arc<JobProgress>, total_ms: i64) -> Pace {
        progress.expect(total_ms, 0.0);
        Pace {
            progress,
            limits: config.decode_limits(),
            most_bytes: config.max_export_bytes,
            minutes: config.export_minutes,
            deadline: Instant::now() + Duration::from_secs_f64(config.export_minutes * 60.0),
            done_ms: 0,
            done_bytes: 0,
            is_too_large: false,
        }
    }

    /// The limits of the next run of ffmpeg.
    ///
    /// # Errors
    /// The export must end.
    pub(super) fn limits(&mut self) -> Result<Limits, ExportError> {
        self.check()?;
        let left = self.deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(ExportError::TooLong { minutes: self.minutes });
        }
        Ok(Limits { wall_clock: self.limits.wall_clock.min(left), ..self.limits })
    }

    /// Takes what a run has written so far. False if it must end.
    pub(super) fn watch(&mut self, written: Written) -> bool {
        self.progress.reached(self.done_ms.saturating_add(written.ms));
        self.is_too_large |= self.done_bytes.saturating_add(written.bytes) > self.most_bytes;
        !self.is_too_large && self.progress.stopped().is_none()
    }

    /// Counts a finished part.
    pub(super) fn finish_part(&mut self, length_ms: i64, bytes: u64) {
        self.done_ms = self.done_ms.saturating_add(length_ms);
        self.done_bytes = self.done_bytes.saturating_add(bytes);
        self.progress.reached(self.done_ms);
    }

    /// Names what is being done.
    pub(super) fn stage(&self, stage: &'static str) {
        self.progress.stage(stage);
    }

    /// Begins the last step, whose file replaces the parts.
    pub(super) fn last_step(&mut self, stage: &'static str) {
        self.progress.stage(stage);
        self.done_bytes = 0;
    }

    /// Fails if the export was stopped or is too large.
    ///
    /// # Errors
    /// [`ExportError::Stopped`], [`ExportError::TooLarge`].
    pub(super) fn check(&self) -> Result<(), ExportError> {
        if let Some(why) = self.progress.stopped() {
            return Err(ExportError::Stopped(why));
        }
        let is_too_large = self.is_too_large || self.done_bytes > self.most_bytes;
        if is_too_large { Err(ExportError::TooLarge { most: self.most_bytes }) } else { Ok(()) }
    }

    /// The error of a run that failed at a range.
    pub(super) fn error_of(&self, range: usize, error: VideoError) -> ExportError {
        let is_late = Instant::now() >= self.deadline;
        match error {
            VideoError::OverLimit(_) if is_late => ExportError::TooLong { minutes: self.minutes },
            error => ExportError::Video { range, error },
        }
    }
}
