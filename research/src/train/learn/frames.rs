//! Stage 0: trains the frame encoder on single frames with the renderer's exact labels, then computes the
//! features of all frames.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use candle_core::{Device, Tensor};

use super::examples::{FrameTruth, TrainingClips, Visible};
use super::features::Features;
use super::folder::{Stage, preprocessing};
use super::footage::decode_all;
use super::loss::{huber, soft_cross_entropy, targets};
use super::run::{Draw, Loss, Run, Task, is_finished, train};
use super::store::Store;
use super::{Progress, Random, Settings, TrainError};
use reprise_encoders::Frame;
use reprise_encoders::families::sports::Config;
use reprise_encoders::families::sports::training::ForInference;
use reprise_encoders::families::sports::training::FrameEncoder;
use reprise_encoders::families::sports::training::Linear;
use reprise_encoders::families::sports::training::default_device;
use reprise_encoders::families::sports::training::{FRAMES_PER_PASS, pixels};
use reprise_encoders::preprocess::Preprocessing;

/// Frames per clip to train on: 15,000 clips of 64 by 64 pixels take 1.5 GB of memory.
const KEPT: usize = 8;

impl Settings {
    /// Defaults of stage 0.
    pub fn frames() -> Self {
        Settings {
            steps: 2000,
            batch: 256,
            learning_rate: 2e-3,
            warmup: 60,
            weight_decay: 0.02,
            clip: 1.0,
            seed: 1,
            shards: 2,
            checkpoint_every: 200,
        }
    }
}

/// Trains the frame encoder and writes `frames.safetensors` to `folder`.
///
/// # Errors
/// [`TrainError`]. After [`TrainError::Stopped`] the same call resumes.
pub fn train_frames(
    clips: &TrainingClips,
    config: &Config,
    settings: &Settings,
    folder: &Path,
    progress: &mut dyn FnMut(&Progress) -> ControlFlow<()>,
) -> Result<(), TrainError> {
    clips.check()?;
    config.check()?;
    let (name, work) = (format!("frames {config:?} {}", clips.name()), folder.join("frames"));
    if is_finished(&name, settings, &work)? && Stage::Frames.is_saved(folder) {
        return Ok(());
    }
    let kept = Kept::open(clips, config, &work)?;
    let mut store = Store::new(settings.seed, default_device());
    let task = Frames::new(&mut store, clips, config, kept)?;
    train(&task, &store, Run { settings, name: &name, folder: &work }, progress)?;
    Stage::Frames.save(folder, &store.tensors()?)?;
    task.kept.remove()
}

/// Runs the trained frame encoder over every frame of all clips. Writes `features.npy`.
///
/// # Errors
/// [`TrainError`] if a clip, the encoder or the file fails.
pub fn extract_features(
    clips: &TrainingClips,
    config: &Config,
    folder: &Path,
    progress: &mut dyn FnMut(usize, usize),
) -> Result<Features, TrainError> {
    clips.check()?;
    let mut store = Stage::Frames.load(folder, default_device())?;
    let encoder = FrameEncoder::new(&mut ForInference(&mut store), config)?;
    let (side, preprocessing) = (config.image_size as u32, preprocessing(config)?);
    let mut features = Features::zeros(&clips.frames(), config.width);
    let mut done = 0;
    decode_all(&clips.footage, side, 1, &mut |clip, frames| {
        let mut values: Vec<f32> = Vec::with_capacity(frames.len() * config.width);
        for chunk in frames.chunks(FRAMES_PER_PASS) {
            let chunk: Vec<&Frame> = chunk.iter().collect();
            let rows = encoder.forward(&pixels(&preprocessing, &chunk, default_device())?)?;
            values.extend(rows.flatten_all()?.to_vec1::<f32>()?);
        }
        features.clip_mut(clip).copy_from_slice(&values);
        done += 1;
        progress(done, clips.footage.len());
        Ok(())
    })?;
    features.save(&folder.join("features.npy"))?;
    Ok(features)
}

/// [`KEPT`] random frames of every clip, one from each equal part. In memory, because random reads from disk
/// are slow. Also in a file, so that a resumed run need not decode again.
struct Kept {
    path: PathBuf,
    pixels: Vec<u8>,
    side: u32,
}

impl Kept {
    /// Frame number of the kept frame `place` of `clip`.
    fn frame(clips: &TrainingClips, clip: usize, place: usize) -> usize {
        let count = clips.footage[clip].frames;
        let (from, to) = (place * count / KEPT, (place + 1) * count / KEPT);
        (from + Random::new(&[0xF4A3E, clip as u64, place as u64]).below(to - from)).min(count - 1)
    }

    /// Reads the file, or decodes the clips and writes it.
    fn open(clips: &TrainingClips, config: &Config, folder: &Path) -> Result<Self, TrainError> {
        std::fs::create_dir_all(folder).map_err(|error| TrainError::file(folder, error))?;
        let (path, side) = (folder.join("frames.rgb"), config.image_size as u32);
        let why = |error: std::io::Error| TrainError::file(&path, error);
        let bytes = Kept::bytes(side) * KEPT * clips.footage.len();
        let pixels = match std::fs::metadata(&path) {
            Ok(known) if known.len() == bytes as u64 => std::fs::read(&path).map_err(why)?,
            _ => {
                let pixels = Kept::decode(clips, side, bytes)?;
                let part = path.with_extension("part");
                std::fs::write(&part, &pixels).and_then(|()| std::fs::rename(&part, &path)).map_err(why)?;
                pixels
            }
        };
        Ok(Kept { path, pixels, side })
    }

    /// Size of one frame in bytes.
    fn bytes(side: u32) -> usize {
        side as usize * side as usize * 3
    }

    fn decode(clips: &TrainingClips, side: u32, bytes: usize) -> Result<Vec<u8>, TrainError> {
        let mut pixels = vec![0; bytes];
        decode_all(&clips.footage, side, 2, &mut |clip, frames| {
            let own = pixels[clip * KEPT * Kept::bytes(side)..].chunks_exact_mut(Kept::bytes(side));
            for (place, pixels) in own.take(KEPT).enumerate() {
                pixels.copy_from_slice(&frames[Kept::frame(clips, clip, place)].rgb);
            }
            Ok(())
        })?;
        Ok(pixels)
    }

    fn read(&self, clip: usize, place: usize) -> Frame {
        let bytes = Kept::bytes(self.side);
        let rgb = &self.pixels[(clip * KEPT + place) * bytes..][..bytes];
        Frame { time_ms: 0, width: self.side, height: self.side, rgb: rgb.into() }
    }

    /// Deletes the file: it is large and can be made again.
    fn remove(&self) -> Result<(), TrainError> {
        std::fs::remove_file(&self.path).map_err(|error| TrainError::file(&self.path, error))
    }
}

/// Pose targets: sine and cosine of the body angle, facing of the chest, airborne or not, joints in units of 2
/// radians.
const POSE: usize = 9;

fn pose(truth: &FrameTruth) -> [f32; POSE] {
    let (sine, cosine) = truth.somersault.sin_cos();
    let airborne = if truth.airborne { 1.0 } else { 0.0 };
    let ([up, right, towards], [hip, knee, shoulder]) = (truth.facing, truth.joints.map(|it| it / 2.0));
    [sine, cosine, up, right, towards, airborne, hip, knee, shoulder]
}

struct Frames<'a> {
    clips: &'a TrainingClips,
    kept: Kept,
    preprocessing: Preprocessing,
    encoder: FrameEncoder,
    pose: Linear,
    /// Attribute numbers that a frame can show, each with its head.
    attributes: Vec<(usize, Linear)>,
}

impl<'a> Frames<'a> {
    fn new(
        store: &mut Store,
        clips: &'a TrainingClips,
        config: &Config,
        kept: Kept,
    ) -> Result<Self, TrainError> {
        let encoder = FrameEncoder::new(store, config)?;
        let pose = Linear::new(store, "heads.pose", config.width, POSE)?;
        let mut attributes = Vec::new();
        for (number, attribute) in clips.classes.attributes.iter().enumerate() {
            if attribute.visible != Visible::Never {
                let name = format!("heads.{}", attribute.name);
                attributes.push((number, Linear::new(store, &name, config.width, attribute.values)?));
            }
        }
        Ok(Frames { clips, kept, preprocessing: preprocessing(config)?, encoder, pose, attributes })
    }

    /// Sum of the cross-entropies of the visible attributes.
    fn attribute_loss(&self, features: &Tensor, shown: &[(usize, FrameTruth)]) -> Result<Tensor, TrainError> {
        let mut sum = Tensor::zeros((), features.dtype(), features.device())?;
        for (number, head) in &self.attributes {
            let attribute = &self.clips.classes.attributes[*number];
            let counts = |truth: &FrameTruth| attribute.visible == Visible::Always || truth.airborne;
            let row = |(class, truth): &(usize, FrameTruth)| {
                (attribute.of_class[*class], if counts(truth) { 1.0 } else { 0.0 })
            };
            let rows: Vec<(usize, f32)> = shown.iter().map(row).collect();
            let wanted = targets(&rows, attribute.values, 0.0, features.device())?;
            sum = (sum + soft_cross_entropy(&head.forward(features)?, &wanted)?)?;
        }
        Ok(sum)
    }
}

impl Task for Frames<'_> {
    fn loss(&self, mut draw: Draw) -> Result<Loss, TrainError> {
        let (mut frames, mut shown) = (Vec::new(), Vec::new());
        for _ in 0..draw.examples {
            let clip = draw.random.below(self.clips.footage.len());
            let place = draw.random.below(KEPT);
            frames.push(self.kept.read(clip, place));
            let truth = self.clips.truth[clip][Kept::frame(self.clips, clip, place)];
            shown.push((self.clips.class[clip], truth));
        }
        let frames: Vec<&Frame> = frames.iter().collect();
        let features = self.encoder.forward(&pixels(&self.preprocessing, &frames, default_device())?)?;
        let wanted: Vec<f32> = shown.iter().flat_map(|(_, truth)| pose(truth)).collect();
        let wanted =
            Tensor::from_vec(wanted, (frames.len(), POSE), &Device::Cpu)?.to_device(default_device())?;
        let pose = huber(&(self.pose.forward(&features)? - wanted)?, 0.3)?.mean_all()?;
        let attributes = self.attribute_loss(&features, &shown)?;
        let parts = vec![("pose", pose.to_scalar()?), ("attributes", attributes.to_scalar()?)];
        Ok(Loss { total: ((pose * 4.0)? + (attributes * 0.6)?)?, parts })
    }
}
