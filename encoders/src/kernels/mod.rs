//! The inner loops of transformers on x86-64 CPUs, chosen at run time. Matrix products over weights packed at load,
//! with fused bias, activation and residual; attention on the packed projection; layer norms.
//!
//! All kernels work on f32 tensors on the CPU, for inference only (no gradients), and need a [`Processor`]. There is
//! none without AVX2 and FMA, or on other architectures. Callers then use candle's operations, whose kernels are tuned
//! for other processors.
#![cfg_attr(
    not(target_arch = "x86_64"),
    allow(dead_code, unused_variables, reason = "without a processor no kernel is called")
)]
#![allow(unsafe_code, reason = "vector instructions, and threads that write to disjoint parts of one matrix")]

mod attention;
mod bf16;
mod elementwise;
mod finish;
mod float;
mod int8;
mod kv_cache;
mod lanes;
mod matrix;
mod norm;
mod ops;
mod pairs;

pub(crate) use attention::{AttentionMask, RotaryAngles, RotaryPairs};
pub(crate) use elementwise::Activation;
pub(crate) use kv_cache::{CachedAttention, KvCache};
pub(crate) use norm::Norm;
pub(crate) use ops::{Attention, Beside, PackedLinear};

/// The usable instruction sets; a value proves that the processor has them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Processor {
    /// AVX2 and FMA.
    Avx2,
    /// AVX-512 F, BW, DQ and VL.
    Avx512 {
        /// Whether byte products (VNNI) exist too.
        vnni: bool,
        /// Whether products of bf16 numbers (AVX512-BF16) exist too.
        bf16: bool,
    },
}

/// The processor and the threads for a product.
#[derive(Debug, Clone, Copy)]
struct Cores {
    processor: Processor,
    /// Threads of the current pool that share the work.
    threads: usize,
}

impl Processor {
    /// This machine's instruction sets; `None` where these kernels cannot run.
    #[cfg(target_arch = "x86_64")]
    pub(crate) fn detect() -> Option<Processor> {
        let has_512 = is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512dq")
            && is_x86_feature_detected!("avx512vl");
        let has_256 = is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma");
        match (has_512 && has_256, has_256) {
            (true, _) => Some(Processor::Avx512 {
                vnni: is_x86_feature_detected!("avx512vnni"),
                bf16: is_x86_feature_detected!("avx512bf16"),
            }),
            (false, true) => Some(Processor::Avx2),
            (false, false) => None,
        }
    }

    /// Whether the processor multiplies bytes.
    fn has_vnni(self) -> bool {
        matches!(self, Processor::Avx512 { vnni: true, .. })
    }

    /// Whether the processor multiplies bf16 numbers.
    fn has_bf16(self) -> bool {
        matches!(self, Processor::Avx512 { bf16: true, .. })
    }

    /// This machine's instruction sets; `None` where these kernels cannot run.
    #[cfg(not(target_arch = "x86_64"))]
    pub(crate) fn detect() -> Option<Processor> {
        None
    }
}
