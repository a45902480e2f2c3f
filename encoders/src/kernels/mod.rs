//! The inner loops of transformers on x86-64 CPUs, chosen at run time: matrix products over weights that are packed
//! once at load, with bias, activation and residual folded in; attention straight off the packed projection; layer
//! norms.
//!
//! Everything here works on f32 tensors on the CPU, for inference alone (no gradients), and asks for a [`Processor`].
//! Where the processor lacks AVX2 and FMA, or is no x86-64, there is none and the callers use candle's own operations,
//! whose kernels for other processors are better than portable code of ours would be.
#![allow(unsafe_code, reason = "vector instructions, and threads that write to disjoint parts of one matrix")]

mod attention;
mod elementwise;
mod finish;
mod float;
mod int8;
mod lanes;
mod matrix;
mod norm;
mod ops;

pub(crate) use attention::{AttentionMask, RotaryAngles};
pub(crate) use elementwise::Activation;
pub(crate) use norm::Norm;
pub(crate) use ops::{Attention, PackedLinear};

/// Which instructions may be used; exists only where they are there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Processor {
    /// AVX2 and FMA.
    Avx2,
    /// AVX-512 F, BW, DQ and VL.
    Avx512 {
        /// Products of bytes too.
        vnni: bool,
    },
}

/// What computes a product.
#[derive(Debug, Clone, Copy)]
struct Cores {
    processor: Processor,
    /// Threads of the current pool that share the work.
    threads: usize,
}

impl Processor {
    /// What this machine has; `None` where these kernels have nothing to offer.
    #[cfg(target_arch = "x86_64")]
    pub(crate) fn detect() -> Option<Processor> {
        let has_512 = is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512dq")
            && is_x86_feature_detected!("avx512vl");
        let has_256 = is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma");
        match (has_512 && has_256, has_256) {
            (true, _) => Some(Processor::Avx512 { vnni: is_x86_feature_detected!("avx512vnni") }),
            (false, true) => Some(Processor::Avx2),
            (false, false) => None,
        }
    }

    /// What this machine has; `None` where these kernels have nothing to offer.
    #[cfg(not(target_arch = "x86_64"))]
    pub(crate) fn detect() -> Option<Processor> {
        None
    }
}
