//! Products of bytes: weights in 8 bits by output channel, rows in 8 bits as they come, sums in 32-bit integers that
//! never overflow.
//!
//! A row's values become `(byte - zero) * scale`, with the scale that its smallest and largest value ask for; a
//! column's weights become `byte * scale`. The sums of the products of bytes are then right but for `zero` times the
//! sum of the column's bytes, which is known from the start.

use std::cell::RefCell;

use rayon::prelude::*;

use super::elementwise::range_with_zero;
use super::float::{self, Finish, Place};
use super::matrix::{Aligned, PANEL, Rows, Target};

/// Rows of a tile, at most: 28 of 32 registers hold sums of 14 rows by 32 columns.
const TILE: usize = 14;
/// Rows of a block.
const BLOCK: usize = 8 * TILE;
/// Depth of a block, at most, and bytes from one of its rows to the next.
const DEPTH: usize = 3072;
const STRIDE: usize = DEPTH + 64;
/// Products of so many bytes are added at a time.
const GROUP: usize = 4;

type Sums = [[i32; PANEL]; TILE];

/// Weights of (depth, columns) in bytes, cut into panels: in each, groups of [`GROUP`] rows, in these column after
/// column. What is missing is zero.
#[derive(Debug, Clone)]
pub(super) struct BytePanels {
    values: Aligned<i8>,
    /// By column.
    scales: Vec<f32>,
    /// By column: the sum of its bytes.
    totals: Vec<f32>,
    pub(super) depth: usize,
    pub(super) columns: usize,
}

impl BytePanels {
    /// Packs `weight` of (depth, columns), row after row.
    ///
    /// # Panics
    /// If there are not so many values.
    pub(super) fn new(weight: &[f32], depth: usize, columns: usize) -> Self {
        assert_eq!(weight.len(), depth * columns);
        let mut largest = vec![0_f32; columns];
        for row in weight.chunks_exact(columns) {
            largest.iter_mut().zip(row).for_each(|(most, value)| *most = most.max(value.abs()));
        }
        let scales: Vec<f32> =
            largest.iter().map(|most| if *most > 0.0 { most / 127.0 } else { 1.0 }).collect();
        let groups = depth.div_ceil(GROUP);
        let mut values = Aligned::zeros(columns.div_ceil(PANEL) * groups * PANEL * GROUP);
        let mut totals = vec![0_f32; columns];
        for (row, weights) in weight.chunks_exact(columns).enumerate() {
            for (column, value) in weights.iter().enumerate() {
                let byte = (value / scales[column]).round() as i8;
                let (panel, inside) = (column / PANEL, column % PANEL);
                let at = ((panel * groups + row / GROUP) * PANEL + inside) * GROUP + row % GROUP;
                values.values_mut()[at] = byte;
                totals[column] += f32::from(byte);
            }
        }
        BytePanels { values, scales, totals, depth, columns }
    }

    fn count(&self) -> usize {
        self.columns.div_ceil(PANEL)
    }

    /// Rows `from..to` of a panel; both are multiples of [`GROUP`], or the end.
    fn rows(&self, panel: usize, from: usize, to: usize) -> &[i8] {
        let groups = self.depth.div_ceil(GROUP);
        let at = |row: usize| (panel * groups + row.div_ceil(GROUP)) * PANEL * GROUP;
        &self.values.values()[at(from)..at(to)]
    }
}

/// How the bytes of a row are to be read.
#[derive(Debug, Clone, Copy, Default)]
struct Reading {
    scale: f32,
    zero: f32,
}

/// The copies of a block's rows, in bytes.
struct Block {
    bytes: Aligned<u8>,
    readings: [Reading; BLOCK],
}

thread_local! {
    static BLOCK_ROWS: RefCell<Block> =
        RefCell::new(Block { bytes: Aligned::zeros(0), readings: [Reading::default(); BLOCK] });
}

/// `rows * panels`, finished, into `target`, as [`float::multiply`]; for processors with AVX-512 VNNI.
///
/// # Panics
/// If the shapes don't fit, or the processor lacks the instructions.
pub(super) fn multiply(
    rows: Rows<'_>,
    panels: &BytePanels,
    target: Target,
    finish: Finish<'_>,
    threads: usize,
) {
    assert_eq!((rows.columns, rows.rows, panels.columns), (panels.depth, target.rows, target.columns));
    let product = Product { rows, panels, target, finish };
    let parts = float::parts(rows.rows, panels.count(), threads, BLOCK);
    match threads {
        0 | 1 => parts.into_iter().for_each(|part| product.run(part)),
        _ => parts.into_par_iter().for_each(|part| product.run(part)),
    }
}

struct Product<'a> {
    rows: Rows<'a>,
    panels: &'a BytePanels,
    target: Target,
    finish: Finish<'a>,
}

impl Product<'_> {
    #[cfg(target_arch = "x86_64")]
    fn run(&self, part: float::Part) {
        assert!(is_x86_feature_detected!("avx512vnni") && is_x86_feature_detected!("avx512vl"));
        BLOCK_ROWS.with_borrow_mut(|block| {
            block.bytes.reserve(BLOCK * STRIDE);
            // SAFETY: the processor has the instructions, as was just asked.
            unsafe { self.run_512(part, block) };
        });
    }

    #[cfg(not(target_arch = "x86_64"))]
    fn run(&self, _: float::Part) {
        unreachable!("there is no Processor here");
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,avx2,fma")]
    fn run_512(&self, part: float::Part, block: &mut Block) {
        let (first, last) = part.rows;
        let tiles = float::even(last - first, (last - first).div_ceil(TILE));
        for (row, reading) in (first..last).zip(&mut block.readings) {
            *reading = reading_of(self.rows.row(row));
        }
        let mut sums: Sums = [[0; PANEL]; TILE];
        for from in (0..self.panels.depth).step_by(DEPTH) {
            let to = (from + DEPTH).min(self.panels.depth);
            let copies = block.bytes.values_mut().chunks_exact_mut(STRIDE);
            for ((row, copy), reading) in (first..last).zip(copies).zip(&block.readings) {
                to_bytes(&self.rows.row(row)[from..to], copy, *reading);
            }
            for panel in part.panels.0..part.panels.1 {
                let values = self.panels.rows(panel, from, to);
                for (top, bottom) in &tiles {
                    let rows = &block.bytes.values()[top * STRIDE..];
                    // SAFETY: the block has `STRIDE` bytes for each row of the tile, of which as many as the panel
                    // has rows are filled.
                    unsafe { x86::tile(bottom - top, rows.as_ptr(), values, &mut sums) };
                    let place = Place {
                        row: first + top,
                        panel,
                        is_first: from == 0,
                        is_last: to == self.panels.depth,
                    };
                    self.store(&sums[..bottom - top], &block.readings[*top..], place);
                }
            }
        }
    }

    #[inline(always)]
    fn store(&self, sums: &[[i32; PANEL]], readings: &[Reading], place: Place) {
        // As in `float`: of a whole panel the compiler knows the length.
        match self.panels.columns - place.panel * PANEL {
            PANEL.. => self.store_columns(sums, readings, place, PANEL),
            fewer => self.store_columns(sums, readings, place, fewer),
        }
    }

    #[inline(always)]
    fn store_columns(&self, sums: &[[i32; PANEL]], readings: &[Reading], place: Place, count: usize) {
        let column = place.panel * PANEL;
        let (scales, totals) =
            (&self.panels.scales[column..][..count], &self.panels.totals[column..][..count]);
        for ((row, sums), reading) in (place.row..).zip(sums).zip(readings) {
            // SAFETY: the caller of `multiply` holds the target, and no other part has these rows and panels.
            let to = unsafe { self.target.part(row, column, count) };
            // What the zero of the row adds to every sum, once.
            let zero = if place.is_first { reading.zero } else { 0.0 };
            let values = to[..count].iter_mut().zip(&sums[..count]).zip(scales).zip(totals);
            let value =
                |sum: i32, scale: f32, total: f32| reading.scale * scale * zero.mul_add(-total, sum as f32);
            match place.is_first {
                true => values.for_each(|(((to, sum), scale), total)| *to = value(*sum, *scale, *total)),
                false => values.for_each(|(((to, sum), scale), total)| *to += value(*sum, *scale, *total)),
            }
            if place.is_last {
                let residual = self.finish.residual.map(|rows| &rows.row(row)[column..][..count]);
                let bias = self.finish.bias.map(|bias| &bias[column..][..count]);
                float::finish(&mut to[..count], bias, self.finish.activation, residual);
            }
        }
    }
}

#[inline(always)]
fn reading_of(row: &[f32]) -> Reading {
    let (low, high) = range_with_zero(row);
    let scale = if high > low { (high - low) / 255.0 } else { 1.0 };
    Reading { scale, zero: (-low / scale).round() }
}

/// The bytes of a row; up to a whole group of them.
#[inline(always)]
fn to_bytes(row: &[f32], bytes: &mut [u8], reading: Reading) {
    // Adding 1.5 * 2^23 rounds to a whole number, whose low bits are the float's.
    const ROUND: f32 = 12_582_912.0;
    let (inverse, zero) = (1.0 / reading.scale, reading.zero + ROUND);
    for (byte, value) in bytes.iter_mut().zip(row) {
        let whole = value.mul_add(inverse, zero);
        let low = if whole < ROUND { ROUND } else { whole };
        let between = if low > ROUND + 255.0 { ROUND + 255.0 } else { low };
        *byte = between.to_bits() as u8;
    }
    bytes[row.len()..row.len().next_multiple_of(GROUP)].fill(0);
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::*;

    use super::{GROUP, PANEL, STRIDE, Sums};

    /// The sums of `count` (1 to 14) rows of bytes, `STRIDE` apart, by a panel of as many rows as they have values.
    ///
    /// # Safety
    /// AVX-512 F and VNNI are there, and `rows` points to `count` such rows.
    #[target_feature(enable = "avx512f,avx512vnni")]
    pub(super) unsafe fn tile(count: usize, rows: *const u8, panel: &[i8], sums: &mut Sums) {
        macro_rules! by_rows {
            ($($count:literal)+) => {
                match count {
                    // SAFETY: as the caller promises.
                    $($count => unsafe { of::<$count>(rows, panel, sums) },)+
                    _ => unreachable!("a tile has as many rows as registers allow"),
                }
            };
        }
        by_rows!(1 2 3 4 5 6 7 8 9 10 11 12 13 14);
    }

    #[target_feature(enable = "avx512f,avx512vnni")]
    unsafe fn of<const ROWS: usize>(rows: *const u8, panel: &[i8], sums: &mut Sums) {
        let mut tile = [[_mm512_setzero_si512(); 2]; ROWS];
        for (at, line) in panel.chunks_exact(PANEL * GROUP).enumerate() {
            // SAFETY: a line has 128 bytes; every row has as many groups of four as the panel has lines.
            unsafe {
                let (left, right) = (
                    _mm512_loadu_si512(line.as_ptr().cast()),
                    _mm512_loadu_si512(line.as_ptr().add(64).cast()),
                );
                for (row, sums) in tile.iter_mut().enumerate() {
                    let group = rows.add(row * STRIDE + at * GROUP).cast::<i32>().read_unaligned();
                    let group = _mm512_set1_epi32(group);
                    sums[0] = _mm512_dpbusd_epi32(sums[0], group, left);
                    sums[1] = _mm512_dpbusd_epi32(sums[1], group, right);
                }
            }
        }
        for (tile, sums) in tile.iter().zip(sums) {
            // SAFETY: a row of sums has 32 values.
            unsafe {
                _mm512_storeu_si512(sums.as_mut_ptr().cast(), tile[0]);
                _mm512_storeu_si512(sums.as_mut_ptr().add(16).cast(), tile[1]);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Processor;
    use super::*;

    /// Within what the rounding of rows and columns to bytes can cost.
    #[track_caller]
    fn check(rows: usize, depth: usize, columns: usize, shift: f32) {
        if Processor::detect() != Some(Processor::Avx512 { vnni: true }) {
            return;
        }
        let value = |at: usize, salt: usize| ((at * 7919 + salt * 104_729) % 2003) as f32 / 1001.0 - 1.0;
        let a: Vec<f32> = (0..rows * depth).map(|at| value(at, 1) + shift).collect();
        let b: Vec<f32> = (0..depth * columns).map(|at| value(at, 2)).collect();
        let bias: Vec<f32> = (0..columns).map(|at| value(at, 3)).collect();
        let panels = BytePanels::new(&b, depth, columns);
        for threads in [1, 2] {
            let mut got = vec![f32::NAN; rows * columns];
            let target = Target::new(&mut got, (rows, columns), columns);
            let finish = Finish { bias: Some(&bias), ..Finish::default() };
            multiply(Rows::new(&a, (rows, depth), depth), &panels, target, finish, threads);
            // A step of a row is (2 + shift) / 255, of a column 1 / 127; errors of half a step add up like noise.
            let step = f64::from((2.0 + shift.abs()) / 255.0).hypot(f64::from(1.0 + shift.abs()) / 127.0);
            let bound = 5.0 * step * 0.3 * (depth as f64).sqrt() + 1e-5;
            for (at, got) in got.iter().enumerate() {
                let (row, column) = (at / columns, at % columns);
                let product = |k: usize| f64::from(a[row * depth + k]) * f64::from(b[k * columns + column]);
                let expected = (0..depth).map(product).sum::<f64>() + f64::from(bias[column]);
                assert!((f64::from(*got) - expected).abs() < bound, "{row}, {column}: {got} for {expected}");
            }
        }
    }

    #[test]
    fn products_of_bytes_are_near_those_of_floats() {
        check(1, 1, 1, 0.0);
        check(50, 64, 48, 0.0);
        check(50, 63, 48, 0.5);
        check(30, 3072, 33, -0.5);
        check(120, 3075, 40, 0.0);
        check(3, 7000, 32, 2.0);
    }

    #[test]
    fn whole_numbers_that_bytes_hold_are_multiplied_exactly() {
        if Processor::detect() != Some(Processor::Avx512 { vnni: true }) {
            return;
        }
        // The rows' steps are 1 and the columns' are 1: nothing is rounded.
        let a: Vec<f32> = (0..2 * 8).map(|at| [0.0, 255.0, 3.0, 7.0][at % 4]).collect();
        let b: Vec<f32> = (0..8 * 3).map(|at| [127.0, -127.0, 5.0, 0.0, -1.0][at % 5]).collect();
        let panels = BytePanels::new(&b, 8, 3);
        let mut got = vec![0.0; 6];
        let target = Target::new(&mut got, (2, 3), 3);
        multiply(Rows::new(&a, (2, 8), 8), &panels, target, Finish::default(), 1);
        let sum = |row: usize, column: usize| (0..8).map(|k| a[row * 8 + k] * b[k * 3 + column]).sum::<f32>();
        let largest = |column: usize| (0..8).map(|k| b[k * 3 + column].abs()).fold(0.0, f32::max);
        assert!((0..3).all(|column| largest(column) == 127.0), "the columns' steps are 1");
        assert_eq!(got, [0, 1].map(|row| [0, 1, 2].map(|column| sum(row, column))).concat());
    }
}
