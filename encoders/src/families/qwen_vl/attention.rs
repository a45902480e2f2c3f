//! Softmax attention of one sequence, with grouped heads: the kernels on a processor, candle's operations elsewhere.

use candle_core::{Result, Tensor};

use super::rotary::Angles;
use crate::device::Placement;
use crate::kernels::{Attention, AttentionMask};

/// Most scores that candle's operations hold at once: 256 MB. Longer sequences go in parts.
const MOST_SCORES: usize = 1 << 26;

/// The heads of queries, keys and values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Heads {
    /// Of the queries.
    pub(super) queries: usize,
    /// Of the keys and of the values, a divisor of `queries`.
    pub(super) kv: usize,
    /// Values of a head.
    pub(super) size: usize,
}

/// Queries, keys and values of consecutive tokens.
pub(super) struct Projected {
    /// (tokens, (queries + 2 kv) * size): queries, keys, values of all heads; not scaled, not rotated.
    pub(super) packed: Tensor,
    pub(super) heads: Heads,
    /// Of each token.
    pub(super) angles: Angles,
}

impl Projected {
    /// The tokens `first..first + count`.
    pub(super) fn part(&self, first: usize, count: usize) -> Result<Projected> {
        let (packed, angles) = (self.packed.narrow(0, first, count)?, self.angles.part(first, count)?);
        Ok(Projected { packed, heads: self.heads, angles })
    }

    /// Rotated queries, (tokens, queries, size).
    pub(super) fn queries(&self) -> Result<Tensor> {
        self.angles.rotate(&self.of_heads(0, self.heads.queries)?)
    }

    /// Rotated keys, (tokens, kv, size).
    pub(super) fn keys(&self) -> Result<Tensor> {
        self.angles.rotate(&self.of_heads(self.heads.queries, self.heads.kv)?)
    }

    /// (tokens, kv, size).
    pub(super) fn values(&self) -> Result<Tensor> {
        self.of_heads(self.heads.queries + self.heads.kv, self.heads.kv)
    }

    fn of_heads(&self, first: usize, count: usize) -> Result<Tensor> {
        let size = self.heads.size;
        self.packed.narrow(1, first * size, count * size)?.contiguous()?.reshape(((), count, size))
    }

    /// Attention within each sequence of `lengths`, which cover all tokens: (tokens, queries * size).
    pub(super) fn attend(&self, lengths: &[usize], causal: bool, placement: &Placement) -> Result<Tensor> {
        let (mut outputs, mut first) = (Vec::new(), 0);
        for run in lengths.chunk_by(|one, other| one == other) {
            let (tokens, count) = (run[0], run.len() * run[0]);
            outputs.push(match placement.processor() {
                Some(processor) => {
                    let Heads { queries: heads, kv: kv_heads, size } = self.heads;
                    let mask = if causal { AttentionMask::Earlier } else { AttentionMask::All };
                    let (angles, scale) = (self.angles.packed_part(first, count)?, scale(size) as f32);
                    let angles = Some(&angles);
                    let is_bf16 = false;
                    Attention { processor, tokens, heads, kv_heads, mask, angles, scale, is_bf16 }
                        .of(&self.packed.narrow(0, first, count)?)?
                }
                None => self.part(first, count)?.each(tokens, causal)?,
            });
            first += count;
        }
        match outputs.len() {
            1 => Ok(outputs.remove(0)),
            _ => Tensor::cat(&outputs, 0),
        }
    }

    /// Attention of sequences of equal length with candle's operations.
    fn each(&self, tokens: usize, causal: bool) -> Result<Tensor> {
        let count = self.packed.dim(0)? / tokens;
        let one = |at: usize| {
            let own = self.part(at * tokens, tokens)?;
            let by_head = |tensor: Tensor| tensor.transpose(0, 1)?.contiguous();
            attend_all(&own.queries()?, &by_head(own.keys()?)?, &by_head(own.values()?)?, causal)
        };
        Tensor::cat(&(0..count).map(one).collect::<Result<Vec<_>>>()?, 0)
    }
}

/// What multiplies the queries of heads of this size.
pub(super) fn scale(head: usize) -> f64 {
    (head as f64).powf(-0.5)
}

/// Attention of the last tokens of one sequence to all of it.
///
/// `queries`: (tokens, heads, head), not scaled. `keys`, `values`: (kv heads, all tokens, head); the queries belong to
/// the last of them. With `causal` a token attends to itself and earlier ones. Gives (tokens, heads * head).
pub(super) fn attend_all(queries: &Tensor, keys: &Tensor, values: &Tensor, causal: bool) -> Result<Tensor> {
    let (tokens, heads, head) = queries.dims3()?;
    let (kv, all, _) = keys.dims3()?;
    let (group, past) = (heads / kv, all - tokens);
    let by_head = (queries * scale(head))?.reshape((tokens, kv, group, head))?.permute((1, 2, 0, 3))?;
    let rows = (MOST_SCORES / (heads * all)).clamp(1, tokens);
    let mut outputs = Vec::new();
    for first in (0..tokens).step_by(rows) {
        let count = rows.min(tokens - first);
        let visible = if causal { past + first + count } else { all };
        let own = by_head.narrow(2, first, count)?.contiguous()?.reshape((kv, group * count, head))?;
        let mut scores = own.matmul(&keys.narrow(1, 0, visible)?.t()?)?;
        if causal && count > 1 {
            let mask = causal_mask(count, visible, queries)?;
            let shape = scores.shape().clone();
            scores = scores.reshape((kv, group, count, visible))?.broadcast_add(&mask)?.reshape(shape)?;
        }
        let weights = candle_nn::ops::softmax_last_dim(&scores)?;
        let output = weights.matmul(&values.narrow(1, 0, visible)?.contiguous()?)?;
        outputs.push(output.reshape((kv, group, count, head))?);
    }
    let output = Tensor::cat(&outputs, 2)?.permute((2, 0, 1, 3))?.contiguous()?;
    output.reshape((tokens, heads * head))
}

/// 0 where one of the last `count` of `visible` tokens may attend, else minus infinity: (count, visible).
fn causal_mask(count: usize, visible: usize, like: &Tensor) -> Result<Tensor> {
    let past = visible - count;
    let value = |at: usize| match at % visible <= past + at / visible {
        true => 0f32,
        false => f32::NEG_INFINITY,
    };
    let values: Vec<f32> = (0..count * visible).map(value).collect();
    Tensor::from_vec(values, (count, visible), like.device())
}

#[cfg(test)]
mod tests {
    use candle_core::Device;

    use super::super::rotary::tower_angles;
    use super::*;
    use crate::Precision;

    fn projected(tokens: usize, heads: Heads) -> Projected {
        let across = (heads.queries + 2 * heads.kv) * heads.size;
        let value = |at: usize| (at * 7919 % 2003) as f32 / 1001.0 - 1.0;
        let values: Vec<f32> = (0..tokens * across).map(value).collect();
        let packed = Tensor::from_vec(values, (tokens, across), &Device::Cpu).unwrap();
        let places: Vec<[usize; 2]> = (0..tokens).map(|token| [token / 3, token % 3]).collect();
        Projected { packed, heads, angles: tower_angles(&places, heads.size, &Device::Cpu).unwrap() }
    }

    #[track_caller]
    fn same(one: &Tensor, other: &Tensor) {
        let values = |tensor: &Tensor| tensor.flatten_all().unwrap().to_vec1::<f32>().unwrap();
        assert_eq!(one.dims(), other.dims());
        let largest = values(one).iter().zip(values(other)).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
        assert!(largest < 1e-5, "{largest}");
    }

    #[test]
    fn kernels_and_operations_agree_and_sequences_do_not_mix() {
        let all = projected(23, Heads { queries: 6, kv: 2, size: 20 });
        for causal in [true, false] {
            let plain = Placement::as_on_a_gpu(Precision::F32);
            let operations = all.attend(&[9, 9, 5], causal, &plain).unwrap();
            same(&all.attend(&[9, 9, 5], causal, &Placement::default()).unwrap(), &operations);
            let alone = all.part(9, 9).unwrap().attend(&[9], causal, &plain).unwrap();
            same(&alone, &operations.narrow(0, 9, 9).unwrap());
        }
    }

    #[test]
    fn the_last_tokens_attend_to_what_was_kept() {
        let all = projected(12, Heads { queries: 4, kv: 2, size: 8 });
        let whole = all.attend(&[12], true, &Placement::as_on_a_gpu(Precision::F32)).unwrap();
        let by_head = |tensor: Tensor| tensor.transpose(0, 1).unwrap().contiguous().unwrap();
        for count in [1, 5] {
            let queries = all.queries().unwrap().narrow(0, 12 - count, count).unwrap();
            let (keys, values) = (by_head(all.keys().unwrap()), by_head(all.values().unwrap()));
            let last = attend_all(&queries, &keys, &values, true).unwrap();
            same(&last, &whole.narrow(0, 12 - count, count).unwrap());
        }
    }
}
