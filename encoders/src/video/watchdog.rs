//! Kills a process that runs too long or makes no progress.

use std::process::Child;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use super::limits::Limits;

/// Interval of the looks at a process.
const LOOK_EVERY: Duration = Duration::from_millis(250);
/// A process that computes without reading or writing gets this many times as long as one that does nothing. A still
/// picture of hours is decoded from a few bytes.
const PATIENCE_WITH_COMPUTING: u32 = 6;

/// Why a watchdog killed its process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Killed {
    /// It ran longer than [`Limits::wall_clock`].
    TooLong,
    /// It made no progress for [`Limits::stall`].
    Stalled,
}

/// What the watchdog and the owner of a process share.
#[derive(Debug, Default)]
pub(super) struct Watch {
    /// Whether somebody waits for the process. Otherwise the process may be the one that waits.
    is_awaited: AtomicBool,
    killed: AtomicU8,
}

impl Watch {
    /// Runs `work`, which waits for the process.
    pub(super) fn awaiting<T>(&self, work: impl FnOnce() -> T) -> T {
        self.is_awaited.store(true, Ordering::Release);
        let done = work();
        self.is_awaited.store(false, Ordering::Release);
        done
    }

    /// Why the watchdog killed the process; `None` if it did not.
    pub(super) fn killed(&self) -> Option<Killed> {
        match self.killed.load(Ordering::SeqCst) {
            1 => Some(Killed::TooLong),
            2 => Some(Killed::Stalled),
            _ => None,
        }
    }

    fn set_killed(&self, why: Killed) {
        let code = match why {
            Killed::TooLong => 1,
            Killed::Stalled => 2,
        };
        self.killed.store(code, Ordering::SeqCst);
    }
}

/// A thread that watches one process. Dropping it ends the thread, not the process.
pub(super) struct Watchdog {
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Watchdog {
    /// Watches `process` until it ends.
    pub(super) fn start(process: Arc<Mutex<Child>>, watch: Arc<Watch>, limits: &Limits) -> Watchdog {
        let (stop, stopped) = mpsc::channel();
        let (deadline, mut stall) = (Instant::now() + limits.wall_clock, Stall::new(limits.stall));
        let thread = thread::spawn(move || {
            loop {
                let left = deadline.saturating_duration_since(Instant::now());
                if stopped.recv_timeout(left.min(LOOK_EVERY)) != Err(RecvTimeoutError::Timeout) {
                    return;
                }
                let mut child = process.lock().unwrap_or_else(PoisonError::into_inner);
                if !matches!(child.try_wait(), Ok(None)) {
                    return;
                }
                let look = Look::at(child.id(), watch.is_awaited.load(Ordering::Acquire));
                let killed = match () {
                    () if Instant::now() >= deadline => Killed::TooLong,
                    () if stall.is_over(look) => Killed::Stalled,
                    () => continue,
                };
                watch.set_killed(killed);
                let _ = child.kill();
                return;
            }
        });
        Watchdog { stop: Some(stop), thread: Some(thread) }
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// One look at a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Look {
    at: Instant,
    is_awaited: bool,
    /// Bytes read and written, and processor time in ticks; `None` where they can't be read.
    used: Option<Used>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Used {
    bytes: u64,
    ticks: u64,
}

impl Look {
    fn at(pid: u32, is_awaited: bool) -> Look {
        Look { at: Instant::now(), is_awaited, used: used(pid) }
    }
}

/// Decides when a process has made no progress for too long.
struct Stall {
    most: Duration,
    /// The last look at which the process had read or written, or nobody waited for it.
    moved: Option<Look>,
    /// The last look at which it had computed, too.
    computed: Option<Look>,
}

impl Stall {
    fn new(most: Duration) -> Stall {
        Stall { most, moved: None, computed: None }
    }

    fn is_over(&mut self, look: Look) -> bool {
        let same = |before: &Option<Look>, part: fn(Used) -> u64| {
            let before = before.and_then(|before| before.used).map(part);
            look.is_awaited && before.is_some() && before == look.used.map(part)
        };
        if !same(&self.moved, |used| used.bytes) {
            (self.moved, self.computed) = (Some(look), Some(look));
        } else if !same(&self.computed, |used| used.ticks) {
            self.computed = Some(look);
        }
        let since = |before: Option<Look>| before.map_or(Duration::ZERO, |before| look.at - before.at);
        since(self.computed) >= self.most || since(self.moved) >= self.most * PATIENCE_WITH_COMPUTING
    }
}

#[cfg(target_os = "linux")]
fn used(pid: u32) -> Option<Used> {
    let io = std::fs::read_to_string(format!("/proc/{pid}/io")).ok()?;
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    Some(Used { bytes: transferred(&io)?, ticks: processor_ticks(&stat)? })
}

#[cfg(not(target_os = "linux"))]
fn used(_: u32) -> Option<Used> {
    None
}

/// The sum of `rchar` and `wchar` in a `/proc/PID/io`.
#[cfg(target_os = "linux")]
fn transferred(io: &str) -> Option<u64> {
    let value = |name: &str| io.lines().find_map(|line| line.strip_prefix(name)?.trim().parse::<u64>().ok());
    Some(value("rchar:")?.wrapping_add(value("wchar:")?))
}

/// The sum of `utime` and `stime` in a `/proc/PID/stat`. The program's name, in brackets, may hold anything.
#[cfg(target_os = "linux")]
fn processor_ticks(stat: &str) -> Option<u64> {
    let (_, rest) = stat.rsplit_once(')')?;
    let mut fields = rest.split_whitespace().skip(11).map(str::parse::<u64>);
    Some(fields.next()?.ok()? + fields.next()?.ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Looks at these seconds: awaited, bytes, ticks.
    #[track_caller]
    fn check(looks: &[(u64, bool, u64, u64)], expected: bool) {
        let (start, mut stall) = (Instant::now(), Stall::new(Duration::from_secs(10)));
        let look = |&(second, is_awaited, bytes, ticks): &(u64, bool, u64, u64)| {
            let at = start + Duration::from_secs(second);
            stall.is_over(Look { at, is_awaited, used: Some(Used { bytes, ticks }) })
        };
        let answers: Vec<bool> = looks.iter().map(look).collect();
        assert_eq!(answers.last(), Some(&expected), "{looks:?}");
    }

    #[test]
    fn a_process_that_neither_moves_nor_computes_is_stalled_after_ten_seconds() {
        check(&[(0, true, 5, 5), (9, true, 5, 5)], false);
        check(&[(0, true, 5, 5), (10, true, 5, 5)], true);
        check(&[(0, true, 5, 5), (9, true, 6, 5), (11, true, 6, 5)], false);
        check(&[(0, true, 5, 5), (9, true, 6, 5), (19, true, 6, 5)], true);
    }

    #[test]
    fn a_process_that_computes_gets_a_minute() {
        let mut looks: Vec<_> = (0..60).map(|second| (second, true, 5, second)).collect();
        check(&looks, false);
        looks.push((60, true, 5, 60));
        check(&looks, true);
    }

    #[test]
    fn a_process_that_waits_for_its_reader_is_not_stalled() {
        check(&[(0, true, 5, 5), (9, false, 5, 5), (18, true, 5, 5)], false);
        check(&[(0, false, 5, 5), (99, false, 5, 5)], false);
    }

    #[test]
    fn a_process_that_can_not_be_looked_at_is_not_stalled() {
        let (start, mut stall) = (Instant::now(), Stall::new(Duration::from_secs(10)));
        let look = |second| Look { at: start + Duration::from_secs(second), is_awaited: true, used: None };
        assert!(!stall.is_over(look(0)) && !stall.is_over(look(99)));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn facts_of_a_process_are_read() {
        assert_eq!(transferred("rchar: 10\nwchar: 4\nsyscr: 3\n"), Some(14));
        let stat = "42 (a) b) S 1 42 42 0 -1 4194304 1 2 3 4 70 8 0 0 20 0 1 0 1 1 1";
        assert_eq!(processor_ticks(stat), Some(78));
        assert!(used(std::process::id()).is_some_and(|used| used.bytes > 0));
    }
}
