//! The progress of a model's download, for other threads to read.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

/// The progress of a model's download.
#[derive(Debug, Default)]
pub struct DownloadProgress {
    files: Mutex<BTreeMap<String, FileProgress>>,
}

/// The progress of one file.
#[derive(Debug, Clone, Copy)]
struct FileProgress {
    bytes: u64,
    total: Option<u64>,
}

/// What has come of a model.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Downloaded {
    /// Files that were begun. Files that were in the cache before do not count.
    pub files: u64,
    /// Bytes of these files that are here, with those of earlier attempts.
    pub bytes: u64,
    /// Bytes of these files when they are whole; others may follow. `None` if the hub does not say.
    pub total: Option<u64>,
}

impl DownloadProgress {
    /// The sums over all files that were begun.
    pub fn now(&self) -> Downloaded {
        let files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        let total = files.values().try_fold(0_u64, |sum, file| Some(sum.saturating_add(file.total?)));
        let bytes = files.values().fold(0_u64, |sum, file| sum.saturating_add(file.bytes));
        Downloaded { files: files.len() as u64, bytes, total }
    }

    /// Reports that `bytes` of a file's `total` bytes are here.
    pub(crate) fn set(&self, file: &str, bytes: u64, total: Option<u64>) {
        let mut files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        let progress = FileProgress { bytes, total };
        if let Some(known) = files.get_mut(file) {
            *known = progress;
        } else {
            files.insert(file.to_owned(), progress);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(reports: &[(&str, u64, Option<u64>)], expected: Downloaded) {
        let progress = DownloadProgress::default();
        for (file, bytes, total) in reports {
            progress.set(file, *bytes, *total);
        }
        assert_eq!(progress.now(), expected);
    }

    #[test]
    fn the_last_report_of_each_file_counts() {
        check(&[], Downloaded { files: 0, bytes: 0, total: Some(0) });
        let two = [("config.json", 2, Some(2)), ("model.safetensors", 5, Some(9))];
        check(&two, Downloaded { files: 2, bytes: 7, total: Some(11) });
        let again = [two[0], two[1], ("model.safetensors", 9, Some(9))];
        check(&again, Downloaded { files: 2, bytes: 11, total: Some(11) });
        check(&[two[0], ("model.safetensors", 5, None)], Downloaded { files: 2, bytes: 7, total: None });
    }
}
