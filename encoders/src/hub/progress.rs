//! Progress of a download: a bar on a terminal, log lines elsewhere.

use std::io::IsTerminal;
use std::sync::Arc;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

use crate::loading::DownloadProgress;

/// Smaller files show no progress.
const WORTH_TELLING: u64 = 1 << 20;
/// Time between two log lines.
const EVERY: Duration = Duration::from_secs(10);

/// The display of one download.
pub(super) struct Progress {
    told: Option<Arc<DownloadProgress>>,
    file: String,
    total: Option<u64>,
    bar: Option<ProgressBar>,
    logged: Instant,
}

impl Progress {
    /// Starts with `at` bytes already present, of `total`. `told` gets the numbers too.
    pub(super) fn new(
        model: &str,
        file: &str,
        at: u64,
        total: Option<u64>,
        told: Option<Arc<DownloadProgress>>,
    ) -> Progress {
        let large = total.is_none_or(|total| total >= WORTH_TELLING);
        let bar = (large && std::io::stderr().is_terminal()).then(|| {
            let style = "{prefix} {wide_bar} {bytes}/{total_bytes} {bytes_per_sec} {eta}";
            let style = ProgressStyle::with_template(style).unwrap_or_else(|_| ProgressStyle::default_bar());
            let bar = total.map_or_else(ProgressBar::no_length, ProgressBar::new);
            let bar = bar.with_style(style).with_prefix(file.to_owned());
            // Bytes from earlier attempts must not count for the speed.
            bar.reset_eta();
            bar.set_position(at);
            bar
        });
        if large && bar.is_none() {
            tracing::info!(model, file, bytes = total, here = at, "downloading");
        }
        told.iter().for_each(|it| it.set(file, at, total));
        Progress { told, file: file.to_owned(), total, bar, logged: Instant::now() }
    }

    /// Reports that `bytes` bytes are present.
    pub(super) fn at(&mut self, bytes: u64) {
        self.told.iter().for_each(|it| it.set(&self.file, bytes, self.total));
        if let Some(bar) = &self.bar {
            bar.set_position(bytes);
        } else if self.logged.elapsed() >= EVERY {
            self.logged = Instant::now();
            let percent = self.total.map(|total| bytes * 100 / total.max(1));
            tracing::info!(file = self.file, bytes, percent, "downloading");
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
