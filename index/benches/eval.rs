//! What ranks in a whole gallery cost beside the bare product: `cargo bench -p reprise-index --bench eval -- [QUERIES
//! [DIMENSION [ROUNDS]]]`; by default LoVR's 40,804 texts against its 40,804 clips, 768 values each.
//!
//! CPU time, taking turns, both on all processors. The bare product is gemm's, the gallery turned beforehand, which isn't
//! counted; as many queries at a time as the scores of all clips fit into 64 MiB.
#![allow(clippy::print_stdout, missing_docs)]
#![allow(unsafe_code, reason = "gemm takes pointers")]

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::thread;
use std::time::Instant;

use reprise_index::eval::{Vectors, ranks, recall_at};

/// Scores of the bare product that are held at a time.
const SCORES: usize = 16 << 20;

fn main() -> Result<(), Box<dyn std::error::Error>> {
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
    let mut turned = vec![0.0; clips.len()];
    for (row, clip) in clips.chunks_exact(dim).enumerate() {
        clip.iter().enumerate().for_each(|(column, value)| turned[column * count + row] = *value);
    }
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let mut scores = vec![Vec::new(); threads];
    let mut ratios = Vec::new();
    for round in 1..=rounds {
        let ranks = cost(|| evaluate().map(drop))?;
        let product = cost(|| {
            multiply(&texts, &turned, dim, &mut scores);
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

/// The bare product of all rows on all processors, a block of queries at a time by each.
fn multiply(queries: &[f32], turned: &[f32], dim: usize, scores: &mut [Vec<f32>]) {
    let rows = turned.len() / dim;
    let most = SCORES / rows.max(1) / scores.len();
    let blocks = Mutex::new(queries.chunks(most.max(1) * dim));
    thread::scope(|scope| {
        for scores in scores {
            scope.spawn(|| {
                while let Some(block) = blocks.lock().ok().and_then(|mut blocks| blocks.next()) {
                    multiply_block(block, turned, dim, scores);
                    std::hint::black_box(&*scores);
                }
            });
        }
    });
}

fn multiply_block(queries: &[f32], turned: &[f32], dim: usize, scores: &mut Vec<f32>) {
    let (rows, count) = (turned.len() / dim, queries.len() / dim);
    scores.resize(scores.len().max(count * rows), 0.0);
    // SAFETY: (rows, count), (rows, dim) and (dim, count), column after column, as large as said.
    unsafe {
        gemm::gemm(
            rows,
            count,
            dim,
            scores.as_mut_ptr(),
            rows as isize,
            1,
            false,
            turned.as_ptr(),
            rows as isize,
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

/// User and system time of all threads, in the 100ths of seconds that Linux counts.
fn cpu_seconds() -> Result<f64, Box<dyn std::error::Error>> {
    let stat = std::fs::read_to_string("/proc/self/stat")?;
    let fields = stat.rsplit_once(')').ok_or("no name in /proc/self/stat")?.1.split_whitespace();
    let ticks: Result<Vec<f64>, _> = fields.skip(11).take(2).map(str::parse).collect();
    Ok(ticks?.iter().sum::<f64>() / 100.0)
}

/// Most memory that this process ever held, in MiB.
fn peak_mib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok()).unwrap_or(0) / 1024
}

/// Texts and clips that belong together row by row: unit vectors around 1,000 centres in a narrow cone, each text its
/// clip with noise of its own, so that some are not found.
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
        let text: Vec<f32> = noise(dim).iter().zip(&clip).map(|(own, clip)| 1.5 * own + clip).collect();
        for (rows, values) in [(&mut texts, text), (&mut clips, clip)] {
            let values: Vec<f32> =
                values.iter().zip(&common).map(|(own, common)| own + 1.2 * common).collect();
            let norm = values.iter().map(|value| value * value).sum::<f32>().sqrt();
            rows.extend(values.iter().map(|value| value / norm));
        }
    }
    (texts, clips)
}
