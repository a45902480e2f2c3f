//! Runs loops with the processor's vector instructions.
//!
//! The build targets any processor of its architecture, on x86-64 with SSE2 only. A closure compiled again for AVX2 and
//! AVX-512 runs several times as fast.

/// The instruction sets of the processor.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wide {
    #[cfg(target_arch = "x86_64")]
    avx512: Option<pulp::x86::V4>,
    #[cfg(target_arch = "x86_64")]
    avx2: Option<pulp::x86::V3>,
}

impl Wide {
    pub(crate) fn detect() -> Wide {
        Wide {
            #[cfg(target_arch = "x86_64")]
            avx512: pulp::x86::V4::try_new(),
            #[cfg(target_arch = "x86_64")]
            avx2: pulp::x86::V3::try_new(),
        }
    }

    /// Calls `work`, which must be `#[inline(always)]` down to its loops.
    #[inline(always)]
    pub(crate) fn run<R>(self, work: impl FnOnce() -> R) -> R {
        #[cfg(target_arch = "x86_64")]
        match (self.avx512, self.avx2) {
            (Some(avx512), _) => return avx512.vectorize(work),
            (_, Some(avx2)) => return avx2.vectorize(work),
            _ => {}
        }
        work()
    }
}
