//! The scores of a whole video in a file: about 20 bytes per frame, checked by a hash.
//!
//! Layout, little endian: `RPCURVE` and a zero byte, version (u16), 1 if edges are present (u16). For each frame: the
//! milliseconds since the previous one (zigzag varint); hue, saturation, value, brightness and, if present, edges
//! (f32); moving (u16), began (varint), the settled area (varint) and, unless that is 0, how many milliseconds ago it
//! began to change (zigzag varint). From version 3 on a byte follows: bit 0 if there is a blend, bit 1 if a picture is
//! back. The blend has its misfit (varint) and how many milliseconds ago it began, had its middle and ended; the picture
//! how many ago it was interrupted (zigzag varints). Version 2 is read as without them. Then the number of frames (u64),
//! the duration in milliseconds (i64), and the SHA-256 of all bytes before it.

use sha2::{Digest, Sha256};

use super::blend::LONGEST_MS;
use super::cut::ClipRange;
use super::policy::Segmenter;
use super::scores::{Blend, FrameScores, Settled};
use super::segmentation::Segmentation;

const MAGIC: &[u8; 8] = b"RPCURVE\0";
const VERSION: u16 = 3;
/// The oldest version that is read.
const OLDEST: u16 = 2;
/// Bits of a frame's last byte.
const HAS_BLEND: u8 = 1;
const IS_BACK: u8 = 2;
const HEADER: usize = MAGIC.len() + 4;
const TRAILER: usize = 16;
const HASH: usize = 32;

/// Why bytes are not a readable curve. The remedy is to measure the video again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum CurveError {
    /// The bytes do not start as a curve.
    #[error("this is not a file of frame scores")]
    Foreign,
    /// Written by another version of this program.
    #[error("these frame scores are of version {0}, not {VERSION}: measure the video again")]
    Version(u16),
    /// The bytes are truncated, or the hash differs.
    #[error("these frame scores are truncated or damaged: measure the video again")]
    Damaged,
}

/// All scores of a video.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Curve {
    /// One entry per frame, in order of time.
    pub scores: Vec<FrameScores>,
    /// End of the video, in milliseconds.
    pub duration_ms: i64,
    /// Whether the edges were measured.
    pub has_edges: bool,
}

impl Curve {
    /// The clips of a segmentation, exactly as if the video were decoded again. Without [`Curve::has_edges`], edges
    /// count as unchanged; see [`Segmentation::needs_edges`].
    #[must_use]
    pub fn clips(&self, segmentation: Segmentation, cues: &[ClipRange]) -> Vec<ClipRange> {
        let mut segmenter = Segmenter::with_cues(segmentation, cues);
        let mut clips: Vec<ClipRange> = self.scores.iter().flat_map(|it| segmenter.push(it)).collect();
        clips.extend(segmenter.finish(self.duration_ms));
        clips
    }

    /// Reads the file of a [`CurveWriter`].
    ///
    /// # Errors
    /// [`CurveError`] if the bytes are damaged, of another version, or not a curve.
    pub fn read(bytes: &[u8]) -> Result<Curve, CurveError> {
        let rest = bytes.strip_prefix(MAGIC).ok_or(CurveError::Foreign)?;
        let version = rest.first_chunk().map(|it| u16::from_le_bytes(*it)).ok_or(CurveError::Damaged)?;
        if !(OLDEST..=VERSION).contains(&version) {
            return Err(CurveError::Version(version));
        }
        let (content, hash) = bytes.split_last_chunk::<HASH>().ok_or(CurveError::Damaged)?;
        if content.len() < HEADER + TRAILER || Sha256::digest(content)[..] != hash[..] {
            return Err(CurveError::Damaged);
        }
        Curve::parse(version, &content[HEADER - 2..]).ok_or(CurveError::Damaged)
    }

    /// Parses the part from the edges flag to the trailer.
    fn parse(version: u16, content: &[u8]) -> Option<Curve> {
        let (records, trailer) = content.split_last_chunk::<TRAILER>()?;
        let count = u64::from_le_bytes(*trailer.first_chunk()?);
        let duration_ms = i64::from_le_bytes(*trailer.last_chunk()?);
        let mut reader = Reader(records, version);
        let has_edges = u16::from_le_bytes(reader.take()?) == 1;
        let mut scores: Vec<FrameScores> = Vec::new();
        while !reader.0.is_empty() {
            let before = scores.last().map_or(0, |it| it.time_ms);
            scores.push(reader.frame(before, has_edges)?);
        }
        (scores.len() as u64 == count).then_some(Curve { scores, duration_ms, has_edges })
    }
}

/// Encodes scores one by one.
#[derive(Debug)]
pub struct CurveWriter {
    bytes: Vec<u8>,
    has_edges: bool,
    count: u64,
    last_ms: i64,
}

impl CurveWriter {
    /// A writer for scores with or without edges.
    #[must_use]
    pub fn new(has_edges: bool) -> CurveWriter {
        let mut bytes = MAGIC.to_vec();
        bytes.extend(VERSION.to_le_bytes());
        bytes.extend(u16::from(has_edges).to_le_bytes());
        CurveWriter { bytes, has_edges, count: 0, last_ms: 0 }
    }

    /// Adds the next frame.
    pub fn push(&mut self, scores: &FrameScores) {
        self.varint(scores.time_ms.wrapping_sub(self.last_ms));
        for score in [scores.hue, scores.saturation, scores.value, scores.brightness] {
            self.bytes.extend(score.to_le_bytes());
        }
        if self.has_edges {
            self.bytes.extend(scores.edges.unwrap_or(0.0).to_le_bytes());
        }
        self.bytes.extend(scores.moving.to_le_bytes());
        self.unsigned(u64::from(scores.began));
        let settled = scores.settled.filter(|it| it.area > 0);
        self.unsigned(settled.map_or(0, |it| u64::from(it.area)));
        if let Some(settled) = settled {
            self.varint(scores.time_ms.wrapping_sub(settled.began_ms));
        }
        let has_blend = if scores.blend.is_some() { HAS_BLEND } else { 0 };
        let is_back = if scores.back_from_ms.is_some() { IS_BACK } else { 0 };
        self.bytes.push(has_blend | is_back);
        if let Some(Blend { began_ms, middle_ms, ended_ms, misfit }) = scores.blend {
            self.unsigned(u64::from(misfit));
            for time_ms in [began_ms, middle_ms, ended_ms] {
                self.varint(scores.time_ms.wrapping_sub(time_ms));
            }
        }
        if let Some(back_from_ms) = scores.back_from_ms {
            self.varint(scores.time_ms.wrapping_sub(back_from_ms));
        }
        self.last_ms = scores.time_ms;
        self.count += 1;
    }

    /// The bytes of the file, for a video that ends at `duration_ms`.
    #[must_use]
    pub fn finish(mut self, duration_ms: i64) -> Vec<u8> {
        self.bytes.extend(self.count.to_le_bytes());
        self.bytes.extend(duration_ms.to_le_bytes());
        let hash = Sha256::digest(&self.bytes);
        self.bytes.extend(&hash[..]);
        self.bytes
    }

    fn varint(&mut self, number: i64) {
        self.unsigned(((number << 1) ^ (number >> 63)) as u64);
    }

    fn unsigned(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.bytes.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.bytes.push(number as u8);
    }
}

/// The bytes that are left, and the version of the file.
struct Reader<'a>(&'a [u8], u16);

impl Reader<'_> {
    fn frame(&mut self, before_ms: i64, has_edges: bool) -> Option<FrameScores> {
        let time_ms = before_ms.wrapping_add(self.varint()?);
        let [hue, saturation, value, brightness] =
            [self.float()?, self.float()?, self.float()?, self.float()?];
        let edges = if has_edges { Some(self.float()?) } else { None };
        let moving = u16::from_le_bytes(self.take()?);
        let began = u16::try_from(self.unsigned()?).ok()?;
        let area = u16::try_from(self.unsigned()?).ok()?;
        let settled = match area {
            0 => None,
            area => Some(Settled { area, began_ms: time_ms.wrapping_sub(self.varint()?) }),
        };
        let [marks] = if self.1 == OLDEST { [0] } else { self.take()? };
        let blend = if marks & HAS_BLEND == 0 { None } else { Some(self.blend(time_ms)?) };
        let back_from_ms =
            if marks & IS_BACK == 0 { None } else { Some(time_ms.wrapping_sub(self.ago_ms()?)) };
        Some(FrameScores {
            time_ms,
            hue,
            saturation,
            value,
            edges,
            brightness,
            moving,
            began,
            settled,
            blend,
            back_from_ms,
        })
    }

    fn blend(&mut self, time_ms: i64) -> Option<Blend> {
        let misfit = u16::try_from(self.unsigned()?).ok()?;
        let ago_ms = [self.ago_ms()?, self.ago_ms()?, self.ago_ms()?];
        let [began_ms, middle_ms, ended_ms] = ago_ms.map(|it| time_ms.wrapping_sub(it));
        ago_ms.is_sorted_by(|a, b| a >= b).then_some(Blend { began_ms, middle_ms, ended_ms, misfit })
    }

    /// How many milliseconds ago a mark was: what reads the scores relies on this bound.
    fn ago_ms(&mut self) -> Option<i64> {
        self.varint().filter(|it| (0..=LONGEST_MS).contains(it))
    }

    fn take<const COUNT: usize>(&mut self) -> Option<[u8; COUNT]> {
        let (taken, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*taken)
    }

    fn float(&mut self) -> Option<f32> {
        self.take().map(f32::from_le_bytes)
    }

    fn varint(&mut self) -> Option<i64> {
        self.unsigned().map(|it| (it >> 1) as i64 ^ -((it & 1) as i64))
    }

    fn unsigned(&mut self) -> Option<u64> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let [byte] = self.take()?;
            number |= u64::from(byte & 0x7F) << shift;
            if byte < 0x80 {
                return Some(number);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn written(curve: &Curve) -> Vec<u8> {
        let mut writer = CurveWriter::new(curve.has_edges);
        curve.scores.iter().for_each(|it| writer.push(it));
        writer.finish(curve.duration_ms)
    }

    fn any_scores(has_edges: bool) -> impl Strategy<Value = FrameScores> {
        let score = || 0.0_f32..255.0;
        let settled = prop::option::of((1_u16.., any::<i64>()));
        let ago = 0..=LONGEST_MS;
        let blend = prop::option::of(([ago.clone(), ago.clone(), ago.clone()], any::<u16>()));
        let marks = (settled, blend, prop::option::of(ago));
        ((any::<i64>(), score(), score(), score(), score(), score()), any::<[u16; 2]>(), marks).prop_map(
            move |((time_ms, hue, saturation, value, edges, brightness), [moving, began], marks)| {
                let (settled, blend, back) = marks;
                FrameScores {
                    time_ms,
                    hue,
                    saturation,
                    value,
                    edges: has_edges.then_some(edges),
                    brightness,
                    moving,
                    began,
                    settled: settled.map(|(area, began_ms)| Settled { area, began_ms }),
                    blend: blend.map(|(mut ago, misfit)| {
                        ago.sort_unstable();
                        let [ended_ms, middle_ms, began_ms] = ago.map(|it| time_ms.wrapping_sub(it));
                        Blend { began_ms, middle_ms, ended_ms, misfit }
                    }),
                    back_from_ms: back.map(|it| time_ms.wrapping_sub(it)),
                }
            },
        )
    }

    fn any_curve() -> impl Strategy<Value = Curve> {
        any::<bool>().prop_flat_map(|has_edges| {
            (prop::collection::vec(any_scores(has_edges), 0..20), any::<i64>())
                .prop_map(move |(scores, duration_ms)| Curve { scores, duration_ms, has_edges })
        })
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(curve in any_curve()) {
            prop_assert_eq!(Curve::read(&written(&curve)), Ok(curve));
        }

        #[test]
        fn any_change_is_noticed(curve in any_curve(), at: prop::sample::Index, bit in 0..8, cut: prop::sample::Index) {
            let mut bytes = written(&curve);
            prop_assert!(Curve::read(&bytes[..cut.index(bytes.len())]).is_err());
            let at = at.index(bytes.len());
            bytes[at] ^= 1_u8 << bit;
            prop_assert!(Curve::read(&bytes).is_err());
        }

        #[test]
        fn no_bytes_break_the_reader(bytes: Vec<u8>) {
            prop_assert!(Curve::read(&bytes).is_err());
            let _ = (Curve::parse(OLDEST, &bytes), Curve::parse(VERSION, &bytes));
        }
    }

    #[test]
    fn a_frame_takes_about_twenty_bytes() {
        let scores = (0..1000).map(|at| FrameScores { time_ms: at * 40, hue: 1.0, ..FrameScores::default() });
        let curve = Curve { scores: scores.collect(), duration_ms: 40_000, has_edges: false };
        assert_eq!(written(&curve).len(), HEADER + 1000 * 22 + TRAILER + HASH);
    }

    /// The first version without blends: its frames lack the last byte.
    #[test]
    fn an_older_curve_is_read_as_without_blends() {
        let frame = FrameScores { time_ms: 40, hue: 1.0, ..FrameScores::default() };
        let curve = Curve { scores: vec![frame], duration_ms: 80, has_edges: false };
        let new = written(&curve);
        let records = &new[HEADER..new.len() - TRAILER - HASH - 1];
        let trailer = &new[new.len() - TRAILER - HASH..new.len() - HASH];
        let mut old = [&MAGIC[..], &OLDEST.to_le_bytes(), &[0, 0], records, trailer].concat();
        let hash = Sha256::digest(&old);
        old.extend(&hash[..]);
        assert_eq!(Curve::read(&old), Ok(curve));
    }

    #[track_caller]
    fn check(bytes: &[u8], expected: CurveError) {
        assert_eq!(Curve::read(bytes), Err(expected));
    }

    #[test]
    fn errors_say_what_is_wrong() {
        let good = written(&Curve::default());
        check(b"", CurveError::Foreign);
        check(b"RIFFxxxxWEBP", CurveError::Foreign);
        check(&[&good[..8], &[9, 0], &good[10..]].concat(), CurveError::Version(9));
        check(&good[..good.len() - 1], CurveError::Damaged);
        check(&[&good[..], &[0]].concat(), CurveError::Damaged);
    }
}
