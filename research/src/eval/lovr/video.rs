//! Encodes clips and full videos at several strides from one decode.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::rows::Rows;
use anyhow::{Context, anyhow, ensure};
use reprise_encoders::video::{self, Limits};
use reprise_encoders::{Clip as Frames, Embedder, Frame, Input};

use super::dataset::{Clip, Dataset};
use super::sampling;
use crate::encode::{self, Stretch};

/// Decoded clips in memory at a time.
const CLIPS_AT_ONCE: usize = 8;

/// The vectors at one stride.
pub(super) struct Strided {
    pub(super) stride: usize,
    /// One row per clip, in the dataset's order.
    pub(super) clips: Rows,
    /// One row per full video.
    pub(super) videos: Rows,
    /// Time in the encoder.
    pub(super) encoding: Duration,
}

/// The vectors at all strides, and the time of their common decode.
pub(super) struct Encoded {
    pub(super) strided: Vec<Strided>,
    pub(super) decoding: Duration,
}

/// The vectors of all clips and full videos. `swapped` swaps red and blue, as the released code does.
///
/// # Errors
/// A clip that cannot be decoded, or a model that fails.
pub(super) fn encode(
    model: &mut Embedder,
    dataset: &Dataset,
    strides: &[usize],
    swapped: bool,
    done: &dyn Fn(u64),
) -> anyhow::Result<Encoded> {
    let began = Instant::now();
    let lengths = encode::side_by_side(&dataset.clips, &|_, clip: &Clip| count(clip))?;
    let mut decoding = began.elapsed();
    let before: Vec<Vec<usize>> = strides.iter().map(|stride| before(dataset, &lengths, *stride)).collect();
    let dim = model.space.dim;
    let mut sums: Vec<Sums> = strides.iter().map(|_| Sums::new(dataset.videos.len(), dim)).collect();
    for first in (0..dataset.clips.len()).step_by(CLIPS_AT_ONCE) {
        let clips = &dataset.clips[first..dataset.clips.len().min(first + CLIPS_AT_ONCE)];
        let wanted = |at: usize, frames: usize| -> Vec<[Vec<usize>; 2]> {
            let of = |(stride, before): (&usize, &Vec<usize>)| {
                [sampling::of_clip(frames, *stride), sampling::of_video(frames, *stride, before[first + at])]
            };
            strides.iter().zip(&before).map(of).collect()
        };
        let began = Instant::now();
        let mut decoded = decode(model, clips, &wanted)?;
        if swapped {
            decoded.iter_mut().for_each(Decoded::swap_red_and_blue);
        }
        decoding += began.elapsed();
        for (at, (clip, decoded)) in clips.iter().zip(&decoded).enumerate() {
            let wanted = wanted(at, decoded.length);
            for (sums, [of_clip, of_video]) in sums.iter_mut().zip(&wanted) {
                let began = Instant::now();
                sums.add(model, clip.video, decoded, of_clip, of_video)?;
                sums.encoding += began.elapsed();
            }
        }
        done(clips.len() as u64);
    }
    let strided = sums.into_iter().zip(strides).map(|(sums, stride)| sums.finish(*stride, dim, dataset));
    Ok(Encoded { strided: strided.collect::<anyhow::Result<_>>()?, decoding })
}

fn count(clip: &Clip) -> anyhow::Result<usize> {
    let limits = Limits::default();
    let count =
        video::probe(&clip.file, &limits).and_then(|it| video::count_frames(&clip.file, &it, &limits));
    count.map_err(|error| anyhow!("{}: {error}", clip.file.display()))
}

/// The number of the video's frames before each clip, modulo the stride.
fn before(dataset: &Dataset, lengths: &[usize], stride: usize) -> Vec<usize> {
    let clips = dataset.clips.chunk_by(|a, b| a.video == b.video);
    let mut lengths = lengths.iter().copied();
    clips.flat_map(|clips| sampling::before(lengths.by_ref().take(clips.len()), stride)).collect()
}

/// The frames of a clip that at least one stride samples.
struct Decoded {
    /// Number of frames of the whole clip.
    length: usize,
    /// Indices of the decoded frames, ascending.
    numbers: Vec<usize>,
    frames: Vec<Frame>,
}

impl Decoded {
    /// # Errors
    /// A frame that was not decoded.
    fn pick(&self, wanted: &[usize]) -> anyhow::Result<Vec<Frame>> {
        let frame = |number: &usize| {
            let at = self.numbers.binary_search(number).ok().context("a requested frame is missing")?;
            Ok(self.frames[at].clone())
        };
        wanted.iter().map(frame).collect()
    }

    fn swap_red_and_blue(&mut self) {
        for frame in &mut self.frames {
            let swapped = frame.rgb.chunks_exact(3).flat_map(|pixel| [pixel[2], pixel[1], pixel[0]]);
            frame.rgb = swapped.collect();
        }
    }
}

fn decode(
    model: &Embedder,
    clips: &[Clip],
    wanted: &(dyn Fn(usize, usize) -> Vec<[Vec<usize>; 2]> + Sync),
) -> anyhow::Result<Vec<Decoded>> {
    let stretches: Vec<Stretch> = clips.iter().map(|clip| Stretch::whole(&clip.file)).collect();
    // Decoding repeats the pick if the frames differ from the packets' count. The last pick is the decoded one.
    let picked: Vec<Mutex<(usize, Vec<usize>)>> = clips.iter().map(|_| Mutex::default()).collect();
    let pick = |at: usize, times_ms: &[i64], _: i64| {
        let mut numbers: Vec<usize> = wanted(at, times_ms.len()).into_iter().flatten().flatten().collect();
        numbers.sort_unstable();
        numbers.dedup();
        *picked[at].lock().unwrap_or_else(PoisonError::into_inner) = (times_ms.len(), numbers.clone());
        numbers
    };
    let frames = encode::picked_frames(&stretches, model.space.scaling, &pick)?;
    let decoded = frames.into_iter().zip(picked).zip(clips).map(|((frames, picked), clip)| {
        let (length, numbers) = picked.into_inner().unwrap_or_else(PoisonError::into_inner);
        ensure!(numbers.len() == frames.len(), "{}: frames are missing", clip.file.display());
        Ok(Decoded { length, numbers, frames })
    });
    decoded.collect()
}

/// Sums at one stride.
struct Sums {
    clips: Vec<f32>,
    /// Per full video: the sum over its clips of raw vector times frame count.
    videos: Vec<Vec<f64>>,
    encoding: Duration,
}

impl Sums {
    fn new(videos: usize, dim: usize) -> Sums {
        Sums { clips: Vec::new(), videos: vec![vec![0.0; dim]; videos], encoding: Duration::ZERO }
    }

    fn add(
        &mut self,
        model: &mut Embedder,
        video: Option<usize>,
        decoded: &Decoded,
        of_clip: &[usize],
        of_video: &[usize],
    ) -> anyhow::Result<()> {
        let mut inputs = vec![Input::Frames(Frames { frames: decoded.pick(of_clip)? })];
        let another = video.is_some() && !of_video.is_empty() && of_video != of_clip;
        if another {
            inputs.push(Input::Frames(Frames { frames: decoded.pick(of_video)? }));
        }
        let raw = encode::inputs(model, &inputs)?;
        self.clips.extend_from_slice(&raw[0]);
        if let Some(sum) = video.and_then(|video| self.videos.get_mut(video)) {
            let (raw, weight) = (&raw[usize::from(another)], of_video.len() as f64);
            sum.iter_mut().zip(raw).for_each(|(sum, value)| *sum += weight * f64::from(*value));
        }
        Ok(())
    }

    fn finish(self, stride: usize, dim: usize, dataset: &Dataset) -> anyhow::Result<Strided> {
        for (video, sum) in dataset.videos.iter().zip(&self.videos) {
            ensure!(
                sum.iter().any(|value| *value != 0.0),
                "the video {video} has no frame at stride {stride}"
            );
        }
        let videos = self.videos.iter().flatten().map(|value| *value as f32).collect();
        Ok(Strided {
            stride,
            clips: Rows::new(self.clips, dim)?,
            videos: Rows::new(videos, dim)?,
            encoding: self.encoding,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn red_and_blue_change_places() {
        let frame = Frame { time_ms: 0, width: 2, height: 1, rgb: vec![1, 2, 3, 4, 5, 6].into() };
        let mut decoded = Decoded { length: 9, numbers: vec![7], frames: vec![frame] };
        decoded.swap_red_and_blue();
        assert_eq!(decoded.pick(&[7]).unwrap()[0].rgb[..], [3, 2, 1, 6, 5, 4]);
        assert!(decoded.pick(&[8]).is_err());
    }
}
