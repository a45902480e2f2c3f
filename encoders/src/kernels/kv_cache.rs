//! Keys and values that a decoder keeps, and the attention of new tokens to them: a few queries against many keys, so no
//! tiles and no packing.

use candle_core::{Result, Storage, Tensor, bail};
use rayon::prelude::*;

use super::attention::RotaryAngles;
use super::elementwise::softmax;
use super::lanes::{Lanes, Work};
use super::sharing::sharing;
use super::{Processor, ops};

/// Products of a token's attention below which one thread is faster than several.
const FEW_PRODUCTS: usize = 1 << 17;

/// Registers that a loop sums into, so that a sum does not wait for the one before.
const SUMS: usize = 4;

/// Rotated keys, and values, of one sequence's tokens in one layer.
#[derive(Debug)]
pub(crate) struct KvCache {
    /// For each head, (tokens, size); so are `values`.
    keys: Vec<Vec<f32>>,
    values: Vec<Vec<f32>>,
    tokens: usize,
}

impl KvCache {
    /// An empty cache for this number of heads of keys.
    pub(crate) fn new(kv_heads: usize) -> KvCache {
        KvCache { keys: vec![Vec::new(); kv_heads], values: vec![Vec::new(); kv_heads], tokens: 0 }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.tokens == 0
    }
}

/// How the tokens that follow those of a cache attend.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CachedAttention<'a> {
    pub(crate) processor: Processor,
    /// Heads of the queries, a multiple of the cache's.
    pub(crate) heads: usize,
    /// Of the new tokens.
    pub(crate) angles: &'a RotaryAngles,
    /// Multiplies the queries.
    pub(crate) scale: f32,
}

impl CachedAttention<'_> {
    /// Adds the keys and values of the next tokens. `packed` is (tokens, (heads + 2 * kv_heads) * size), contiguous f32 on
    /// the CPU: queries, keys, values of all heads, not rotated.
    ///
    /// # Errors
    /// Other types, shapes or devices.
    pub(crate) fn keep(&self, packed: &Tensor, cache: &mut KvCache) -> Result<()> {
        let size = self.size(packed, cache)?;
        of_tensor(packed, |rows| self.keep_rows(rows, size, cache))
    }

    /// Adds the next tokens as [`CachedAttention::keep`] does, and gives their attention to all kept tokens up to
    /// themselves: (tokens, heads * size).
    ///
    /// # Errors
    /// As [`CachedAttention::keep`].
    pub(crate) fn of(&self, packed: &Tensor, cache: &mut KvCache) -> Result<Tensor> {
        let size = self.size(packed, cache)?;
        let (tokens, across) = packed.dims2()?;
        let mut output = vec![0.0; tokens * self.heads * size];
        of_tensor(packed, |rows| {
            let before = cache.tokens;
            self.keep_rows(rows, size, cache);
            let each = rows.chunks_exact(across).zip(output.chunks_exact_mut(self.heads * size));
            for (token, (row, output)) in each.enumerate() {
                self.attend(Query { token, row, seen: before + token + 1, size }, cache, output);
            }
        })?;
        Tensor::from_vec(output, (tokens, self.heads * size), packed.device())
    }

    /// Values of a head.
    fn size(&self, packed: &Tensor, cache: &KvCache) -> Result<usize> {
        let ((tokens, across), kv_heads) = (packed.dims2()?, cache.keys.len());
        let parts = self.heads + 2 * kv_heads;
        if kv_heads == 0 || !self.heads.is_multiple_of(kv_heads) || !across.is_multiple_of(parts) {
            bail!("{across} values are not {} heads that share {kv_heads} of keys", self.heads);
        }
        let size = across / parts;
        if size == 0 || cache.keys[0].len() != cache.tokens * size || !self.angles.fit_tokens(tokens, size) {
            bail!("the cache or the rotary angles do not fit {tokens} tokens and heads of {size} values");
        }
        Ok(size)
    }

    fn keep_rows(&self, rows: &[f32], size: usize, cache: &mut KvCache) {
        let kv_heads = cache.keys.len();
        let across = (self.heads + 2 * kv_heads) * size;
        for (token, row) in rows.chunks_exact(across).enumerate() {
            let (keys, values) = row[self.heads * size..].split_at(kv_heads * size);
            for (key, kept) in keys.chunks_exact(size).zip(&mut cache.keys) {
                let start = kept.len();
                kept.resize(start + size, 0.0);
                self.angles.turn(token, key, &mut kept[start..]);
            }
            for (value, kept) in values.chunks_exact(size).zip(&mut cache.values) {
                kept.extend_from_slice(value);
            }
            cache.tokens += 1;
        }
    }

    /// The attention of one token, (heads * size).
    fn attend(&self, query: Query<'_>, cache: &KvCache, output: &mut [f32]) {
        let Query { token, row, seen, size } = query;
        let group = self.heads / cache.keys.len();
        let one = |(head, output): (usize, &mut [f32])| {
            let mut query = vec![0.0; size];
            self.angles.turn(token, &row[head * size..][..size], &mut query);
            query.iter_mut().for_each(|value| *value *= self.scale);
            let (keys, values) = (&cache.keys[head / group], &cache.values[head / group]);
            let (keys, values) = (&keys[..seen * size], &values[..seen * size]);
            self.processor.run(Head { query: &query, keys, values, scores: &mut vec![0.0; seen], output });
        };
        match sharing() > 1 && self.heads * seen * size >= FEW_PRODUCTS {
            true => output.par_chunks_exact_mut(size).enumerate().for_each(one),
            false => output.chunks_exact_mut(size).enumerate().for_each(one),
        }
    }
}

/// A new token.
struct Query<'a> {
    /// Its place among the new tokens.
    token: usize,
    /// Its packed projection.
    row: &'a [f32],
    /// Kept tokens that it attends to.
    seen: usize,
    /// Values of a head.
    size: usize,
}

fn of_tensor(packed: &Tensor, work: impl FnOnce(&[f32])) -> Result<()> {
    let (storage, layout) = packed.storage_and_layout();
    let Storage::Cpu(storage) = &*storage else { bail!("the tensor is not on the CPU") };
    work(ops::values_of(storage, layout)?);
    Ok(())
}

/// One head of one query.
struct Head<'a> {
    /// Rotated and scaled.
    query: &'a [f32],
    /// (tokens, size); so are `values`.
    keys: &'a [f32],
    values: &'a [f32],
    /// One for each token.
    scores: &'a mut [f32],
    output: &'a mut [f32],
}

impl Work for Head<'_> {
    type Output = ();

    #[inline(always)]
    unsafe fn run<L: Lanes>(self) {
        let Head { query, keys, values, scores, output } = self;
        let size = query.len();
        // SAFETY: the processor has the instructions of `L`, as the caller promises; all slices have whole rows.
        unsafe {
            for (score, key) in scores.iter_mut().zip(keys.chunks_exact(size)) {
                *score = dot::<L>(query, key);
            }
            let factor = softmax::<L>(scores.as_mut_ptr(), scores.len(), scores.len());
            let means = Means { scores, factor, values, size };
            let mut column = 0;
            while size - column >= SUMS * L::COUNT {
                means.write::<L, SUMS>(column, output);
                column += SUMS * L::COUNT;
            }
            while size - column >= L::COUNT {
                means.write::<L, 1>(column, output);
                column += L::COUNT;
            }
            for (column, output) in output.iter_mut().enumerate().skip(column) {
                let pairs = scores.iter().zip(values.iter().skip(column).step_by(size));
                *output = factor * pairs.map(|(score, value)| score * value).sum::<f32>();
            }
        }
    }
}

/// # Safety
/// The processor has the instructions of `L`; both have as many values.
#[inline(always)]
unsafe fn dot<L: Lanes>(one: &[f32], other: &[f32]) -> f32 {
    let (whole, step) = (one.len() / L::COUNT * L::COUNT, SUMS * L::COUNT);
    // SAFETY: as the caller promises.
    unsafe {
        let pair = |at: usize| (L::load(one.as_ptr().add(at)), L::load(other.as_ptr().add(at)));
        let mut sums = [L::splat(0.0); SUMS];
        for first in (0..whole / step * step).step_by(step) {
            for (part, sum) in sums.iter_mut().enumerate() {
                let (one, other) = pair(first + part * L::COUNT);
                *sum = one.times_plus(other, *sum);
            }
        }
        let [mut first, second, third, fourth] = sums;
        for at in (whole / step * step..whole).step_by(L::COUNT) {
            let (one, other) = pair(at);
            first = one.times_plus(other, first);
        }
        let rest = one[whole..].iter().zip(&other[whole..]).map(|(one, other)| one * other).sum::<f32>();
        first.plus(second).plus(third.plus(fourth)).sum() + rest
    }
}

/// Values of all tokens, weighted by their scores.
#[derive(Clone, Copy)]
struct Means<'a> {
    scores: &'a [f32],
    /// Normalises the scores.
    factor: f32,
    /// (tokens, size).
    values: &'a [f32],
    size: usize,
}

impl Means<'_> {
    /// Writes `N` registers of columns, from `column` on.
    ///
    /// # Safety
    /// The processor has the instructions of `L`; the columns exist.
    #[inline(always)]
    unsafe fn write<L: Lanes, const N: usize>(self, column: usize, output: &mut [f32]) {
        // SAFETY: as the caller promises.
        unsafe {
            let mut sums = [L::splat(0.0); N];
            for (score, row) in self.scores.iter().zip(self.values.chunks_exact(self.size)) {
                let (score, row) = (L::splat(*score), row.as_ptr().add(column));
                for (part, sum) in sums.iter_mut().enumerate() {
                    *sum = score.times_plus(L::load(row.add(part * L::COUNT)), *sum);
                }
            }
            let factor = L::splat(self.factor);
            for (part, sum) in sums.into_iter().enumerate() {
                sum.times(factor).store(output.as_mut_ptr().add(column + part * L::COUNT));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use candle_core::Device;

    use super::super::attention::RotaryPairs;
    use super::super::{Attention, AttentionMask};
    use super::*;

    /// Tokens that come in parts attend as all of them at once.
    #[track_caller]
    fn check(parts: &[usize], heads: usize, kv_heads: usize, size: usize) {
        let Some(best) = Processor::detect() else { return };
        let (tokens, across) = (parts.iter().sum::<usize>(), (heads + 2 * kv_heads) * size);
        let values: Vec<f32> =
            (0..tokens * across).map(|at| (at * 7919 % 1013) as f32 / 500.0 - 1.0).collect();
        let packed = Tensor::from_vec(values, (tokens, across), &Device::Cpu).unwrap();
        let angles: Vec<f32> = (0..tokens * size / 2).map(|at| (at * 31 % 17) as f32 * 0.3).collect();
        let angles = RotaryAngles::new(&angles, RotaryPairs::Halves);
        for processor in [best, Processor::Avx2] {
            let scale = 0.3;
            let mask = AttentionMask::Earlier;
            let of_all = Some(&angles);
            let whole =
                Attention { processor, tokens, heads, kv_heads, mask, angles: of_all, scale, is_bf16: false };
            let whole = whole.of(&packed);
            let (mut cache, mut first, mut outputs) = (KvCache::new(kv_heads), 0, Vec::new());
            for count in parts {
                let angles = angles.part(first, *count, size);
                let attention = CachedAttention { processor, heads, angles: &angles, scale };
                outputs.push(attention.of(&packed.narrow(0, first, *count).unwrap(), &mut cache).unwrap());
                first += count;
            }
            let off = (Tensor::cat(&outputs, 0).unwrap() - whole.unwrap()).unwrap().abs().unwrap();
            let off = off.flatten_all().unwrap().max(0).unwrap().to_scalar::<f32>().unwrap();
            assert!(off < 1e-5, "{off}");
        }
    }

    #[test]
    fn tokens_that_come_in_parts_attend_as_all_at_once() {
        check(&[1], 1, 1, 2);
        check(&[7, 1, 1, 3], 4, 2, 20);
        check(&[40, 1, 1], 6, 1, 128);
        check(&[5, 30], 3, 3, 72);
        // Enough products for several threads.
        check(&[150, 1], 8, 2, 128);
    }

    #[test]
    fn rows_of_another_shape_are_refused() {
        let Some(processor) = Processor::detect() else { return };
        let angles = RotaryAngles::new(&[0.0; 4], RotaryPairs::Halves);
        let attention = CachedAttention { processor, heads: 2, angles: &angles, scale: 1.0 };
        let rows =
            |tokens, across| Tensor::zeros((tokens, across), candle_core::DType::F32, &Device::Cpu).unwrap();
        let mut cache = KvCache::new(1);
        attention.keep(&rows(1, 32), &mut cache).unwrap();
        for wrong in [rows(1, 33), rows(1, 16), rows(2, 32), rows(4, 8).t().unwrap()] {
            assert!(attention.of(&wrong, &mut cache).is_err());
            assert!(attention.keep(&wrong, &mut cache).is_err());
        }
        assert_eq!(cache.tokens, 1);
    }
}
