//! SIMD registers of floats. The kernels' loops are generic over them: compiled once for registers of sixteen floats
//! and once for eight.

use super::Processor;

/// Values that the same function is computed of at once.
pub(super) trait Arithmetic: Copy {
    /// # Safety
    /// The processor has the instructions.
    unsafe fn splat(value: f32) -> Self;

    fn plus(self, other: Self) -> Self;
    fn minus(self, other: Self) -> Self;
    fn times(self, other: Self) -> Self;
    /// `self * factor + addend`, rounded once (FMA).
    fn times_plus(self, factor: Self, addend: Self) -> Self;
    /// The minimum; `other` where either is NaN.
    fn least(self, other: Self) -> Self;
    /// The maximum; `other` where either is NaN.
    fn most(self, other: Self) -> Self;
    /// Rounded to the nearest integer.
    fn rounded(self) -> Self;
    /// `self * 2^power`, for integers `power` from -126 to 126.
    fn times_two_to(self, power: Self) -> Self;
    /// The reciprocal, to 2 units in the last place, for numbers up to 2^126.
    fn reciprocal(self) -> Self;
    fn magnitude(self) -> Self;
    fn with_sign_of(self, other: Self) -> Self;
}

/// A register of floats.
///
/// Invariant: a value exists only on a processor that has its instructions. The constructors are unsafe and require
/// that, so the methods are safe.
pub(super) trait Lanes: Arithmetic {
    /// Number of floats.
    const COUNT: usize;
    /// The most rows of a product's tile whose sums fit into the registers, at two registers per row.
    const TILE: usize;

    /// Runs `work`, compiled for this processor.
    ///
    /// # Safety
    /// The processor has the instructions.
    unsafe fn run<W: Work>(work: W) -> W::Output;
    /// As [`Lanes::run`], but never inlined: the registers are all for `work`.
    ///
    /// # Safety
    /// As [`Lanes::run`].
    unsafe fn run_apart<W: Work>(work: W) -> W::Output;

    /// # Safety
    /// The processor has the instructions, here and for all constructors. Loads read `COUNT` values, which must exist.
    unsafe fn load(from: *const f32) -> Self;
    /// Loads the first `count` values, fewer than all; the rest come from `others`.
    ///
    /// # Safety
    /// As [`Lanes::load`].
    unsafe fn load_first(count: usize, from: *const f32, others: Self) -> Self;
    /// Loads integers, and converts them to floats.
    ///
    /// # Safety
    /// As [`Lanes::load`].
    unsafe fn load_whole(from: *const i32) -> Self;
    /// Loads integers, subtracts products, and converts the differences to floats. `factor` and each of `others` are two
    /// integers of 16 bits; a product is the sum of the lower ones' and the upper ones'.
    ///
    /// # Safety
    /// As [`Lanes::load`].
    unsafe fn load_whole_less(from: *const i32, factor: i32, others: *const i32) -> Self;
    /// Loads words that are pairs of bf16 numbers, and widens the number in each word's lower half.
    ///
    /// # Safety
    /// As [`Lanes::load`].
    unsafe fn load_lower(from: *const u32) -> Self;
    /// As [`Lanes::load_lower`], for the upper halves.
    ///
    /// # Safety
    /// As [`Lanes::load`], and the address is aligned to the size of a register.
    unsafe fn load_upper(from: *const u32) -> Self;
    /// # Safety
    /// There is room for `COUNT` values.
    unsafe fn store(self, to: *mut f32);
    /// Stores the first `count` values, fewer than all.
    ///
    /// # Safety
    /// There is room for `count` values.
    unsafe fn store_first(self, count: usize, to: *mut f32);
    /// Prefetches the cache line at `from` for reading; an invalid address is harmless.
    fn prefetch(from: *const f32);
    /// As [`Lanes::prefetch`], for writing.
    fn prefetch_to_write(to: *mut f32);
    /// As [`Lanes::prefetch`], into the L2 cache.
    fn prefetch_far(from: *const u8);

    /// The sum of all values.
    fn sum(self) -> f32;
    /// The smallest value.
    fn lowest(self) -> f32;
    /// The largest value.
    fn highest(self) -> f32;
}

/// Some registers whose functions are computed side by side. One register's steps wait for each other.
#[derive(Clone, Copy)]
pub(super) struct Abreast<L, const COUNT: usize>(pub(super) [L; COUNT]);

/// A method of [`Abreast`] that calls the registers' own.
macro_rules! one_by_one {
    ($($name:ident($($value:ident),*);)+) => {
        $(
            #[inline(always)]
            fn $name(mut self $(, $value: Self)*) -> Self {
                for at in 0..COUNT {
                    self.0[at] = self.0[at].$name($($value.0[at]),*);
                }
                self
            }
        )+
    };
}

impl<L: Arithmetic, const COUNT: usize> Arithmetic for Abreast<L, COUNT> {
    #[inline(always)]
    unsafe fn splat(value: f32) -> Self {
        // SAFETY: as the caller promises.
        Abreast([unsafe { L::splat(value) }; COUNT])
    }

    one_by_one! {
        plus(other);
        minus(other);
        times(other);
        times_plus(factor, addend);
        least(other);
        most(other);
        rounded();
        times_two_to(power);
        reciprocal();
        magnitude();
        with_sign_of(other);
    }
}

/// A computation generic over the register width.
pub(super) trait Work {
    type Output;

    /// Must be inlined, with all that it calls: otherwise it is compiled without the processor's instructions.
    ///
    /// # Safety
    /// The processor has the instructions of `L`.
    unsafe fn run<L: Lanes>(self) -> Self::Output;
}

impl Processor {
    /// Runs `work` on the widest registers of the processor.
    pub(super) fn run<W: Work>(self, work: W) -> W::Output {
        match self {
            // SAFETY: a `Processor` value proves that the instructions exist.
            #[cfg(target_arch = "x86_64")]
            Processor::Avx512 { .. } => unsafe { x86::Sixteen::run(work) },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            Processor::Avx2 => unsafe { x86::Eight::run(work) },
            #[cfg(not(target_arch = "x86_64"))]
            _ => unreachable!("there is no Processor here"),
        }
    }

    /// As [`Processor::run`], for work that only processors with AVX-512 are given.
    ///
    /// # Panics
    /// If this one has not.
    pub(super) fn run_wide<W: Work>(self, work: W) -> W::Output {
        match self {
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            Processor::Avx512 { .. } => unsafe { x86::Sixteen::run(work) },
            _ => unreachable!("the processor has registers of sixteen"),
        }
    }
}

#[cfg(target_arch = "x86_64")]
pub(super) use x86::{Eight, Sixteen};

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::*;

    use super::{Arithmetic, Lanes, Work};

    /// AVX-512.
    #[derive(Clone, Copy)]
    pub(in super::super) struct Sixteen(__m512);

    /// AVX2 and FMA.
    #[derive(Clone, Copy)]
    pub(in super::super) struct Eight(__m256);

    /// Methods of one or a few instructions.
    macro_rules! instructions {
        ($($name:ident($($value:ident),*) = $result:expr;)+) => {
            $(
                #[inline(always)]
                fn $name(self $(, $value: Self)*) -> Self {
                    let this = self.0;
                    $(let $value = $value.0;)*
                    // SAFETY: the processor has the instruction; otherwise no register value exists.
                    Self(unsafe { $result(this $(, $value)*) })
                }
            )+
        };
    }

    /// Prefetching, the same for every width.
    macro_rules! prefetching {
        () => {
            #[inline(always)]
            fn prefetch(from: *const f32) {
                // SAFETY: a hint; any address is allowed.
                unsafe { _mm_prefetch::<_MM_HINT_T0>(from.cast()) }
            }

            #[inline(always)]
            fn prefetch_to_write(to: *mut f32) {
                // SAFETY: as above.
                unsafe { _mm_prefetch::<_MM_HINT_ET0>(to.cast_const().cast()) }
            }

            #[inline(always)]
            fn prefetch_far(from: *const u8) {
                // SAFETY: as above.
                unsafe { _mm_prefetch::<_MM_HINT_T1>(from.cast()) }
            }
        };
    }

    impl Arithmetic for Sixteen {
        #[inline(always)]
        unsafe fn splat(value: f32) -> Self {
            // SAFETY: as the caller promises.
            Sixteen(unsafe { _mm512_set1_ps(value) })
        }

        instructions! {
            plus(other) = _mm512_add_ps;
            minus(other) = _mm512_sub_ps;
            times(other) = _mm512_mul_ps;
            times_plus(factor, addend) = _mm512_fmadd_ps;
            least(other) = _mm512_min_ps;
            most(other) = _mm512_max_ps;
            rounded() = _mm512_roundscale_ps::<{ _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC }>;
            times_two_to(power) = _mm512_scalef_ps;
            reciprocal() = reciprocal_512;
            magnitude() = _mm512_abs_ps;
            with_sign_of(other) = with_sign_512;
        }
    }

    impl Lanes for Sixteen {
        const COUNT: usize = 16;
        /// 28 of 32 registers hold sums.
        const TILE: usize = 14;

        #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma")]
        unsafe fn run<W: Work>(work: W) -> W::Output {
            // SAFETY: as the caller promises.
            unsafe { work.run::<Self>() }
        }

        #[inline(never)]
        #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma")]
        unsafe fn run_apart<W: Work>(work: W) -> W::Output {
            // SAFETY: as the caller promises.
            unsafe { work.run::<Self>() }
        }

        #[inline(always)]
        unsafe fn load(from: *const f32) -> Self {
            // SAFETY: as the caller promises, here and below.
            Sixteen(unsafe { _mm512_loadu_ps(from) })
        }

        #[inline(always)]
        unsafe fn load_first(count: usize, from: *const f32, others: Self) -> Self {
            // SAFETY: as above.
            Sixteen(unsafe { _mm512_mask_loadu_ps(others.0, first(count), from) })
        }

        #[inline(always)]
        unsafe fn load_whole(from: *const i32) -> Self {
            // SAFETY: as above.
            Sixteen(unsafe { _mm512_cvtepi32_ps(_mm512_loadu_si512(from.cast())) })
        }

        #[inline(always)]
        unsafe fn load_whole_less(from: *const i32, factor: i32, others: *const i32) -> Self {
            // SAFETY: as above.
            unsafe {
                let (values, others) = (_mm512_loadu_si512(from.cast()), _mm512_loadu_si512(others.cast()));
                let less = _mm512_madd_epi16(_mm512_set1_epi32(factor), others);
                Sixteen(_mm512_cvtepi32_ps(_mm512_sub_epi32(values, less)))
            }
        }

        #[inline(always)]
        unsafe fn load_lower(from: *const u32) -> Self {
            // SAFETY: as above.
            unsafe {
                let words = _mm512_slli_epi32::<16>(_mm512_loadu_si512(from.cast()));
                Sixteen(_mm512_castsi512_ps(words))
            }
        }

        #[inline(always)]
        unsafe fn load_upper(from: *const u32) -> Self {
            // SAFETY: as above.
            unsafe {
                let upper = _mm512_set1_epi32(-0x1_0000);
                let words = _mm512_and_si512(_mm512_loadu_si512(from.cast()), upper);
                Sixteen(_mm512_castsi512_ps(words))
            }
        }

        #[inline(always)]
        unsafe fn store(self, to: *mut f32) {
            // SAFETY: as above.
            unsafe { _mm512_storeu_ps(to, self.0) }
        }

        #[inline(always)]
        unsafe fn store_first(self, count: usize, to: *mut f32) {
            // SAFETY: as above.
            unsafe { _mm512_mask_storeu_ps(to, first(count), self.0) }
        }

        prefetching!();

        #[inline(always)]
        fn sum(self) -> f32 {
            // SAFETY: the processor has the instructions, here and below.
            unsafe { _mm512_reduce_add_ps(self.0) }
        }

        #[inline(always)]
        fn lowest(self) -> f32 {
            // SAFETY: as above.
            unsafe { _mm512_reduce_min_ps(self.0) }
        }

        #[inline(always)]
        fn highest(self) -> f32 {
            // SAFETY: as above.
            unsafe { _mm512_reduce_max_ps(self.0) }
        }
    }

    #[inline(always)]
    fn first(count: usize) -> __mmask16 {
        ((1_u32 << count) - 1) as __mmask16
    }

    #[inline(always)]
    unsafe fn reciprocal_512(x: __m512) -> __m512 {
        // SAFETY: as the caller promises.
        unsafe {
            // 14 bits of precision, doubled by one Newton step.
            let near = _mm512_rcp14_ps(x);
            _mm512_mul_ps(near, _mm512_fnmadd_ps(x, near, _mm512_set1_ps(2.0)))
        }
    }

    #[inline(always)]
    unsafe fn with_sign_512(x: __m512, of: __m512) -> __m512 {
        // SAFETY: as the caller promises.
        unsafe { _mm512_or_ps(x, _mm512_and_ps(of, _mm512_set1_ps(-0.0))) }
    }

    impl Arithmetic for Eight {
        #[inline(always)]
        unsafe fn splat(value: f32) -> Self {
            // SAFETY: as the caller promises.
            Eight(unsafe { _mm256_set1_ps(value) })
        }

        instructions! {
            plus(other) = _mm256_add_ps;
            minus(other) = _mm256_sub_ps;
            times(other) = _mm256_mul_ps;
            times_plus(factor, addend) = _mm256_fmadd_ps;
            least(other) = _mm256_min_ps;
            most(other) = _mm256_max_ps;
            rounded() = _mm256_round_ps::<{ _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC }>;
            times_two_to(power) = times_two_to_256;
            reciprocal() = reciprocal_256;
            magnitude() = magnitude_256;
            with_sign_of(other) = with_sign_256;
        }
    }

    impl Lanes for Eight {
        const COUNT: usize = 8;
        /// 12 of 16 registers hold sums.
        const TILE: usize = 6;

        #[target_feature(enable = "avx2,fma")]
        unsafe fn run<W: Work>(work: W) -> W::Output {
            // SAFETY: as the caller promises.
            unsafe { work.run::<Self>() }
        }

        #[inline(never)]
        #[target_feature(enable = "avx2,fma")]
        unsafe fn run_apart<W: Work>(work: W) -> W::Output {
            // SAFETY: as the caller promises.
            unsafe { work.run::<Self>() }
        }

        #[inline(always)]
        unsafe fn load(from: *const f32) -> Self {
            // SAFETY: as the caller promises, here and below.
            Eight(unsafe { _mm256_loadu_ps(from) })
        }

        #[inline(always)]
        unsafe fn load_first(count: usize, from: *const f32, others: Self) -> Self {
            // SAFETY: as above.
            unsafe {
                let mask = first_of_eight(count);
                let loaded = _mm256_maskload_ps(from, mask);
                Eight(_mm256_blendv_ps(others.0, loaded, _mm256_castsi256_ps(mask)))
            }
        }

        #[inline(always)]
        unsafe fn load_whole(from: *const i32) -> Self {
            // SAFETY: as above.
            Eight(unsafe { _mm256_cvtepi32_ps(_mm256_loadu_si256(from.cast())) })
        }

        #[inline(always)]
        unsafe fn load_whole_less(from: *const i32, factor: i32, others: *const i32) -> Self {
            // SAFETY: as above.
            unsafe {
                let (values, others) = (_mm256_loadu_si256(from.cast()), _mm256_loadu_si256(others.cast()));
                let less = _mm256_madd_epi16(_mm256_set1_epi32(factor), others);
                Eight(_mm256_cvtepi32_ps(_mm256_sub_epi32(values, less)))
            }
        }

        #[inline(always)]
        unsafe fn load_lower(from: *const u32) -> Self {
            // SAFETY: as above.
            unsafe {
                let words = _mm256_slli_epi32::<16>(_mm256_loadu_si256(from.cast()));
                Eight(_mm256_castsi256_ps(words))
            }
        }

        #[inline(always)]
        unsafe fn load_upper(from: *const u32) -> Self {
            // SAFETY: as above. A volatile read is not merged with that of `load_lower`: the words would be kept until
            // here, in registers that sums need.
            unsafe {
                let words = from.cast::<__m256i>().read_volatile();
                let upper = _mm256_set1_epi32(-0x1_0000);
                Eight(_mm256_castsi256_ps(_mm256_and_si256(words, upper)))
            }
        }

        #[inline(always)]
        unsafe fn store(self, to: *mut f32) {
            // SAFETY: as above.
            unsafe { _mm256_storeu_ps(to, self.0) }
        }

        #[inline(always)]
        unsafe fn store_first(self, count: usize, to: *mut f32) {
            // SAFETY: as above.
            unsafe { _mm256_maskstore_ps(to, first_of_eight(count), self.0) }
        }

        prefetching!();

        #[inline(always)]
        fn sum(self) -> f32 {
            let it = self.plus(self.other_half());
            let it = it.plus(it.other_quarter());
            it.plus(it.neighbours()).first()
        }

        #[inline(always)]
        fn lowest(self) -> f32 {
            let it = self.least(self.other_half());
            let it = it.least(it.other_quarter());
            it.least(it.neighbours()).first()
        }

        #[inline(always)]
        fn highest(self) -> f32 {
            let it = self.most(self.other_half());
            let it = it.most(it.other_quarter());
            it.most(it.neighbours()).first()
        }
    }

    impl Eight {
        /// Swaps the halves.
        #[inline(always)]
        fn other_half(self) -> Self {
            // SAFETY: the processor has the instructions, here and below; otherwise no register value exists.
            Eight(unsafe { _mm256_permute2f128_ps::<0x01>(self.0, self.0) })
        }

        /// Swaps the pairs of each half.
        #[inline(always)]
        fn other_quarter(self) -> Self {
            // SAFETY: as above.
            Eight(unsafe { _mm256_permute_ps::<0b01_00_11_10>(self.0) })
        }

        /// Swaps the values of each pair.
        #[inline(always)]
        fn neighbours(self) -> Self {
            // SAFETY: as above.
            Eight(unsafe { _mm256_permute_ps::<0b10_11_00_01>(self.0) })
        }

        #[inline(always)]
        fn first(self) -> f32 {
            // SAFETY: as above.
            unsafe { _mm256_cvtss_f32(self.0) }
        }
    }

    #[inline(always)]
    unsafe fn first_of_eight(count: usize) -> __m256i {
        // SAFETY: as the caller promises.
        unsafe {
            let places = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
            _mm256_cmpgt_epi32(_mm256_set1_epi32(count as i32), places)
        }
    }

    #[inline(always)]
    unsafe fn times_two_to_256(x: __m256, power: __m256) -> __m256 {
        // SAFETY: as the caller promises.
        unsafe {
            let exponent = _mm256_add_epi32(_mm256_cvtps_epi32(power), _mm256_set1_epi32(127));
            _mm256_mul_ps(x, _mm256_castsi256_ps(_mm256_slli_epi32::<23>(exponent)))
        }
    }

    #[inline(always)]
    unsafe fn reciprocal_256(x: __m256) -> __m256 {
        // SAFETY: as the caller promises.
        unsafe { _mm256_div_ps(_mm256_set1_ps(1.0), x) }
    }

    #[inline(always)]
    unsafe fn magnitude_256(x: __m256) -> __m256 {
        // SAFETY: as the caller promises.
        unsafe { _mm256_andnot_ps(_mm256_set1_ps(-0.0), x) }
    }

    #[inline(always)]
    unsafe fn with_sign_256(x: __m256, of: __m256) -> __m256 {
        // SAFETY: as the caller promises.
        unsafe { _mm256_or_ps(x, _mm256_and_ps(of, _mm256_set1_ps(-0.0))) }
    }
}
