//! Scales rows of pixels horizontally with AVX2: one shuffle puts the source bytes of eight target bytes side by side.

use std::arch::x86_64::__m256i;

use pulp::cast;
use pulp::x86::V3;

use super::taps::Place;

/// Target bytes of a group: their pairs of source bytes, as 16-bit numbers, fill a lane of a register.
const GROUP: usize = 4;
/// Bytes of a lane; a register has two.
const LANE: usize = 16;
/// Target bytes of a block: the groups of two registers.
const BLOCK: usize = 16;
/// The entry of a shuffle that makes a zero.
const ZERO: u8 = 0x80;

/// The columns of pictures of one width, for shuffles.
#[derive(Debug)]
pub(super) struct Shuffled {
    simd: V3,
    blocks: Vec<[Register; 2]>,
}

/// How two groups of a block are made: the first and third of it, or the second and fourth. Packing two registers puts
/// the groups in order.
#[derive(Debug, Clone, Copy)]
struct Register {
    /// For each lane the first source byte that is loaded.
    starts: [usize; 2],
    /// For each byte of the register its place in the lane that was loaded.
    shuffle: [u8; 2 * LANE],
    weights: [i16; LANE],
}

impl Shuffled {
    /// `None` without AVX2, for rows shorter than a lane, and where the source bytes of a group are too far apart for
    /// one: where pictures shrink to a third or less.
    pub(super) fn new(row_bytes: usize, places: &[Place]) -> Option<Shuffled> {
        let simd = V3::try_new()?;
        let last_start = row_bytes.checked_sub(LANE)?;
        let mut blocks = Vec::new();
        for places in places.chunks(BLOCK) {
            let mut registers = [Register::EMPTY; 2];
            for (group, places) in places.chunks(GROUP).enumerate() {
                registers[group % 2].put(group / 2, places, last_start)?;
            }
            blocks.push(registers);
        }
        Some(Shuffled { simd, blocks })
    }

    /// As [`super::columns::Columns::scale`].
    #[inline(always)]
    pub(super) fn scale(&self, row: &[u8], values: &mut Vec<i16>) {
        values.resize(BLOCK * self.blocks.len(), 0);
        for ([even, odd], values) in self.blocks.iter().zip(values.as_chunks_mut::<BLOCK>().0) {
            let (even, odd) = (even.sums(self.simd, row), odd.sums(self.simd, row));
            *values = cast(self.simd.avx2._mm256_packs_epi32(even, odd));
        }
    }
}

impl Register {
    const EMPTY: Register = Register { starts: [0; 2], shuffle: [ZERO; 2 * LANE], weights: [0; LANE] };

    /// Puts a group into a lane. `None` if its source bytes are too far apart.
    fn put(&mut self, lane: usize, group: &[Place], last_start: usize) -> Option<()> {
        let bytes = group.iter().flat_map(|place| place.bytes);
        let start = bytes.min()?.min(last_start);
        self.starts[lane] = start;
        let pairs = self.shuffle[lane * LANE..].as_chunks_mut::<4>().0;
        let weights = self.weights[lane * LANE / 2..].as_chunks_mut::<2>().0;
        for ((place, pair), weights) in group.iter().zip(pairs).zip(weights) {
            for (byte, shuffle) in place.bytes.iter().zip([0, 2]) {
                pair[shuffle] = u8::try_from(byte - start).ok().filter(|at| usize::from(*at) < LANE)?;
            }
            *weights = place.weights;
        }
        Some(())
    }

    /// The eight target bytes with 7 fractional bits.
    #[inline(always)]
    fn sums(&self, simd: V3, row: &[u8]) -> __m256i {
        let mut lanes = [[0; LANE]; 2];
        lanes[0].copy_from_slice(&row[self.starts[0]..][..LANE]);
        lanes[1].copy_from_slice(&row[self.starts[1]..][..LANE]);
        let pairs = simd.avx2._mm256_shuffle_epi8(cast(lanes), cast(self.shuffle));
        let sums = simd.avx2._mm256_madd_epi16(pairs, cast(self.weights));
        simd.avx2._mm256_srai_epi32::<4>(sums)
    }
}
