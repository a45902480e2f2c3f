//! Measures the ranking of every query in a whole gallery against the bare matrix product.
//!
//! Run: `cargo bench -p reprise-index --bench eval -- [QUERIES [DIMENSION [ROUNDS]]]`. Defaults: LoVR's 40,804 texts
//! against its 40,804 clips, 768 values each.
//!
//! Both run on all processors, in turns; the figure is CPU time. The bare product uses the same crate and the block
//! sizes that were fastest for it. Laying out its gallery is not counted, and its scores are dropped.
#![allow(clippy::print_stdout, missing_docs)]
#![allow(unsafe_code, reason = "gemm takes pointers")]

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::thread;
use std::time::Instant;

use reprise_index::eval::{Vectors, ranks, recall_at};

/// Clips and queries of one product. Also the queries that a thread takes at a time.
const PANEL: usize = 48;
const PART: usize = 64;
const TASK: usize = 2_048;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // `cargo test --all-targets` also starts this benchmark.
    if !std::env::args().any(|argument| argument == "--bench") {
        return Ok(());
    }
    let numbers: Vec<usize> = std::env::args().filter_map(|argument| argument.parse().ok()).collect();
    let given = |at: usize, usual: usize| numbers.get(at).copied().unwrap_or(usual).max(1);
    let (count, dim, rounds) = (given(0, 40_804), given(1, 768), given(2, 3));
    let (texts, clips) = pairs(count, dim);
    let before = peak_mib();
    let right: Vec<usize> = (0..count).collect();
    let evaluate = || -> Result<_, Box<dyn std::error::Error>> {
        let (queries, gallery) = (Vectors::new(&texts, dim)?, Vectors::new(&clips, dim)?);
        let ranks = ranks(&queries, &gallery, |query| &right[query..=query], &|scores| scores[0])?;
        Ok(recall_at(&ranks, &[1, 5, 10]).unwrap_or_default())
    };
    println!("{count} queries x {count} clips x {dim}");
    let recall: BTreeMap<usize, f64> = evaluate()?;
    let evaluated = peak_mib();
    println!("{}", recall.iter().map(|(k, value)| format!("R@{k} {value:.3} ")).collect::<String>());
    println!("peak resident memory: {evaluated} MiB, of which queries and clips {before} MiB\n");
    println!(
        "| round | ranks, CPU s / s | bare product, CPU s / s | CPU, of the product |\n|---|---|---|---|"
    );
    let panels = panels(&clips, dim);
    let mut ratios = Vec::new();
    for round in 1..=rounds {
        let ranks = cost(|| evaluate().map(drop))?;
        let product = cost(|| {
            multiply(&texts, &panels, dim);
            Ok(())
        })?;
        ratios.push(ranks.0 / product.0);
        println!(
            "| {round} | {:.2} / {:.2} | {:.2} / {:.2} | {:.3} |",
            ranks.0,
            ranks.1,
            product.0,
            product.1,
            ranks.0 / product.0
        );
    }
    ratios.sort_by(f64::total_cmp);
    println!("\nmedian: {:.3} of the product's CPU time", ratios[ratios.len() / 2]);
    Ok(())
}

/// Clips side by side, as the product reads them: panels of (dim, PANEL).
fn panels(clips: &[f32], dim: usize) -> Vec<Vec<f32>> {
    let panel = |clips: &[f32]| {
        let mut turned = vec![0.0; PANEL * dim];
        for (row, clip) in clips.chunks_exact(dim).enumerate() {
            clip.iter().enumerate().for_each(|(column, value)| turned[column * PANEL + row] = *value);
        }
        turned
    };
    clips.chunks(PANEL * dim).map(panel).collect()
}

/// The product of all rows alone, on all processors.
fn multiply(queries: &[f32], panels: &[Vec<f32>], dim: usize) {
    let tasks = Mutex::new(queries.chunks(TASK * dim));
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                let mut scores = vec![0.0; PART * PANEL];
                while let Some(task) = tasks.lock().ok().and_then(|mut tasks| tasks.next()) {
                    for panel in panels {
                        for part in task.chunks(PART * dim) {
                            multiply_part(part, panel, dim, &mut scores);
                            std::hint::black_box(&scores);
                        }
                    }
                }
            });
        }
    });
}

fn multiply_part(queries: &[f32], panel: &[f32], dim: usize, scores: &mut [f32]) {
    let count = queries.len() / dim;
    assert!(scores.len() >= count * PANEL && panel.len() == dim * PANEL);
    // SAFETY: the matrices are (PANEL, count), (PANEL, dim) and (dim, count) in column order, and the slices have these
    // sizes.
    unsafe {
        gemm::gemm(
            PANEL,
            count,
            dim,
            scores.as_mut_ptr(),
            PANEL as isize,
            1,
            false,
            panel.as_ptr(),
            PANEL as isize,
            1,
            queries.as_ptr(),
            dim as isize,
            1,
            0.0_f32,
            1.0_f32,
            false,
            false,
            false,
            gemm::Parallelism::None,
        );
    }
}

/// CPU and wall seconds.
fn cost(
    work: impl FnOnce() -> Result<(), Box<dyn std::error::Error>>,
) -> Result<(f64, f64), Box<dyn std::error::Error>> {
    let (cpu, wall) = (cpu_seconds()?, Instant::now());
    work()?;
    Ok((cpu_seconds()? - cpu, wall.elapsed().as_secs_f64()))
}

/// User and system time of all threads. Linux counts it in hundredths of a second.
fn cpu_seconds() -> Result<f64, Box<dyn std::error::Error>> {
    let stat = std::fs::read_to_string("/proc/self/stat")?;
    let fields = stat.rsplit_once(')').ok_or("no name in /proc/self/stat")?.1.split_whitespace();
    let ticks: Result<Vec<f64>, _> = fields.skip(11).take(2).map(str::parse).collect();
    Ok(ticks?.iter().sum::<f64>() / 100.0)
}

/// The process's peak memory in MiB.
fn peak_mib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok()).unwrap_or(0) / 1024
}

/// Texts and clips that match row by row: unit vectors around 1,000 centres in a narrow cone. A text is its clip with
/// noise added, so that some clips are not found.
fn pairs(count: usize, dim: usize) -> (Vec<f32>, Vec<f32>) {
    let mut state = 42_u64;
    let mut value = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 40) as f32 / (1 << 24) as f32 - 0.5
    };
    let mut noise = |count: usize| -> Vec<f32> { (0..count).map(|_| value()).collect() };
    let (common, centres) = (noise(dim), noise(1_000 * dim));
    let (mut texts, mut clips) = (Vec::with_capacity(count * dim), Vec::with_capacity(count * dim));
    for row in 0..count {
        let centre = &centres[(row % 1_000) * dim..];
        let clip: Vec<f32> =
            noise(dim).iter().zip(centre).map(|(own, centre)| 0.5 * own + 0.6 * centre).collect();
        let text: Vec<f32> = noise(dim).iter().zip(&clip).map(|(own, clip)| 8.0 * own + clip).collect();
        for (rows, values) in [(&mut texts, text), (&mut clips, clip)] {
            let values: Vec<f32> =
                values.iter().zip(&common).map(|(own, common)| own + 1.2 * common).collect();
            let norm = values.iter().map(|value| value * value).sum::<f32>().sqrt();
            rows.extend(values.iter().map(|value| value / norm));
        }
    }
    (texts, clips)
}
