//! Keys and values that the decoder keeps of a sequence, and the attention of the tokens that follow: the kernels on a
//! processor, candle's operations elsewhere.

use candle_core::{Result, Tensor};
use candle_nn::kv_cache::KvCache as TensorCache;

use super::attention::{Heads, Projected, attend_all, scale};
use crate::device::Placement;
use crate::kernels::{CachedAttention, KvCache, Processor};

/// Tokens by which a cache of tensors grows.
const CACHE_STEP: usize = 256;

/// Keys and values of one sequence, layer by layer, after rotation.
#[derive(Debug)]
pub(super) struct Cache {
    pub(super) layers: Vec<LayerCache>,
}

/// Keys and values of one sequence in one layer.
#[derive(Debug)]
pub(super) enum LayerCache {
    Kernels(Processor, KvCache),
    Operations(TensorCache),
}

impl Cache {
    /// An empty cache for a decoder of this depth.
    pub(super) fn new(depth: usize, kv_heads: usize, placement: &Placement) -> Cache {
        let layer = || match placement.processor() {
            Some(processor) => LayerCache::Kernels(processor, KvCache::new(kv_heads)),
            None => LayerCache::Operations(TensorCache::new(1, CACHE_STEP)),
        };
        Cache { layers: (0..depth).map(|_| layer()).collect() }
    }
}

impl LayerCache {
    /// Adds the tokens `first..first + count` of `projected` to the sequence. Each attends to all earlier tokens of the
    /// sequence and to itself: (count, queries * size).
    pub(super) fn attend(
        &mut self,
        projected: &Projected,
        first: usize,
        count: usize,
        placement: &Placement,
    ) -> Result<Tensor> {
        match self {
            LayerCache::Kernels(processor, cache) => {
                let (packed, angles) =
                    (projected.packed.narrow(0, first, count)?, projected.angles.packed_part(first, count)?);
                let Heads { queries: heads, size, .. } = projected.heads;
                let (processor, scale) = (*processor, scale(size) as f32);
                let attention = CachedAttention { processor, heads, angles: &angles, scale };
                if !cache.is_empty() {
                    return attention.of(&packed, cache);
                }
                attention.keep(&packed, cache)?;
                projected.part(first, count)?.attend(&[count], true, placement)
            }
            LayerCache::Operations(cache) => {
                let own = projected.part(first, count)?;
                let is_first = cache.current_seq_len() == 0;
                let by_head = |tensor: Tensor| tensor.transpose(0, 1)?.contiguous();
                let (keys, values) = cache.append(&by_head(own.keys()?)?, &by_head(own.values()?)?)?;
                match is_first {
                    true => own.attend(&[count], true, placement),
                    false => attend_all(&own.queries()?, &keys, &values, true),
                }
            }
        }
    }
}
