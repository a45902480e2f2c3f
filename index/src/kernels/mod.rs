//! Dot products of stored codes with a query, and a rotation's stages, with the widest instructions that the processor
//! has.
#![allow(unsafe_code, reason = "vector instructions")]

use std::sync::OnceLock;

pub(crate) mod signs;

use signs::{Levels, Rows};

/// Bytes of a stride: rows and queries are padded to a multiple of it.
pub(crate) const LINE: usize = 64;

/// The dot products for this processor, chosen once.
#[derive(Clone, Copy)]
pub(crate) struct Kernels {
    bytes: unsafe fn(*const u8, *const i8, usize) -> i32,
    nibbles: unsafe fn(*const u8, *const i8, usize) -> i32,
    signs: signs::Kernel,
    mix: unsafe fn(&[f32], &mut [f32]),
    floats: unsafe fn(*const f32, *const f32, usize) -> f32,
    halves: unsafe fn(*const u16, *const f32, usize) -> f32,
}

impl Kernels {
    /// The best kernels for this processor.
    pub(crate) fn detect() -> Kernels {
        static DETECTED: OnceLock<Kernels> = OnceLock::new();
        *DETECTED.get_or_init(|| Kernels::all().first().map_or(PORTABLE, |(_, best)| *best))
    }

    /// All kernels that run on this processor, the best first.
    fn all() -> Vec<(&'static str, Kernels)> {
        let mut all = Vec::new();
        #[cfg(target_arch = "x86_64")]
        {
            let has_avx2 = is_x86_feature_detected!("avx2")
                && is_x86_feature_detected!("fma")
                && is_x86_feature_detected!("f16c")
                && is_x86_feature_detected!("popcnt");
            let has_avx512 =
                has_avx2 && is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512bw");
            let has_vnni = has_avx512 && is_x86_feature_detected!("avx512vnni");
            let counts_bits = is_x86_feature_detected!("avx512vl")
                && is_x86_feature_detected!("avx512bitalg")
                && is_x86_feature_detected!("avx512vpopcntdq");
            if has_vnni && counts_bits {
                all.push(("avx512bitalg", BITALG));
            }
            if has_vnni {
                all.push(("avx512vnni", VNNI));
            }
            if has_avx512 {
                all.push(("avx512", AVX512));
            }
            if has_avx2 {
                all.push(("avx2", AVX2));
            }
        }
        all.push(("portable", PORTABLE));
        all
    }

    /// The dot product of unsigned and signed bytes.
    ///
    /// # Panics
    /// If the lengths differ or are not a multiple of [`LINE`].
    pub(crate) fn bytes(&self, left: &[u8], right: &[i8]) -> i32 {
        assert!(left.len() == right.len() && left.len().is_multiple_of(LINE));
        // SAFETY: both slices have this length, a multiple of the widest stride, and the processor has these
        // instructions.
        unsafe { (self.bytes)(left.as_ptr(), right.as_ptr(), left.len()) }
    }

    /// The dot product of unsigned 4-bit numbers and signed bytes. The low halves of `left` belong to the first half of
    /// `right`, the high ones to the second.
    ///
    /// # Panics
    /// If `right` is not twice as long as `left`, or the length of `left` is not a multiple of [`LINE`].
    pub(crate) fn nibbles(&self, left: &[u8], right: &[i8]) -> i32 {
        assert!(2 * left.len() == right.len() && left.len().is_multiple_of(LINE));
        // SAFETY: as above.
        unsafe { (self.nibbles)(left.as_ptr(), right.as_ptr(), left.len()) }
    }

    /// Appends the score of each wanted row.
    ///
    /// # Panics
    /// If rows and the query have another number of values, or a wanted row does not exist.
    pub(crate) fn signs(&self, rows: Rows, wanted: &[u32], query: &Levels, scores: &mut Vec<f32>) {
        assert!(rows.bits().div_ceil(signs::PLANE) == query.planes.len());
        scores.reserve(wanted.len());
        // SAFETY: the rows are long enough, and the processor has these instructions.
        unsafe { (self.signs)(rows, wanted, query, scores) }
    }

    /// One stage of a rotation: the sums and differences of the two halves, interleaved.
    ///
    /// # Panics
    /// If the lengths differ or are odd.
    pub(crate) fn mix(&self, from: &[f32], to: &mut [f32]) {
        assert!(from.len() == to.len() && from.len().is_multiple_of(2));
        // SAFETY: the processor has these instructions.
        unsafe { (self.mix)(from, to) }
    }

    /// The dot product of floats.
    ///
    /// # Panics
    /// If the lengths differ or are not a multiple of 16.
    pub(crate) fn floats(&self, left: &[f32], right: &[f32]) -> f32 {
        assert!(left.len() == right.len() && left.len().is_multiple_of(LINE / 4));
        // SAFETY: as above.
        unsafe { (self.floats)(left.as_ptr(), right.as_ptr(), left.len()) }
    }

    /// The dot product of half-precision floats (as bits) and floats.
    ///
    /// # Panics
    /// If the lengths differ or are not a multiple of 16.
    pub(crate) fn halves(&self, left: &[u16], right: &[f32]) -> f32 {
        assert!(left.len() == right.len() && left.len().is_multiple_of(LINE / 4));
        // SAFETY: as above.
        unsafe { (self.halves)(left.as_ptr(), right.as_ptr(), left.len()) }
    }
}

/// Prefetches `lines` cache lines from the start of `row`.
#[inline]
pub(crate) fn prefetch(row: &[u8], lines: usize) {
    #[cfg(target_arch = "x86_64")]
    for at in (0..row.len().min(lines * LINE)).step_by(LINE) {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a hint about an address inside the slice; nothing is read.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(row.as_ptr().add(at).cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (row, lines);
}

const PORTABLE: Kernels = Kernels {
    bytes: portable::bytes,
    nibbles: portable::nibbles,
    signs: signs::portable,
    mix: portable::mix,
    floats: portable::floats,
    halves: portable::halves,
};
#[cfg(target_arch = "x86_64")]
const AVX2: Kernels = Kernels {
    bytes: x86::bytes_avx2,
    nibbles: x86::nibbles_avx2,
    signs: signs::x86::compare_avx2,
    mix: x86::mix_avx2,
    floats: x86::floats_avx2,
    halves: x86::halves_avx2,
};
#[cfg(target_arch = "x86_64")]
const AVX512: Kernels = Kernels { floats: x86::floats_avx512, halves: x86::halves_avx512, ..AVX2 };
#[cfg(target_arch = "x86_64")]
const VNNI: Kernels = Kernels { bytes: x86::bytes_vnni, nibbles: x86::nibbles_vnni, ..AVX512 };
#[cfg(target_arch = "x86_64")]
const BITALG: Kernels = Kernels { signs: signs::x86::compare_bitalg, ..VNNI };

/// For any processor: the compiler vectorises these loops where it can.
mod portable {
    use std::slice::from_raw_parts;

    const LANES: usize = 16;

    pub(super) unsafe fn bytes(left: *const u8, right: *const i8, length: usize) -> i32 {
        // SAFETY: the caller guarantees the length.
        let (left, right) = unsafe { (from_raw_parts(left, length), from_raw_parts(right, length)) };
        left.iter().zip(right).map(|(&left, &right)| i32::from(left) * i32::from(right)).sum()
    }

    pub(super) unsafe fn nibbles(left: *const u8, right: *const i8, length: usize) -> i32 {
        // SAFETY: the caller guarantees the lengths.
        let (left, right) = unsafe { (from_raw_parts(left, length), from_raw_parts(right, 2 * length)) };
        let (low, high) = right.split_at(length);
        let products = left.iter().zip(low).zip(high).map(|((&both, &low), &high)| {
            i32::from(both & 15) * i32::from(low) + i32::from(both >> 4) * i32::from(high)
        });
        products.sum()
    }

    /// The compiler vectorises it for the caller's instructions; no way of adding gives other bits.
    #[inline(always)]
    pub(super) fn mix(from: &[f32], to: &mut [f32]) {
        let (left, right) = from.split_at(from.len() / 2);
        for ((pair, &left), &right) in to.as_chunks_mut::<2>().0.iter_mut().zip(left).zip(right) {
            *pair = [left + right, left - right];
        }
    }

    pub(super) unsafe fn floats(left: *const f32, right: *const f32, length: usize) -> f32 {
        // SAFETY: the caller guarantees the length.
        let (left, right) = unsafe { (from_raw_parts(left, length), from_raw_parts(right, length)) };
        let mut sums = [0.0; LANES];
        for (left, right) in left.chunks_exact(LANES).zip(right.chunks_exact(LANES)) {
            for lane in 0..LANES {
                sums[lane] += left[lane] * right[lane];
            }
        }
        sums.iter().sum()
    }

    pub(super) unsafe fn halves(left: *const u16, right: *const f32, length: usize) -> f32 {
        // SAFETY: the caller guarantees the length.
        let (left, right) = unsafe { (from_raw_parts(left, length), from_raw_parts(right, length)) };
        left.iter().zip(right).map(|(&left, &right)| half::f16::from_bits(left).to_f32() * right).sum()
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::*;

    #[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
    pub(super) unsafe fn bytes_vnni(left: *const u8, right: *const i8, length: usize) -> i32 {
        let mut sums = [_mm512_setzero_si512(); 4];
        let mut at = 0;
        // SAFETY (all loads here and below): `at` plus the stride is at most `length`.
        while at + 256 <= length {
            for (lane, sum) in sums.iter_mut().enumerate() {
                let left = unsafe { _mm512_loadu_si512(left.add(at + lane * 64).cast()) };
                let right = unsafe { _mm512_loadu_si512(right.add(at + lane * 64).cast()) };
                *sum = _mm512_dpbusd_epi32(*sum, left, right);
            }
            at += 256;
        }
        while at + 64 <= length {
            let left = unsafe { _mm512_loadu_si512(left.add(at).cast()) };
            let right = unsafe { _mm512_loadu_si512(right.add(at).cast()) };
            sums[0] = _mm512_dpbusd_epi32(sums[0], left, right);
            at += 64;
        }
        let pairs = (_mm512_add_epi32(sums[0], sums[1]), _mm512_add_epi32(sums[2], sums[3]));
        _mm512_reduce_add_epi32(_mm512_add_epi32(pairs.0, pairs.1))
    }

    #[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
    pub(super) unsafe fn nibbles_vnni(left: *const u8, right: *const i8, length: usize) -> i32 {
        let low = _mm512_set1_epi8(15);
        let mut sums = [_mm512_setzero_si512(); 4];
        let mut at = 0;
        while at + 128 <= length {
            for lane in 0..2 {
                let from = at + lane * 64;
                // SAFETY: as above.
                let both = unsafe { _mm512_loadu_si512(left.add(from).cast()) };
                let first = unsafe { _mm512_loadu_si512(right.add(from).cast()) };
                let second = unsafe { _mm512_loadu_si512(right.add(length + from).cast()) };
                let high = _mm512_and_si512(_mm512_srli_epi16::<4>(both), low);
                sums[2 * lane] = _mm512_dpbusd_epi32(sums[2 * lane], _mm512_and_si512(both, low), first);
                sums[2 * lane + 1] = _mm512_dpbusd_epi32(sums[2 * lane + 1], high, second);
            }
            at += 128;
        }
        if at < length {
            // SAFETY: as above; the length is a multiple of 64.
            let both = unsafe { _mm512_loadu_si512(left.add(at).cast()) };
            let first = unsafe { _mm512_loadu_si512(right.add(at).cast()) };
            let second = unsafe { _mm512_loadu_si512(right.add(length + at).cast()) };
            let high = _mm512_and_si512(_mm512_srli_epi16::<4>(both), low);
            sums[0] = _mm512_dpbusd_epi32(sums[0], _mm512_and_si512(both, low), first);
            sums[1] = _mm512_dpbusd_epi32(sums[1], high, second);
        }
        let pairs = (_mm512_add_epi32(sums[0], sums[1]), _mm512_add_epi32(sums[2], sums[3]));
        _mm512_reduce_add_epi32(_mm512_add_epi32(pairs.0, pairs.1))
    }

    /// Four products of a 4-bit number and a byte fit into 16 bits.
    #[target_feature(enable = "avx2")]
    pub(super) unsafe fn nibbles_avx2(left: *const u8, right: *const i8, length: usize) -> i32 {
        let (low, ones) = (_mm256_set1_epi8(15), _mm256_set1_epi16(1));
        let mut sum = _mm256_setzero_si256();
        for at in (0..length).step_by(32) {
            // SAFETY: the length is a multiple of 32.
            let both = unsafe { _mm256_loadu_si256(left.add(at).cast()) };
            let first = unsafe { _mm256_loadu_si256(right.add(at).cast()) };
            let second = unsafe { _mm256_loadu_si256(right.add(length + at).cast()) };
            let high = _mm256_and_si256(_mm256_srli_epi16::<4>(both), low);
            let first = _mm256_maddubs_epi16(_mm256_and_si256(both, low), first);
            let products = _mm256_add_epi16(first, _mm256_maddubs_epi16(high, second));
            sum = _mm256_add_epi32(sum, _mm256_madd_epi16(products, ones));
        }
        total(sum)
    }

    #[target_feature(enable = "avx2")]
    pub(super) fn mix_avx2(from: &[f32], to: &mut [f32]) {
        super::portable::mix(from, to);
    }

    #[target_feature(enable = "avx2")]
    pub(super) fn total(sum: __m256i) -> i32 {
        let sum = _mm_add_epi32(_mm256_castsi256_si128(sum), _mm256_extracti128_si256::<1>(sum));
        let sum = _mm_add_epi32(sum, _mm_shuffle_epi32::<0b01_00_11_10>(sum));
        _mm_cvtsi128_si32(_mm_add_epi32(sum, _mm_shuffle_epi32::<0b10_11_00_01>(sum)))
    }

    /// Widened to 16 bits: sums of pairs of byte products would overflow 16 bits.
    #[target_feature(enable = "avx2")]
    pub(super) unsafe fn bytes_avx2(left: *const u8, right: *const i8, length: usize) -> i32 {
        let mut sums = [_mm256_setzero_si256(); 2];
        for at in (0..length).step_by(32) {
            for (lane, sum) in sums.iter_mut().enumerate() {
                // SAFETY: the length is a multiple of 32.
                let left = unsafe { _mm_loadu_si128(left.add(at + lane * 16).cast()) };
                let right = unsafe { _mm_loadu_si128(right.add(at + lane * 16).cast()) };
                let product = _mm256_madd_epi16(_mm256_cvtepu8_epi16(left), _mm256_cvtepi8_epi16(right));
                *sum = _mm256_add_epi32(*sum, product);
            }
        }
        total(_mm256_add_epi32(sums[0], sums[1]))
    }

    #[target_feature(enable = "avx512f")]
    pub(super) unsafe fn floats_avx512(left: *const f32, right: *const f32, length: usize) -> f32 {
        let mut sums = [_mm512_setzero_ps(); 4];
        let mut at = 0;
        while at + 64 <= length {
            for (lane, sum) in sums.iter_mut().enumerate() {
                // SAFETY: as above.
                let left = unsafe { _mm512_loadu_ps(left.add(at + lane * 16)) };
                let right = unsafe { _mm512_loadu_ps(right.add(at + lane * 16)) };
                *sum = _mm512_fmadd_ps(left, right, *sum);
            }
            at += 64;
        }
        while at + 16 <= length {
            // SAFETY: as above.
            let (left, right) = unsafe { (_mm512_loadu_ps(left.add(at)), _mm512_loadu_ps(right.add(at))) };
            sums[0] = _mm512_fmadd_ps(left, right, sums[0]);
            at += 16;
        }
        _mm512_reduce_add_ps(_mm512_add_ps(_mm512_add_ps(sums[0], sums[1]), _mm512_add_ps(sums[2], sums[3])))
    }

    #[target_feature(enable = "avx512f")]
    pub(super) unsafe fn halves_avx512(left: *const u16, right: *const f32, length: usize) -> f32 {
        let mut sums = [_mm512_setzero_ps(); 2];
        for at in (0..length).step_by(16) {
            // SAFETY: the length is a multiple of 16.
            let left = unsafe { _mm512_cvtph_ps(_mm256_loadu_si256(left.add(at).cast())) };
            let right = unsafe { _mm512_loadu_ps(right.add(at)) };
            let sum = &mut sums[(at / 16) % 2];
            *sum = _mm512_fmadd_ps(left, right, *sum);
        }
        _mm512_reduce_add_ps(_mm512_add_ps(sums[0], sums[1]))
    }

    #[target_feature(enable = "avx2,fma")]
    pub(super) unsafe fn floats_avx2(left: *const f32, right: *const f32, length: usize) -> f32 {
        let mut sums = [_mm256_setzero_ps(); 2];
        for at in (0..length).step_by(16) {
            for (lane, sum) in sums.iter_mut().enumerate() {
                // SAFETY: the length is a multiple of 16.
                let left = unsafe { _mm256_loadu_ps(left.add(at + lane * 8)) };
                let right = unsafe { _mm256_loadu_ps(right.add(at + lane * 8)) };
                *sum = _mm256_fmadd_ps(left, right, *sum);
            }
        }
        sum_of(_mm256_add_ps(sums[0], sums[1]))
    }

    #[target_feature(enable = "avx2,fma,f16c")]
    pub(super) unsafe fn halves_avx2(left: *const u16, right: *const f32, length: usize) -> f32 {
        let mut sums = [_mm256_setzero_ps(); 2];
        for at in (0..length).step_by(16) {
            for (lane, sum) in sums.iter_mut().enumerate() {
                // SAFETY: the length is a multiple of 16.
                let left = unsafe { _mm256_cvtph_ps(_mm_loadu_si128(left.add(at + lane * 8).cast())) };
                let right = unsafe { _mm256_loadu_ps(right.add(at + lane * 8)) };
                *sum = _mm256_fmadd_ps(left, right, *sum);
            }
        }
        sum_of(_mm256_add_ps(sums[0], sums[1]))
    }

    #[target_feature(enable = "avx2")]
    fn sum_of(values: __m256) -> f32 {
        let sum = _mm_add_ps(_mm256_castps256_ps128(values), _mm256_extractf128_ps::<1>(values));
        let sum = _mm_add_ps(sum, _mm_movehl_ps(sum, sum));
        _mm_cvtss_f32(_mm_add_ss(sum, _mm_shuffle_ps::<1>(sum, sum)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values -127 ..= 127 without a pattern.
    fn byte(at: usize, seed: usize) -> i8 {
        ((at * 7_919 + seed * 104_729) % 255) as i8
    }

    #[track_caller]
    fn check(length: usize) {
        let left: Vec<u8> = (0..length).map(|at| byte(at, 1) as u8).collect();
        let right: Vec<i8> = (0..length).map(|at| byte(at, 2)).collect();
        let expected: i32 =
            left.iter().zip(&right).map(|(&left, &right)| i32::from(left) * i32::from(right)).sum();
        let floats = |seed| -> Vec<f32> { (0..length).map(|at| f32::from(byte(at, seed)) / 127.0).collect() };
        let (float_left, float_right) = (floats(3), floats(4));
        let halves: Vec<u16> = float_left.iter().map(|&value| half::f16::from_f32(value).to_bits()).collect();
        let sum = |left: &dyn Fn(usize) -> f64| -> f64 {
            (0..length).map(|at| left(at) * f64::from(float_right[at])).sum()
        };
        let twice: Vec<i8> = (0..2 * length).map(|at| byte(at, 5)).collect();
        let half = |at: usize| i32::from(if at < length { left[at] & 15 } else { left[at - length] >> 4 });
        let of_nibbles: i32 = (0..2 * length).map(|at| half(at) * i32::from(twice[at])).sum();
        let mut mixed = vec![0.0; length];
        PORTABLE.mix(&float_left, &mut mixed);
        for (name, kernels) in Kernels::all() {
            assert_eq!(kernels.bytes(&left, &right), expected, "{name}, {length} bytes");
            assert_eq!(kernels.nibbles(&left, &twice), of_nibbles, "{name}, {length} pairs of nibbles");
            let mut got = vec![0.0; length];
            kernels.mix(&float_left, &mut got);
            assert_eq!(got, mixed, "{name}, {length} floats");
            let got = f64::from(kernels.floats(&float_left, &float_right));
            assert!((got - sum(&|at| f64::from(float_left[at]))).abs() < 1e-3, "{name}, {length} floats");
            let got = f64::from(kernels.halves(&halves, &float_right));
            let expected = sum(&|at| half::f16::from_bits(halves[at]).to_f64());
            assert!((got - expected).abs() < 1e-3, "{name}, {length} halves");
        }
    }

    #[test]
    fn every_kernel_adds_up_the_same() {
        assert_eq!(Kernels::all().last().map(|(name, _)| *name), Some("portable"));
        [0, 64, 128, 192, 256, 320, 512, 768, 1_024].into_iter().for_each(check);
    }

    #[test]
    fn the_largest_bytes_do_not_overflow() {
        for (name, kernels) in Kernels::all() {
            assert_eq!(kernels.bytes(&[255; 4_096], &[-128; 4_096]), -255 * 128 * 4_096, "{name}");
            assert_eq!(kernels.nibbles(&[255; 4_096], &[-128; 8_192]), -15 * 128 * 8_192, "{name}");
        }
    }
}
