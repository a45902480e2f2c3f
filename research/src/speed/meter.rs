//! CPU time of this process beside wall time.

use std::time::{Duration, Instant};

use anyhow::Context;

/// Shortest run: CPU time has a resolution of 10 ms.
const RUN: Duration = Duration::from_millis(500);

/// Clock ticks per second, the same on all current Linux systems.
const TICKS: f64 = 100.0;

/// Cost of a run in seconds.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cost {
    pub(super) wall: f64,
    /// CPU seconds of all threads; `None` without /proc.
    pub(super) cpu: Option<f64>,
}

impl Cost {
    pub(super) fn per(self, count: usize) -> Cost {
        let count = count.max(1) as f64;
        Cost { wall: self.wall / count, cpu: self.cpu.map(|cpu| cpu / count) }
    }
}

/// A started measurement.
pub(super) struct Meter {
    started: Instant,
    cpu: Option<f64>,
}

impl Meter {
    fn start() -> Meter {
        Meter { started: Instant::now(), cpu: cpu_time() }
    }

    fn read(&self) -> Cost {
        let cpu = cpu_time().zip(self.cpu).map(|(now, before)| now - before);
        Cost { wall: self.started.elapsed().as_secs_f64(), cpu }
    }

    /// The cost of `pass`: medians over `runs`, after one warm-up pass.
    ///
    /// # Errors
    /// The first error of `pass`.
    pub(super) fn median(runs: usize, mut pass: impl FnMut() -> anyhow::Result<()>) -> anyhow::Result<Cost> {
        pass()?;
        let (mut walls, mut cpus) = (Vec::new(), Vec::new());
        for _ in 0..runs {
            let cost = Meter::run(&mut pass)?;
            walls.push(cost.wall);
            cpus.extend(cost.cpu);
        }
        // CPU time of 0 means too short to measure.
        Ok(Cost { wall: middle(&mut walls).unwrap_or(0.0), cpu: middle(&mut cpus).filter(|cpu| *cpu > 0.0) })
    }

    /// How many times as fast `pass` is as `other`, in wall time: the median of the ratios of `runs` pairs of runs, after
    /// one warm-up pass of each. They run in turns, so that a change of the machine's speed meets both.
    ///
    /// # Errors
    /// The first error of either.
    pub(super) fn speedup(
        runs: usize,
        mut pass: impl FnMut() -> anyhow::Result<()>,
        mut other: impl FnMut() -> anyhow::Result<()>,
    ) -> anyhow::Result<f64> {
        pass()?;
        other()?;
        let mut ratios = Vec::new();
        for _ in 0..runs {
            let cost = Meter::run(&mut pass)?;
            ratios.push(Meter::run(&mut other)?.wall / cost.wall);
        }
        middle(&mut ratios).context("the number of runs is 0")
    }

    /// The mean cost of a pass in one run.
    fn run(pass: &mut impl FnMut() -> anyhow::Result<()>) -> anyhow::Result<Cost> {
        let (meter, mut passes) = (Meter::start(), 0);
        while passes == 0 || meter.started.elapsed() < RUN {
            pass()?;
            passes += 1;
        }
        Ok(meter.read().per(passes))
    }
}

fn middle(values: &mut [f64]) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}

/// User and system time of all present and past threads of this process.
pub(super) fn cpu_time() -> Option<f64> {
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    // The process name may contain anything, but the last parenthesis ends it. User time is field 14.
    let fields = stat.rsplit_once(')')?.1.split_whitespace().skip(11).take(2);
    let ticks: Option<Vec<f64>> = fields.map(|ticks| ticks.parse().ok()).collect();
    Some(ticks?.iter().sum::<f64>() / TICKS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_speedup_needs_runs_and_both_passes() {
        let (works, fails) = (|| Ok(()), || anyhow::bail!("no"));
        assert!(Meter::speedup(0, works, works).is_err());
        assert!(Meter::speedup(1, works, fails).is_err());
        assert!(Meter::speedup(1, fails, works).is_err());
    }

    #[test]
    fn the_middle_of_several_is_one_of_them() {
        assert_eq!(middle(&mut [3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(middle(&mut [4.0]), Some(4.0));
        assert_eq!(middle(&mut []), None);
    }
}
