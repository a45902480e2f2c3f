//! How a product is split into parts for threads and caches, and the memory to prefetch during other work.

use super::lanes::Lanes;

/// The part of a product that one thread computes: some rows by some panels.
#[derive(Debug, Clone, Copy)]
pub(super) struct Piece {
    pub(super) rows: (usize, usize),
    pub(super) panels: (usize, usize),
}

/// How the rows of a product are split: a part has at most `most` rows and begins at a multiple of `step`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Blocks {
    pub(super) most: usize,
    pub(super) step: usize,
}

/// Splits a product into enough parts for all threads, by rows if there are enough.
pub(super) fn parts(rows: usize, panels: usize, threads: usize, of: Blocks) -> Vec<Piece> {
    let blocks = even_steps(rows, rows.div_ceil(of.most), of.step);
    let across =
        if threads < 2 { 1 } else { (2 * threads).div_ceil(blocks.len().max(1)).clamp(1, panels.max(1)) };
    let columns = even(panels, across);
    blocks
        .into_iter()
        .flat_map(|rows| columns.iter().map(move |panels| Piece { rows, panels: *panels }))
        .collect()
}

/// Splits `0..count` into `pieces` ranges of nearly equal length.
pub(super) fn even(count: usize, pieces: usize) -> Vec<(usize, usize)> {
    even_steps(count, pieces, 1)
}

/// As [`even`], but only at multiples of `step`.
pub(super) fn even_steps(count: usize, pieces: usize, step: usize) -> Vec<(usize, usize)> {
    let steps = count.div_ceil(step);
    let end = |piece: usize| (piece * steps / pieces * step).min(count);
    (0..pieces).map(|piece| (end(piece), end(piece + 1))).collect()
}

/// What a part of a product multiplies after a panel of the depth block `at`: the panel, and the values of its depth block.
pub(super) fn after(
    part: Piece,
    panel: usize,
    depths: &[(usize, usize)],
    at: usize,
) -> Option<(usize, (usize, usize))> {
    match panel + 1 < part.panels.1 {
        true => Some((panel + 1, depths[at])),
        false => depths.get(at + 1).map(|depth| (part.panels.0, *depth)),
    }
}

/// Memory needed soon, prefetched from RAM during other work.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ahead<'a>(&'a [u8]);

/// Bytes of a cache line.
const LINE: usize = 64;
/// Lines that one step prefetches: processors bring them in pairs.
const LINES_AT_ONCE: usize = 2;

impl<'a> Ahead<'a> {
    /// The share of `next` to prefetch during one of several tiles.
    #[inline(always)]
    pub(super) fn share<T: Copy>(next: &'a [T], tile: usize, tiles: usize) -> Ahead<'a> {
        // SAFETY: any slice of numbers is valid as bytes.
        let bytes = unsafe { std::slice::from_raw_parts(next.as_ptr().cast::<u8>(), size_of_val(next)) };
        let share = bytes.len().div_ceil(tiles).next_multiple_of(2 * LINE);
        let from = (tile * share).min(bytes.len());
        Ahead(&bytes[from..(from + share).min(bytes.len())])
    }

    /// No prefetch.
    pub(super) fn nothing() -> Self {
        Ahead(&[])
    }

    /// The first address, and the number of cache lines.
    pub(super) fn lines(self) -> (*const u8, usize) {
        (self.0.as_ptr(), self.0.len().div_ceil(LINE))
    }

    /// Divides the memory into `shares` shares, of which the last ones may be smaller or empty.
    pub(super) fn divided(self, shares: usize) -> Shares {
        let (next, left) = self.lines();
        Shares { next, left, most: left.div_ceil(shares.max(1)) }
    }

    /// Spreads the prefetches evenly over the `steps` steps of a product. In a burst they would fill the few buffers of L1's
    /// misses, and the product's own loads from L2 would wait.
    #[inline(always)]
    pub(super) fn spread(self, steps: usize) -> Spread {
        let (next, left) = self.lines();
        let turns = left.div_ceil(LINES_AT_ONCE);
        let every = (steps / turns.max(1)).max(1);
        Spread {
            next,
            turn: if turns == 0 { usize::MAX } else { 0 },
            every,
            last: turns.saturating_sub(1) * every,
        }
    }
}

/// Memory that a product prefetches at regular intervals, two cache lines each time.
pub(super) struct Spread {
    next: *const u8,
    /// The next step that prefetches; `usize::MAX` if none is left.
    turn: usize,
    /// Steps from one that prefetches to the next.
    every: usize,
    /// The last step that prefetches.
    last: usize,
}

impl Spread {
    /// Prefetches the next lines if it is this step's turn. The caller counts steps from 0 without a gap.
    #[inline(always)]
    pub(super) fn fetch<L: Lanes>(&mut self, step: usize) {
        if step == self.turn {
            for line in 0..LINES_AT_ONCE {
                L::prefetch_far(self.next.wrapping_add(line * LINE));
            }
            self.take_turn();
        }
    }

    #[inline(always)]
    fn take_turn(&mut self) {
        self.next = self.next.wrapping_add(LINES_AT_ONCE * LINE);
        self.turn = if self.turn < self.last { self.turn + self.every } else { usize::MAX };
    }
}

/// Memory that is prefetched share by share.
pub(super) struct Shares {
    next: *const u8,
    /// Cache lines that no share had yet.
    left: usize,
    /// Cache lines of a share.
    most: usize,
}

impl Shares {
    /// Prefetches the next share.
    #[inline(always)]
    pub(super) fn fetch_share<L: Lanes>(&mut self) {
        let lines = self.most.min(self.left);
        for line in 0..lines {
            L::prefetch_far(self.next.wrapping_add(line * LINE));
        }
        self.next = self.next.wrapping_add(lines * LINE);
        self.left -= lines;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Spreads `lines` cache lines over `steps` steps, and compares the steps that prefetch with `expected`. Each of them
    /// must prefetch the lines that follow those of the one before.
    #[track_caller]
    fn check(lines: usize, steps: usize, expected: &[usize]) {
        let bytes = vec![0_u8; lines * LINE];
        let mut spread = Ahead(&bytes).spread(steps);
        let mut got = Vec::new();
        for step in 0..steps {
            if step == spread.turn {
                assert_eq!(spread.next, bytes[got.len() * LINES_AT_ONCE * LINE..].as_ptr());
                spread.take_turn();
                got.push(step);
            }
        }
        assert_eq!(got, expected);
    }

    #[test]
    fn lines_are_spread_over_all_steps() {
        check(0, 8, &[]);
        check(1, 8, &[0]);
        check(8, 16, &[0, 4, 8, 12]);
        check(7, 16, &[0, 4, 8, 12]);
        check(6, 16, &[0, 5, 10]);
        check(8, 4, &[0, 1, 2, 3]);
        // No step prefetches more than two lines.
        check(20, 4, &[0, 1, 2, 3]);
        check(8, 0, &[]);
    }
}
