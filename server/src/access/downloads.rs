//! Which downloads the audit log has: a player asks for many ranges of one file, which are one download.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use uuid::Uuid;

/// A caller's ranges of one file within this time are one download.
const ONE_DOWNLOAD: Duration = Duration::from_secs(600);
/// Most downloads that are remembered. If there are more, some are logged twice.
const MOST: usize = 10_000;

/// The downloads of the last minutes.
#[derive(Debug, Default)]
pub struct Downloads(Mutex<HashMap<Download, Instant>>);

#[derive(Debug, PartialEq, Eq, Hash)]
struct Download {
    key: Option<Uuid>,
    path: String,
}

impl Downloads {
    /// Whether this is a download that is not logged yet; it counts as logged then.
    pub fn is_new(&self, key: Option<Uuid>, path: &str, now: Instant) -> bool {
        let mut logged = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_recent = |at: &Instant| now.saturating_duration_since(*at) < ONE_DOWNLOAD;
        let download = Download { key, path: path.to_owned() };
        if logged.get(&download).is_some_and(is_recent) {
            return false;
        }
        if logged.len() >= MOST {
            logged.retain(|_, at| is_recent(at));
        }
        if logged.len() >= MOST {
            logged.clear();
        }
        logged.insert(download, now);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_of_a_file_are_one_download_for_a_caller_and_a_while() {
        let (downloads, start, key) = (Downloads::default(), Instant::now(), Some(Uuid::from_u128(1)));
        let check = |key, path: &str, after: u64, expected: bool| {
            assert_eq!(
                downloads.is_new(key, path, start + Duration::from_secs(after)),
                expected,
                "{path} {after}"
            );
        };
        check(key, "/a", 0, true);
        check(key, "/a", 1, false);
        check(None, "/a", 1, true);
        check(key, "/b", 1, true);
        check(key, "/a", 599, false);
        check(key, "/a", 601, true);
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let (downloads, start) = (Downloads::default(), Instant::now());
        for file in 0..3 * MOST {
            assert!(downloads.is_new(None, &file.to_string(), start));
        }
        assert!(downloads.0.lock().unwrap().len() <= MOST);
    }
}
