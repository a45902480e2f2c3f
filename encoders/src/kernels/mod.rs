//! The inner loops of transformers on x86-64 CPUs, chosen at run time. Matrix products over weights packed at load,
//! with fused bias, activation and residual; attention on the packed projection; layer norms.
//!
//! All kernels work on f32 tensors on the CPU, those of `differentiable` with gradients, and need a [`Processor`]. There is
//! none without AVX2 and FMA, or on other architectures. Callers then use candle's operations, whose kernels are tuned
//! for other processors.
#![cfg_attr(
    not(target_arch = "x86_64"),
    allow(dead_code, unused_variables, reason = "without a processor no kernel is called")
)]
#![allow(unsafe_code, reason = "vector instructions, and threads that write to disjoint parts of one matrix")]

mod amx;
mod attention;
mod bf16;
mod blocking;
mod bytes;
pub(crate) mod differentiable;
mod elementwise;
mod finish;
mod float;
mod float_tiles;
mod int8;
mod kv_cache;
mod lanes;
mod matrix;
mod norm;
mod ops;
mod pairs;
mod sharing;
mod slices;
mod steps;
mod tiles;
mod walk;

use std::sync::OnceLock;

pub(crate) use attention::{AttentionMask, RotaryAngles, RotaryPairs};
pub(crate) use elementwise::Activation;
pub(crate) use kv_cache::{CachedAttention, KvCache};
pub(crate) use norm::Norm;
pub(crate) use ops::{Attention, Beside, PackedLinear, values_of};
pub(crate) use sharing::{alone, sharing};

/// Environment variable: the best of [`ISAS`] to use, to measure and test the kernels of lesser processors.
const MAX_CPU_ISA: &str = "REPRISE_MAX_CPU_ISA";
/// Instruction sets in rising order; each includes those before it.
const ISAS: [&str; 5] = ["avx2", "avx512", "avx512_vnni", "avx512_bf16", "amx"];

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
        /// Whether tile registers (AMX, with bf16 numbers and bytes) exist too.
        amx: bool,
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
    /// The fastest of this machine's instruction sets, without those above `REPRISE_MAX_CPU_ISA`; `None` where these kernels
    /// cannot run.
    pub(crate) fn detect() -> Option<Processor> {
        static FOUND: OnceLock<Option<Processor>> = OnceLock::new();
        *FOUND.get_or_init(|| Some(Processor::allowed()?.without_slow_pairs(pairs_are_slow())))
    }

    /// This machine's instruction sets, without those above `REPRISE_MAX_CPU_ISA`.
    fn allowed() -> Option<Processor> {
        let found = Processor::of_this_machine()?;
        let Ok(most) = std::env::var(MAX_CPU_ISA) else { return Some(found) };
        found.at_most(&most).or_else(|| {
            tracing::warn!("{MAX_CPU_ISA}={most} is none of {}: ignored", ISAS.join(", "));
            Some(found)
        })
    }

    /// Without AVX512-BF16 if it is slow. A processor with tile registers keeps it: it rounds rows for them.
    fn without_slow_pairs(self, are_slow: bool) -> Processor {
        match self {
            Processor::Avx512 { vnni, amx: false, .. } if are_slow => {
                Processor::Avx512 { vnni, bf16: false, amx: false }
            }
            other => other,
        }
    }

    /// These instruction sets without those above `most`, one of [`ISAS`].
    fn at_most(self, most: &str) -> Option<Processor> {
        let rank = ISAS.iter().position(|isa| *isa == most)?;
        match self {
            Processor::Avx512 { vnni, bf16, amx } if rank > 0 => Some(Processor::Avx512 {
                vnni: vnni && rank > 1,
                bf16: bf16 && rank > 2,
                amx: amx && rank > 3,
            }),
            _ => Some(Processor::Avx2),
        }
    }

    #[cfg(target_arch = "x86_64")]
    fn of_this_machine() -> Option<Processor> {
        let has_512 = is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512dq")
            && is_x86_feature_detected!("avx512vl");
        let has_256 = is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma");
        match (has_512 && has_256, has_256) {
            (true, _) => {
                let vnni = is_x86_feature_detected!("avx512vnni");
                let bf16 = is_x86_feature_detected!("avx512bf16");
                Some(Processor::Avx512 { vnni, bf16, amx: vnni && bf16 && amx::is_usable() })
            }
            (false, true) => Some(Processor::Avx2),
            (false, false) => None,
        }
    }

    #[cfg(not(target_arch = "x86_64"))]
    fn of_this_machine() -> Option<Processor> {
        None
    }

    /// Whether one instruction multiplies bytes (VNNI).
    fn has_vnni(self) -> bool {
        matches!(self, Processor::Avx512 { vnni: true, .. })
    }

    /// Whether the processor multiplies bf16 numbers.
    fn has_bf16(self) -> bool {
        matches!(self, Processor::Avx512 { bf16: true, .. })
    }

    /// Whether the processor has tile registers.
    fn has_amx(self) -> bool {
        matches!(self, Processor::Avx512 { amx: true, .. })
    }

    /// This machine's instruction sets, slow ones too, and each with fewer that the kernels know; the best first.
    #[cfg(test)]
    fn all() -> Vec<Processor> {
        let Some(best) = Processor::allowed() else { return Vec::new() };
        let mut all: Vec<Processor> = ISAS.iter().rev().filter_map(|isa| best.at_most(isa)).collect();
        all.dedup();
        all
    }
}

/// Whether AVX512-BF16 takes longer for a pair than two products in f32 take. It does on Intel's processors with
/// AVX512-FP16 (Sapphire and Emerald Rapids were measured): 76 GFLOP per CPU-second, where f32 has 142. On AMD's Zen 4 it has
/// 215, where f32 has 107.
#[cfg(target_arch = "x86_64")]
fn pairs_are_slow() -> bool {
    let vendor = std::arch::x86_64::__cpuid(0);
    let name = [vendor.ebx, vendor.edx, vendor.ecx].map(u32::to_le_bytes);
    name.as_flattened() == b"GenuineIntel" && is_x86_feature_detected!("avx512fp16")
}

#[cfg(not(target_arch = "x86_64"))]
fn pairs_are_slow() -> bool {
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_processor_does_no_more_than_it_is_allowed() {
        let best = Processor::Avx512 { vnni: true, bf16: true, amx: true };
        let less = |vnni, bf16| Some(Processor::Avx512 { vnni, bf16, amx: false });
        assert_eq!(
            ISAS.map(|isa| best.at_most(isa)),
            [Some(Processor::Avx2), less(false, false), less(true, false), less(true, true), Some(best)]
        );
        assert_eq!(Processor::Avx2.at_most("amx"), Some(Processor::Avx2));
        assert_eq!(best.at_most("sse"), None);
    }

    #[test]
    fn slow_pairs_are_left_out_where_there_are_no_tiles() {
        let of = |bf16, amx| Processor::Avx512 { vnni: true, bf16, amx };
        assert_eq!(of(true, false).without_slow_pairs(true), of(false, false));
        assert_eq!(of(true, false).without_slow_pairs(false), of(true, false));
        assert_eq!(of(true, true).without_slow_pairs(true), of(true, true));
        assert_eq!(Processor::Avx2.without_slow_pairs(true), Processor::Avx2);
    }
}
