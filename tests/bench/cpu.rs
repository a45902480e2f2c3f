//! CPU time of a process and its ended children, from /proc; the resolution is 10 ms.

use std::fs;
use std::time::Instant;

/// Clock ticks per second, the same on all current Linux systems.
const TICKS: f64 = 100.0;

/// CPU and wall time, in seconds.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd)]
pub(crate) struct Cost {
    pub(crate) cpu: f64,
    pub(crate) wall: f64,
}

impl Cost {
    pub(crate) fn per(self, count: f64) -> Cost {
        Cost { cpu: self.cpu / count, wall: self.wall / count }
    }
}

/// A started measurement.
pub(crate) struct Meter {
    process: String,
    cpu: f64,
    started: Instant,
}

impl Meter {
    /// Measures this process and its children.
    pub(crate) fn own() -> Meter {
        Meter::of("self".to_owned())
    }

    /// Measures another process and its children.
    pub(crate) fn of(process: String) -> Meter {
        Meter { cpu: used(&process), process, started: Instant::now() }
    }

    pub(crate) fn read(&self) -> Cost {
        Cost { cpu: used(&self.process) - self.cpu, wall: self.started.elapsed().as_secs_f64() }
    }
}

/// User and system time of the process and its children.
pub(crate) fn used(process: &str) -> f64 {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap();
    // The process name may contain anything, but the last parenthesis ends it. User time is field 14.
    let fields = stat.rsplit_once(')').unwrap().1.split_whitespace().skip(11).take(4);
    fields.map(|ticks| ticks.parse::<f64>().unwrap()).sum::<f64>() / TICKS
}

/// The median of several runs after one warm-up run.
pub(crate) async fn median(runs: usize, mut run: impl AsyncFnMut() -> Cost) -> Cost {
    run().await;
    let (mut cpu, mut wall) = (Vec::new(), Vec::new());
    for _ in 0..runs {
        let cost = run().await;
        cpu.push(cost.cpu);
        wall.push(cost.wall);
    }
    Cost { cpu: percentile(&mut cpu, 50), wall: percentile(&mut wall, 50) }
}

/// The smallest value that at least `percent` per cent of the values do not exceed.
pub(crate) fn percentile(values: &mut [f64], percent: usize) -> f64 {
    values.sort_by(f64::total_cmp);
    values[(values.len() * percent).div_ceil(100).max(1) - 1]
}
