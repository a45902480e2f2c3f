//! Metrics of the process, under the names that Prometheus' own clients give them. Linux only; empty elsewhere.

use std::fmt::Write;
use std::fs;

use rustix::process::{Resource, getrlimit};

/// Linux counts a process' time in hundredths of a second, on every processor of today.
const TICKS_PER_SECOND: f64 = 100.0;

/// One metric without labels.
struct Sample {
    name: &'static str,
    kind: &'static str,
    help: &'static str,
    /// `None` if the system does not say.
    value: Option<f64>,
}

/// The metrics as Prometheus' text format.
pub(super) fn render() -> String {
    let mut text = String::new();
    for Sample { name, kind, help, value } in samples() {
        let Some(value) = value else { continue };
        // Writing to a string does not fail.
        let _ = write!(text, "# HELP {name} {help}\n# TYPE {name} {kind}\n{name} {value}\n\n");
    }
    text
}

fn samples() -> [Sample; 5] {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    [
        Sample {
            name: "process_cpu_seconds_total",
            kind: "counter",
            help: "processor time of all threads, in seconds",
            value: cpu_seconds(&fs::read_to_string("/proc/self/stat").unwrap_or_default()),
        },
        Sample {
            name: "process_resident_memory_bytes",
            kind: "gauge",
            help: "memory that is resident, mapped files included",
            value: of_status(&status, "VmRSS:").map(|kibibytes| kibibytes * 1024.0),
        },
        Sample {
            name: "process_open_fds",
            kind: "gauge",
            help: "open file descriptors",
            // One of them reads the folder.
            value: fs::read_dir("/proc/self/fd").ok().map(|entries| (entries.count() as f64 - 1.0).max(0.0)),
        },
        Sample {
            name: "process_max_fds",
            kind: "gauge",
            help: "limit of open file descriptors",
            value: getrlimit(Resource::Nofile).current.map(|most| most as f64),
        },
        Sample {
            name: "process_threads",
            kind: "gauge",
            help: "threads",
            value: of_status(&status, "Threads:"),
        },
    ]
}

/// The time in user and kernel mode, from the text of `/proc/self/stat`: the 14th and 15th value.
fn cpu_seconds(stat: &str) -> Option<f64> {
    // The second value is the program's name in brackets, which may hold spaces and brackets.
    let mut values = stat.rsplit_once(')')?.1.split_whitespace().skip(11);
    let (user, kernel): (f64, f64) = (values.next()?.parse().ok()?, values.next()?.parse().ok()?);
    Some((user + kernel) / TICKS_PER_SECOND)
}

/// The number behind `name` in the text of `/proc/self/status`.
fn of_status(status: &str, name: &str) -> Option<f64> {
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(name: &str, expected: Option<f64>) {
        let status = "Name:\treprise\nVmRSS:\t   20480 kB\nThreads:\t7\nSeccomp:\n";
        assert_eq!(of_status(status, name), expected, "{name}");
    }

    #[test]
    fn numbers_are_read_from_the_status_of_a_process() {
        check("VmRSS:", Some(20480.0));
        check("Threads:", Some(7.0));
        check("Name:", None);
        check("Seccomp:", None);
        check("VmSwap:", None);
    }

    #[test]
    fn processor_time_is_read_behind_any_name() {
        let stat = "7 (a ) b) S 1 7 7 0 -1 4194304 90 0 0 0 250 50 0 0 20 0 1 0 100 0 0";
        assert_eq!(cpu_seconds(stat), Some(3.0));
        assert_eq!(cpu_seconds("7 (a) S 1"), None);
        assert_eq!(cpu_seconds(""), None);
    }
}
