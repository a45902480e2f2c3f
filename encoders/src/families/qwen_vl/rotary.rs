//! Rotary positions: two axes in the tower (rows, columns), three in the decoder (time, rows, columns; M-RoPE,
//! arXiv 2409.12191). The halves of a head are rotated.

use candle_core::{Device, Result, Tensor};

use super::config::{Generation, TextConfig};
use crate::kernels::{RotaryAngles, RotaryPairs};

/// A token's positions in time, rows and columns.
pub(crate) type Position = [u32; 3];

/// Cosines and sines of tokens.
#[derive(Debug, Clone)]
pub(super) struct Angles {
    /// (tokens, half of a head), for candle's operations; so is `sin`.
    cos: Tensor,
    sin: Tensor,
    /// For the processor's kernels.
    packed: RotaryAngles,
}

impl Angles {
    fn of(angles: &[f32], half: usize, device: &Device) -> Result<Angles> {
        let shape = (angles.len() / half, half);
        let tensor = |values: Vec<f32>| Tensor::from_vec(values, shape, device);
        let cos = tensor(angles.iter().map(|angle| angle.cos()).collect())?;
        let sin = tensor(angles.iter().map(|angle| angle.sin()).collect())?;
        Ok(Angles { cos, sin, packed: RotaryAngles::new(angles, RotaryPairs::Halves) })
    }

    /// The angles of the tokens `first..first + count`.
    pub(super) fn part(&self, first: usize, count: usize) -> Result<Angles> {
        let part = |tensor: &Tensor| tensor.narrow(0, first, count)?.contiguous();
        Ok(Angles { cos: part(&self.cos)?, sin: part(&self.sin)?, packed: self.packed_part(first, count)? })
    }

    /// The same for the processor's kernels.
    pub(super) fn packed_part(&self, first: usize, count: usize) -> Result<RotaryAngles> {
        Ok(self.packed.part(first, count, 2 * self.cos.dim(1)?))
    }

    /// Rotates `x` of (tokens, heads, head), f32.
    pub(super) fn rotate(&self, x: &Tensor) -> Result<Tensor> {
        let x = x.contiguous()?.unsqueeze(0)?;
        candle_nn::rotary_emb::rope_thd(&x, &self.cos, &self.sin)?.squeeze(0)
    }
}

/// The base of the tower's frequencies.
const TOWER_BASE: f64 = 10_000.0;

/// Angles of the tower's patches by row and column: the first quarter of a head's values follows the row, the second
/// the column.
pub(super) fn tower_angles(places: &[[usize; 2]], head: usize, device: &Device) -> Result<Angles> {
    let frequencies = frequencies(TOWER_BASE, head / 2);
    let mut angles = Vec::with_capacity(places.len() * head / 2);
    for place in places {
        for at in place {
            angles.extend(frequencies.iter().map(|frequency| *at as f32 * frequency));
        }
    }
    Angles::of(&angles, head / 2, device)
}

/// `base^(-2i / values)` for each of `values / 2` pairs.
fn frequencies(base: f64, values: usize) -> Vec<f32> {
    let exponent = |pair: usize| (2 * pair) as f32 / values as f32;
    (0..values / 2).map(|pair| 1.0 / (base as f32).powf(exponent(pair))).collect()
}

/// The decoder's rotary positions.
#[derive(Debug, Clone)]
pub(super) struct MultiRotary {
    /// For each pair of a head.
    frequencies: Vec<f32>,
    /// The axis that each pair follows.
    axes: Vec<usize>,
}

impl MultiRotary {
    pub(super) fn new(config: &TextConfig, generation: Generation) -> MultiRotary {
        let axes = match generation {
            Generation::Two | Generation::TwoFive => consecutive(config.sections),
            Generation::Three => interleaved(config.sections),
        };
        MultiRotary { frequencies: frequencies(config.rope_theta, config.head), axes }
    }

    pub(super) fn angles(&self, positions: &[Position], device: &Device) -> Result<Angles> {
        let pairs = || self.frequencies.iter().zip(&self.axes);
        let of = |at: &Position| pairs().map(|(frequency, axis)| at[*axis] as f32 * frequency).collect();
        let angles: Vec<f32> = positions.iter().flat_map::<Vec<f32>, _>(of).collect();
        Angles::of(&angles, self.frequencies.len(), device)
    }
}

/// Sections one after the other: all pairs of time, then all of rows, then all of columns.
fn consecutive(sections: [usize; 3]) -> Vec<usize> {
    sections.into_iter().enumerate().flat_map(|(axis, pairs)| std::iter::repeat_n(axis, pairs)).collect()
}

/// Time, rows and columns in turn while rows and columns have pairs left; time has the rest.
fn interleaved(sections: [usize; 3]) -> Vec<usize> {
    let [time, rows, columns] = sections;
    let axis = |pair: usize| match pair % 3 {
        1 if pair < 3 * rows => 1,
        2 if pair < 3 * columns => 2,
        _ => 0,
    };
    (0..time + rows + columns).map(axis).collect()
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// The axis of each pair, for the reference's table.
    pub(in super::super) fn axes(sections: [usize; 3], is_interleaved: bool) -> Vec<usize> {
        if is_interleaved { interleaved(sections) } else { consecutive(sections) }
    }

    #[test]
    fn sections_follow_each_other_or_take_turns() {
        assert_eq!(consecutive([1, 2, 2]), [0, 1, 1, 2, 2]);
        assert_eq!(interleaved([4, 2, 2]), [0, 1, 2, 0, 1, 2, 0, 0]);
    }

    #[test]
    fn a_quarter_of_a_head_follows_rows_and_the_next_columns() {
        let angles = tower_angles(&[[2, 1]], 8, &Device::Cpu).unwrap();
        let cos = angles.cos.to_vec2::<f32>().unwrap();
        let expected = [2.0f32, 0.02, 1.0, 0.01].map(f32::cos);
        assert!(cos[0].iter().zip(expected).all(|(got, want)| (got - want).abs() < 1e-6), "{cos:?}");
    }
}
