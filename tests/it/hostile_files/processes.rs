//! The memory and the children of a process, from `/proc`.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// Bytes of a page.
const PAGE: u64 = 4096;
/// Time between two readings.
const PAUSE: Duration = Duration::from_millis(20);

/// The children of a process, their children, and so on.
pub(super) fn children(pid: u32) -> Vec<u32> {
    let mut found = Vec::new();
    let mut parents = vec![pid];
    while let Some(parent) = parents.pop() {
        let tasks = fs::read_dir(format!("/proc/{parent}/task")).into_iter().flatten().flatten();
        for task in tasks {
            let text = fs::read_to_string(task.path().join("children")).unwrap_or_default();
            let own: Vec<u32> = text.split_whitespace().filter_map(|pid| pid.parse().ok()).collect();
            parents.extend(&own);
            found.extend(own);
        }
    }
    found
}

/// Resident bytes of a process; 0 if it has ended.
fn resident(pid: u32) -> u64 {
    let text = fs::read_to_string(format!("/proc/{pid}/statm")).unwrap_or_default();
    let pages = text.split_whitespace().nth(1).and_then(|pages| pages.parse::<u64>().ok());
    pages.unwrap_or(0) * PAGE
}

/// Reads the memory of a process and its children until it is dropped.
pub(super) struct Watched {
    most: Arc<AtomicU64>,
    ends: Arc<AtomicBool>,
    reader: Option<JoinHandle<()>>,
}

impl Watched {
    pub(super) fn start(pid: u32) -> Watched {
        let (most, ends) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
        let (own_most, own_ends) = (Arc::clone(&most), Arc::clone(&ends));
        let reader = std::thread::spawn(move || {
            while !own_ends.load(Ordering::Relaxed) {
                let now = resident(pid) + children(pid).into_iter().map(resident).sum::<u64>();
                own_most.fetch_max(now, Ordering::Relaxed);
                std::thread::sleep(PAUSE);
            }
        });
        Watched { most, ends, reader: Some(reader) }
    }

    /// The most bytes so far.
    pub(super) fn most(&self) -> u64 {
        self.most.load(Ordering::Relaxed)
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::Relaxed);
        drop(self.reader.take().map(JoinHandle::join));
    }
}
