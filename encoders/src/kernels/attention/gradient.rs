//! The gradient of self-attention, head by head. Softmax weights are computed again: a store of them would be read from
//! memory.

use std::cell::RefCell;

use rayon::prelude::*;

use super::super::Cores;
use super::super::blocking::even;
use super::super::elementwise::softmax;
use super::super::lanes::{Lanes, Work};
use super::super::matrix::{Aligned, PANEL, Panels, Target};
use super::panels::{HeadPanels, TileRows};
use super::{Heads, scale};

/// Buffers for one head of one sequence; reused for the next.
struct Scratch {
    panels: Panels,
    /// Softmax weights, a row for each query.
    weights: Aligned<f32>,
    /// Gradients of these weights, then of the scores.
    pulls: Aligned<f32>,
    /// One of both with a row for each key.
    turned: Aligned<f32>,
    /// Sums of a few rows.
    sums: Aligned<f32>,
}

thread_local! {
    static SCRATCH: RefCell<Scratch> = RefCell::new(Scratch {
        panels: Panels::empty(),
        weights: Aligned::zeros(0),
        pulls: Aligned::zeros(0),
        turned: Aligned::zeros(0),
        sums: Aligned::zeros(0),
    });
}

/// Writes the gradient of `packed` to all of `target`, both (batch * tokens, 3 * heads * size). `gradient` is that of the
/// attention output, (batch * tokens, heads * size).
///
/// # Panics
/// If the shapes do not fit, heads share keys, or queries and keys are rotated or rounded.
pub(in super::super) fn gradient_of_attention(
    cores: Cores,
    packed: &[f32],
    gradient: &[f32],
    target: Target,
    heads: Heads<'_>,
) {
    let (width, across) = (heads.width(), heads.across());
    assert!(heads.heads == heads.kv_heads && heads.angles.is_none() && !heads.is_bf16);
    assert_eq!(packed.len(), heads.batch * heads.tokens * across);
    assert_eq!(gradient.len(), heads.batch * heads.tokens * width);
    assert_eq!((target.rows, target.columns), (heads.batch * heads.tokens, across));
    let one = |at: usize| {
        let (sequence, head) = (at / heads.heads, at % heads.heads);
        let first = sequence * heads.tokens;
        let one = HeadGradient {
            packed: &packed[first * across..][..heads.tokens * across],
            gradient: &gradient[first * width..][..heads.tokens * width],
            target: target.rows(first, heads.tokens),
            heads,
            sequence,
            head,
        };
        SCRATCH.with_borrow_mut(|scratch| cores.processor.run(GradientWith { one, scratch }));
    };
    let count = heads.batch * heads.heads;
    match cores.threads {
        0 | 1 => (0..count).for_each(one),
        _ => (0..count).into_par_iter().for_each(one),
    }
}

/// One head of one sequence.
#[derive(Clone, Copy)]
struct HeadGradient<'a> {
    /// The sequence's tokens, here and in the next two.
    packed: &'a [f32],
    gradient: &'a [f32],
    target: Target,
    heads: Heads<'a>,
    sequence: usize,
    head: usize,
}

/// Queries, keys or values, in their order in the packed projection.
#[derive(Clone, Copy)]
enum Part {
    Queries,
    Keys,
    Values,
}

impl<'a> HeadGradient<'a> {
    /// The values of this head of a token.
    #[inline(always)]
    fn part(&self, token: usize, part: Part) -> &'a [f32] {
        let at = token * self.heads.across() + part as usize * self.heads.width();
        &self.packed[at + self.head * self.heads.size..][..self.heads.size]
    }

    /// The gradient of this head's output for a token.
    #[inline(always)]
    fn of_output(&self, token: usize) -> &'a [f32] {
        &self.gradient[token * self.heads.width() + self.head * self.heads.size..][..self.heads.size]
    }

    /// The place of the gradient of `part`, (tokens, size).
    #[inline(always)]
    fn place(&self, part: Part) -> Target {
        let first = part as usize * self.heads.width() + self.head * self.heads.size;
        self.target.columns(first, self.heads.size)
    }
}

/// A head and the buffers of its thread.
struct GradientWith<'a> {
    one: HeadGradient<'a>,
    scratch: &'a mut Scratch,
}

impl Work for GradientWith<'_> {
    type Output = ();

    #[inline(always)]
    unsafe fn run<L: Lanes>(self) {
        let GradientWith { one, scratch: Scratch { panels, weights, pulls, turned, sums } } = self;
        let Heads { tokens, size, .. } = one.heads;
        // Padded, so that the rows do not fall into the same sets of the L1 cache.
        let across = tokens.next_multiple_of(PANEL) + 16;
        for buffer in [&mut *weights, pulls, turned] {
            buffer.reserve(tokens * across);
        }
        sums.reserve(L::TILE * size.next_multiple_of(PANEL));
        let (weights, pulls, turned) = (weights.values_mut(), pulls.values_mut(), turned.values_mut());
        let sums = sums.values_mut();
        let shape = Square { tokens, across };
        // SAFETY: as the caller promises. The buffers have a row of `across` values for each token, and `sums` one of
        // `size` values, rounded up to whole panels, for each row of a tile.
        unsafe {
            one.pack_columns(panels, |token| one.part(token, Part::Keys));
            let rows = Strided { first: one.part(0, Part::Queries).as_ptr(), stride: one.heads.across() };
            multiply_square::<L>(panels, rows, weights, shape);
            one.weigh::<L>(weights, across);

            one.pack_columns(panels, |token| one.part(token, Part::Values));
            let rows = Strided { first: one.of_output(0).as_ptr(), stride: one.heads.width() };
            multiply_square::<L>(panels, rows, pulls, shape);
            for (weights, pulls) in weights.chunks(across).zip(pulls.chunks_mut(across)).take(tokens) {
                of_scores::<L>(&weights[..tokens], &mut pulls[..tokens], one.heads.scale);
            }

            one.pack_rows::<L>(panels, |token| one.part(token, Part::Keys));
            one.multiply_into::<L>(panels, pulls, across, sums, Part::Queries);
            shape.turn(pulls, turned);
            one.pack_rows::<L>(panels, |token| one.part(token, Part::Queries));
            one.multiply_into::<L>(panels, turned, across, sums, Part::Keys);
            shape.turn(weights, turned);
            one.pack_rows::<L>(panels, |token| one.of_output(token));
            one.multiply_into::<L>(panels, turned, across, sums, Part::Values);
        }
    }
}

impl<'a> HeadGradient<'a> {
    /// Packs a column for each token.
    #[inline(always)]
    fn pack_columns(&self, panels: &mut Panels, column: impl Fn(usize) -> &'a [f32]) {
        panels.reshape(self.heads.size, self.heads.tokens);
        for token in 0..self.heads.tokens {
            panels.set_column(token, column(token));
        }
    }

    /// Packs a row for each token.
    ///
    /// # Safety
    /// The processor has the instructions of `L`.
    #[inline(always)]
    unsafe fn pack_rows<L: Lanes>(&self, panels: &mut Panels, row: impl Fn(usize) -> &'a [f32]) {
        panels.reshape(self.heads.tokens, self.heads.size);
        for token in 0..self.heads.tokens {
            // SAFETY: as the caller promises.
            unsafe { panels.set_row::<L>(token, row(token)) };
        }
    }

    /// Scales the scores, and replaces them by their softmax.
    ///
    /// # Safety
    /// The processor has the instructions of `L`; there is a row for each token.
    #[inline(always)]
    unsafe fn weigh<L: Lanes>(&self, scores: &mut [f32], across: usize) {
        let Heads { tokens, mask, scale: factor, .. } = self.heads;
        for (token, row) in scores.chunks_mut(across).take(tokens).enumerate() {
            let (seen, row) = (mask.of(self.sequence, token, tokens), &mut row[..tokens]);
            row.iter_mut().for_each(|score| *score *= factor);
            // SAFETY: as the caller promises.
            let factor = unsafe { softmax::<L>(row.as_mut_ptr(), seen, tokens) };
            row.iter_mut().for_each(|weight| *weight *= factor);
        }
    }

    /// Writes the products of square `rows` with packed rows to the place of `part`.
    ///
    /// # Safety
    /// The processor has the instructions of `L`; there are a row of `across` values for each token, and sums for a tile.
    #[inline(always)]
    unsafe fn multiply_into<L: Lanes>(
        &self,
        panels: &mut Panels,
        rows: &[f32],
        across: usize,
        sums: &mut [f32],
        part: Part,
    ) {
        let Heads { tokens, size, .. } = self.heads;
        let (place, sums_across) = (self.place(part), size.next_multiple_of(PANEL));
        for (first, last) in even(tokens, tokens.div_ceil(L::TILE)) {
            let count = last - first;
            let rows = rows[first * across..].as_ptr();
            let tile = TileRows { rows, stride: across, count, length: tokens };
            // SAFETY: as the caller promises; the target has a row of `size` columns for each token.
            unsafe {
                panels.multiply::<L>(tile, size, sums.as_mut_ptr(), sums_across, None);
                for row in 0..count {
                    scale::<L>(&sums[row * sums_across..][..size], 1.0, place.at(first + row, 0));
                }
            }
        }
    }
}

/// A row for each token, with a value for each token.
#[derive(Clone, Copy)]
struct Square {
    tokens: usize,
    /// Values from one row to the next.
    across: usize,
}

impl Square {
    /// Writes the transpose.
    #[inline(always)]
    fn turn(self, from: &[f32], to: &mut [f32]) {
        for (row, values) in from.chunks(self.across).take(self.tokens).enumerate() {
            for (column, value) in values[..self.tokens].iter().enumerate() {
                to[column * self.across + row] = *value;
            }
        }
    }
}

/// Rows, each `stride` values after the one before.
#[derive(Clone, Copy)]
struct Strided {
    first: *const f32,
    stride: usize,
}

/// Writes the products of a row for each token with the packed columns, one for each token.
///
/// # Safety
/// The processor has the instructions of `L`; the rows are as long as the panels are deep, and there is room for the
/// square.
#[inline(always)]
unsafe fn multiply_square<L: Lanes>(panels: &mut Panels, rows: Strided, into: &mut [f32], shape: Square) {
    let Square { tokens, across } = shape;
    for (first, last) in even(tokens, tokens.div_ceil(L::TILE)) {
        let from = rows.first.wrapping_add(first * rows.stride);
        let tile = TileRows { rows: from, stride: rows.stride, count: last - first, length: panels.depth };
        // SAFETY: as the caller promises.
        unsafe { panels.multiply::<L>(tile, tokens, into[first * across..].as_mut_ptr(), across, None) };
    }
}

/// Replaces a row of gradients of softmax weights by those of the scores before `factor`.
///
/// # Safety
/// The processor has the instructions of `L`.
#[inline(always)]
unsafe fn of_scores<L: Lanes>(weights: &[f32], pulls: &mut [f32], factor: f32) {
    assert_eq!(weights.len(), pulls.len());
    let (whole, rest) = (weights.len() / L::COUNT * L::COUNT, weights.len() % L::COUNT);
    let (weights, pulls) = (weights.as_ptr(), pulls.as_mut_ptr());
    // SAFETY: as the caller promises; all values lie in the rows.
    unsafe {
        let none = L::splat(0.0);
        let mut sum = none;
        for at in (0..whole).step_by(L::COUNT) {
            sum = L::load(weights.add(at)).times_plus(L::load(pulls.add(at)), sum);
        }
        if rest > 0 {
            let pull = L::load_first(rest, pulls.add(whole), none);
            sum = L::load_first(rest, weights.add(whole), none).times_plus(pull, sum);
        }
        let (common, factor) = (L::splat(sum.sum()), L::splat(factor));
        for at in (0..whole).step_by(L::COUNT) {
            let pull = L::load(pulls.add(at)).minus(common).times(factor);
            L::load(weights.add(at)).times(pull).store(pulls.add(at));
        }
        if rest > 0 {
            let pull = L::load_first(rest, pulls.add(whole), none).minus(common).times(factor);
            L::load_first(rest, weights.add(whole), none).times(pull).store_first(rest, pulls.add(whole));
        }
    }
}
