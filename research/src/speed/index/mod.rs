//! `reprise index bench`: recall and speed of the index on vectors from files, without a server or a database.

mod engine;
mod filtered;
mod sweep;
mod truth;

use std::collections::BTreeMap;
use std::io::{BufRead, Write};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use crate::rows::Rows;
use anyhow::{Context, ensure};
use clap::Args;
use reprise_index::{Codes, Collection, Level, Settings, UnitVector};
use serde_json::{Value, json};

use crate::speed::meter::cpu_time;
use crate::terminal::say;
use engine::{Engine, EngineKind};
use filtered::Filtered;
use sweep::{Point, Searches};
use truth::Truth;

/// The space and level of all vectors.
const AT: Collection = Collection { space: 1, level: Level::Clip };
/// The interval between progress reports of a build.
const PROGRESS_EVERY: Duration = Duration::from_secs(5);

/// Arguments of `reprise index bench`.
#[derive(Debug, Args)]
pub struct BenchArgs {
    /// Vectors to search: (rows, values) in a .npy file of floats; normalised if needed
    #[arg(long, value_name = "NPY")]
    base: PathBuf,
    /// Query vectors of the same length
    #[arg(long, value_name = "NPY")]
    queries: PathBuf,
    /// For each query the nearest rows of --base, nearest first, as integers; without it, brute force finds them
    #[arg(long, value_name = "NPY")]
    truth: Option<PathBuf>,
    /// The engine: builtin, or hnsw_rs, which compares floats and links on one thread
    #[arg(long, value_enum, default_value = "builtin", hide_possible_values = true)]
    engine: EngineKind,
    /// Format of the codes for the first comparison of a search; without it, all of them in turn
    #[arg(long)]
    codes: Option<Codes>,
    /// Searching threads; several values are measured one after the other
    #[arg(long, value_delimiter = ',', default_value = "1,2")]
    threads: Vec<NonZeroUsize>,
    /// Building threads; by default one per processor
    #[arg(long)]
    build_threads: Option<NonZeroUsize>,
    /// Measure also searches where a filter allows a half, a tenth and a hundredth of the rows, with the candidates that
    /// the service chooses; on one thread
    #[arg(long)]
    filters: bool,
    /// Measure and print once per line on standard input: for alternating comparisons
    #[arg(long, requires = "json")]
    rounds_from_stdin: bool,
    /// Print JSON: build_s and bytes are numbers for one code format, otherwise objects by format
    #[arg(long)]
    json: bool,
}

/// An index of all vectors, and the cost of its build.
struct Built {
    codes: Codes,
    engine: Engine,
    seconds: f64,
    cpu_seconds: Option<f64>,
}

/// Vectors and ground truth.
struct Data {
    base: Vec<UnitVector>,
    queries: Vec<UnitVector>,
    truth: Truth,
}

/// Prints the table or JSON.
pub fn run(args: &BenchArgs) -> anyhow::Result<()> {
    let data = read(args)?;
    let threads = args.build_threads.map_or_else(processors, NonZeroUsize::get);
    let wanted = args.engine.codes(args.codes).into_iter();
    let built: Vec<Built> =
        wanted.map(|codes| build(args.engine, codes, &data.base, threads)).collect::<Result<_, _>>()?;
    if !args.rounds_from_stdin {
        return print(args, &data, threads, &built);
    }
    for line in std::io::stdin().lock().lines() {
        line.context("standard input can't be read")?;
        print(args, &data, threads, &built)?;
    }
    Ok(())
}

fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

fn read(args: &BenchArgs) -> anyhow::Result<Data> {
    let (base, queries) = (units(&args.base)?, units(&args.queries)?);
    let (Some(first), Some(asked)) = (base.first(), queries.first()) else {
        anyhow::bail!("nothing to search: --base and --queries need at least one row each");
    };
    let (values, asked) = (first.values().len(), asked.values().len());
    ensure!(values == asked, "--base has vectors of {values} values, --queries of {asked}");
    let truth = match &args.truth {
        Some(path) => Truth::read(path, base.len(), queries.len())?,
        None => Truth::of(&base, &queries)?,
    };
    Ok(Data { base, queries, truth })
}

fn units(path: &Path) -> anyhow::Result<Vec<UnitVector>> {
    let rows = Rows::read(path)?;
    ensure!(u32::try_from(rows.len()).is_ok(), "{} has more rows than an index can hold", path.display());
    let unit = |(number, row)| {
        let unit = UnitVector::from_raw(row).map(|(unit, _)| unit);
        unit.with_context(|| format!("{}: row {number} has no direction (norm 0)", path.display()))
    };
    rows.iter().enumerate().map(unit).collect()
}

/// Fills and seals an index.
fn build(kind: EngineKind, codes: Codes, base: &[UnitVector], threads: usize) -> anyhow::Result<Built> {
    let settings = Settings { codes, build_threads: threads, ..Settings::default() };
    let (started, cpu) = (Instant::now(), cpu_time());
    let progress = Progress { codes, started, said: Mutex::new(started) };
    let report = |linked, all| progress.report(linked, all);
    let engine = match kind {
        EngineKind::Builtin => Engine::builtin(AT, base, settings, &report)?,
        EngineKind::HnswRs => Engine::hnsw_rs(base, &report),
    };
    let seconds = started.elapsed().as_secs_f64();
    let cpu_seconds = cpu_time().zip(cpu).map(|(now, before)| now - before);
    progress.say(base.len(), base.len());
    if let Some(mib) = peak_mib() {
        let _ = writeln!(std::io::stderr(), "{}: peak resident memory {mib} MiB", codes.name());
    }
    Ok(Built { codes, engine, seconds, cpu_seconds })
}

/// Prints a build's progress on stderr.
struct Progress {
    codes: Codes,
    started: Instant,
    said: Mutex<Instant>,
}

impl Progress {
    /// Prints at the set interval.
    fn report(&self, linked: usize, all: usize) {
        let Some(mut said) = self.said.try_lock().ok().filter(|said| said.elapsed() >= PROGRESS_EVERY) else {
            return;
        };
        *said = Instant::now();
        self.say(linked, all);
    }

    fn say(&self, linked: usize, all: usize) {
        let (codes, seconds) = (self.codes.name(), self.started.elapsed().as_secs_f64());
        let rate = linked as f64 / seconds;
        let line = format!("{codes}: {linked} of {all} vectors in {seconds:.1} s, {rate:.0} a second");
        let _ = writeln!(std::io::stderr(), "{line}");
    }
}

/// The process's peak memory in MiB; `None` where the system has no /proc.
fn peak_mib() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(peak.split_whitespace().next()?.parse::<u64>().ok()? / 1024)
}

fn print(args: &BenchArgs, data: &Data, build_threads: usize, built: &[Built]) -> anyhow::Result<()> {
    let searches = Searches { at: AT, queries: &data.queries, truth: &data.truth };
    let (mut points, mut filtered) = (Vec::new(), Vec::new());
    for Built { codes, engine, .. } in built {
        for threads in &args.threads {
            points.extend(sweep::run(engine, *codes, threads.get(), searches)?);
        }
        if args.filters {
            filtered.extend(filtered::run(engine, *codes, data.base.len(), searches)?);
        }
    }
    let points = Points { swept: points, filtered };
    if args.json {
        say(report(data, build_threads, built, &points))?;
        return Ok(());
    }
    table(data, build_threads, built, &points).into_iter().try_for_each(say)?;
    Ok(())
}

/// What was measured.
struct Points {
    swept: Vec<Point>,
    /// Empty unless asked for.
    filtered: Vec<Filtered>,
}

fn report(data: &Data, build_threads: usize, built: &[Built], points: &Points) -> Value {
    let by_codes = |of: &dyn Fn(&Built) -> Value| match built {
        [only] => of(only),
        several => json!(several.iter().map(|it| (it.codes.name(), of(it))).collect::<BTreeMap<_, _>>()),
    };
    json!({
        "vectors": data.base.len(),
        "dim": data.base.first().map_or(0, |vector| vector.values().len()),
        "queries": data.queries.len(),
        "build_threads": build_threads,
        "build_s": by_codes(&|it| json!(it.seconds)),
        "build_cpu_s": by_codes(&|it| json!(it.cpu_seconds)),
        "bytes": by_codes(&|it| json!(it.engine.bytes(AT))),
        "points": points.swept,
        "filtered": points.filtered,
    })
}

fn table(data: &Data, build_threads: usize, built: &[Built], points: &Points) -> Vec<String> {
    let (vectors, queries) = (data.base.len(), data.queries.len());
    let mut lines = vec![format!("{vectors} vectors, {queries} queries")];
    for it in built {
        let (codes, bytes) = (it.codes.name(), it.engine.bytes(AT));
        let each = bytes as f64 / vectors as f64;
        lines.push(format!(
            "{codes}: built in {:.1} s on {build_threads} threads, {bytes} bytes, {each:.0} a vector",
            it.seconds
        ));
    }
    lines.push(format!(
        "{:<6}{:>8}{:>5}{:>8}{:>8}{:>8}{:>10}{:>9}{:>9}{:>9}{:>9}",
        "codes", "threads", "ef", "R@1", "R@10", "R@100", "qps", "p50 us", "p95 us", "p99 us", "CPU us"
    ));
    let shown = |it: Option<f64>, digits: usize| it.map_or("-".to_owned(), |it| format!("{it:.digits$}"));
    lines.extend(points.swept.iter().map(|point| {
        format!(
            "{:<6}{:>8}{:>5}{:>8}{:>8}{:>8}{:>10.0}{:>9.0}{:>9.0}{:>9.0}{:>9}",
            point.codes.name(),
            point.threads,
            point.ef,
            shown(Some(point.recall_at_1), 4),
            shown(point.recall_at_10, 4),
            shown(point.recall_at_100, 4),
            point.qps,
            point.p50_us,
            point.p95_us,
            point.p99_us,
            shown(point.cpu_us, 0)
        )
    }));
    lines.extend(points.filtered.iter().map(|point| {
        format!(
            "{}, a filter that allows {} of the rows: R@10 {:.4}, p50 {:.0} us, CPU {} us",
            point.codes.name(),
            point.share,
            point.recall_at_10,
            point.p50_us,
            shown(point.cpu_us, 0)
        )
    }));
    lines
}
