//! The conversion of pictures that ffmpeg has not scaled, with AVX2, 32 pixels at a time.

use std::arch::x86_64::__m256i;

use pulp::cast;
use pulp::x86::V3;

use super::factors::{BY_LUMA, Factors};
use super::rule::Row;

/// Pixels that are converted together.
const PIXELS: usize = 32;
/// Bytes of a lane; a register has two. Packed pixels are in the order 0, 2, 4 ... 1, 3, 5 in each.
const LANE: usize = 16;
/// The entry of a shuffle that makes a zero.
const ZERO: u8 = 0x80;

/// By part of a lane's 48 target bytes, and by colour: where the part's bytes of that colour come from.
const SHUFFLES: [[[u8; 2 * LANE]; 3]; 3] = shuffles();

/// One colour of the even and of the odd pixels, in order.
type Pair = [__m256i; 2];

/// Converts the first pixels of a row to RGB. Returns their number: the largest multiple of 32.
#[inline(always)]
pub(super) fn convert(simd: V3, factors: Factors, row: Row<'_>, rgb: &mut [u8]) -> usize {
    let (luma, rest) = row.luma.as_chunks::<PIXELS>();
    let chroma = row.blue.as_chunks::<{ PIXELS / 2 }>().0.iter().zip(row.red.as_chunks().0);
    for ((luma, (blue, red)), rgb) in luma.iter().zip(chroma).zip(rgb.as_chunks_mut().0) {
        *rgb = pixels(simd, factors, Block { luma, blue, red });
    }
    row.luma.len() - rest.len()
}

/// The planes of some pixels.
#[derive(Clone, Copy)]
struct Block<'a> {
    luma: &'a [u8; PIXELS],
    blue: &'a [u8; PIXELS / 2],
    red: &'a [u8; PIXELS / 2],
}

#[inline(always)]
fn pixels(simd: V3, factors: Factors, block: Block<'_>) -> [u8; 3 * PIXELS] {
    let avx2 = simd.avx2;
    let luma = cast(*block.luma);
    let even = avx2._mm256_and_si256(luma, simd.avx._mm256_set1_epi16(0xff));
    let odd = avx2._mm256_srli_epi16::<8>(luma);
    let luma = [times(simd, above(simd, even, 16), BY_LUMA), times(simd, above(simd, odd, 16), BY_LUMA)];
    let blue = above(simd, avx2._mm256_cvtepu8_epi16(cast(*block.blue)), 128);
    let red = above(simd, avx2._mm256_cvtepu8_epi16(cast(*block.red)), 128);
    let by_blue = times(simd, blue, factors.green_by_blue);
    let green = avx2._mm256_add_epi16(by_blue, times(simd, red, factors.green_by_red));
    let red = packed(simd, luma, times(simd, red, factors.red_by_red));
    let green = packed(simd, luma, green);
    let blue = packed(simd, luma, times(simd, blue, factors.blue_by_blue));
    interleaved(simd, [red, green, blue])
}

/// Eighths of steps above `zero`.
#[inline(always)]
fn above(simd: V3, values: __m256i, zero: i16) -> __m256i {
    let eighths = simd.avx2._mm256_slli_epi16::<3>(values);
    simd.avx2._mm256_sub_epi16(eighths, simd.avx._mm256_set1_epi16(8 * zero))
}

/// The upper halves of the products.
#[inline(always)]
fn times(simd: V3, eighths: __m256i, factor: i16) -> __m256i {
    simd.avx2._mm256_mulhi_epi16(eighths, simd.avx._mm256_set1_epi16(factor))
}

/// A colour in bytes, from luma and what chroma adds to each pair of pixels.
#[inline(always)]
fn packed(simd: V3, luma: Pair, shift: __m256i) -> __m256i {
    let even = simd.avx2._mm256_add_epi16(luma[0], shift);
    let odd = simd.avx2._mm256_add_epi16(luma[1], shift);
    simd.avx2._mm256_packus_epi16(even, odd)
}

#[inline(always)]
fn interleaved(simd: V3, colours: [__m256i; 3]) -> [u8; 3 * PIXELS] {
    let first = part(simd, colours, SHUFFLES[0]);
    let second = part(simd, colours, SHUFFLES[1]);
    let third = part(simd, colours, SHUFFLES[2]);
    // The lower lanes hold the first 16 pixels, the upper ones the others.
    cast([
        simd.avx2._mm256_permute2x128_si256::<0x20>(first, second),
        simd.avx2._mm256_permute2x128_si256::<0x30>(third, first),
        simd.avx2._mm256_permute2x128_si256::<0x31>(second, third),
    ])
}

/// A third of each lane's target bytes.
#[inline(always)]
fn part(simd: V3, colours: [__m256i; 3], shuffles: [[u8; 2 * LANE]; 3]) -> __m256i {
    let red = simd.avx2._mm256_shuffle_epi8(colours[0], cast(shuffles[0]));
    let green = simd.avx2._mm256_shuffle_epi8(colours[1], cast(shuffles[1]));
    let blue = simd.avx2._mm256_shuffle_epi8(colours[2], cast(shuffles[2]));
    simd.avx2._mm256_or_si256(simd.avx2._mm256_or_si256(red, green), blue)
}

const fn shuffles() -> [[[u8; 2 * LANE]; 3]; 3] {
    let mut shuffles = [[[ZERO; 2 * LANE]; 3]; 3];
    let mut at = 0;
    while at < 3 * LANE {
        let (pixel, colour) = (at / 3, at % 3);
        let from = (pixel / 2 + pixel % 2 * LANE / 2) as u8;
        shuffles[at / LANE][colour][at % LANE] = from;
        shuffles[at / LANE][colour][LANE + at % LANE] = from;
        at += 1;
    }
    shuffles
}
