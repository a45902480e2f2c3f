//! Stage 1: trains the temporal transformer on cached frame features. Targets: classes, attributes, cumulative
//! angles.

use std::ops::ControlFlow;
use std::path::Path;

use candle_core::{Device, Tensor};

use super::augment::{Augment, ClipFrame};
use super::examples::{TrainingClips, grouped};
use super::features::Features;
use super::folder::Stage;
use super::loss::{huber, soft_cross_entropy, targets};
use super::run::{Draw, Loss, Run, Task, train};
use super::store::Store;
use super::{Progress, Random, Settings, TrainError};
use reprise_encoders::families::sports::Config;
use reprise_encoders::families::sports::TimeModel;
use reprise_encoders::families::sports::training::ClipEncoder;
use reprise_encoders::families::sports::training::default_device;
use reprise_encoders::families::sports::training::{Linear, unit};
use reprise_encoders::families::sports::training::{Parameters, Start};

impl Settings {
    /// Defaults of stage 1.
    pub fn clips() -> Self {
        Settings {
            steps: 2400,
            batch: 256,
            learning_rate: 1.5e-3,
            warmup: 60,
            weight_decay: 0.05,
            clip: 1.0,
            seed: 2,
            shards: 2,
            checkpoint_every: 200,
        }
    }
}

/// Label smoothing of the class targets.
const SMOOTHING: f32 = 0.05;
/// Standard deviation of the noise on features, relative to theirs.
const NOISE: f32 = 0.1;
/// Angle targets per frame: absolute rotation, signed rotation, twist.
const ANGLES: usize = 3;

/// Training clips with the features of their frames.
#[derive(Clone, Copy)]
pub struct ClipFeatures<'a> {
    /// The clips.
    pub clips: &'a TrainingClips,
    /// Features of all frames of the clips.
    pub features: &'a Features,
}

/// The clip encoder's configuration and the augmentation of its examples.
#[derive(Clone, Copy)]
pub struct ClipRecipe<'a> {
    /// Configuration of the encoder.
    pub config: &'a Config,
    /// Augmentation of the examples.
    pub augment: Augment,
}

/// Trains the temporal transformer. Writes `stage1.safetensors` to `folder`, or `stage1_shuffled.safetensors`
/// with [`TimeModel::Shuffled`].
///
/// # Errors
/// [`TrainError`]. After [`TrainError::Stopped`] the same call resumes.
pub fn train_clips(
    data: ClipFeatures<'_>,
    recipe: ClipRecipe<'_>,
    settings: &Settings,
    folder: &Path,
    progress: &mut dyn FnMut(&Progress) -> ControlFlow<()>,
) -> Result<(), TrainError> {
    let ClipFeatures { clips, features } = data;
    let ClipRecipe { config, augment } = recipe;
    clips.check()?;
    config.check()?;
    let (stage, work) = match config.time {
        TimeModel::Ordered => (Stage::Clips, "stage1"),
        TimeModel::Shuffled => (Stage::ShuffledClips, "stage1_shuffled"),
        TimeModel::Mean => {
            return Err(TrainError::Data("a mean over frames has nothing to train".into()));
        }
    };
    let mut store = Store::new(settings.seed, default_device());
    let task = Clips::new(&mut store, clips, features, config, augment)?;
    let name = format!("{work} {config:?} {augment:?} {}", clips.name());
    train(&task, &store, Run { settings, name: &name, folder: &folder.join(work) }, progress)?;
    stage.save(folder, &store.tensors()?)
}

/// Fixes the scale of features in `store` to their mean and standard deviation over `features`.
pub(super) fn fix_scale(store: &mut Store, features: &Features) -> Result<(), TrainError> {
    let (mean, deviation) = features.moments();
    store.fix("features.mean", Tensor::new(mean, default_device())?);
    store.fix("features.deviation", Tensor::new(deviation, default_device())?);
    Ok(())
}

/// The features at `places`: `[examples, frames, width]`, f32.
pub(super) fn gathered(
    features: &Features,
    places: &[Vec<ClipFrame>],
    frames: usize,
) -> Result<Tensor, TrainError> {
    let mut values = Vec::with_capacity(places.len() * frames * features.width);
    for place in places.iter().flatten() {
        values.extend_from_slice(features.frame(place.clip, place.frame));
    }
    let shape = (places.len(), frames, features.width);
    Ok(Tensor::from_vec(values, shape, &Device::Cpu)?.to_device(default_device())?)
}

/// Samples the frames of one example of a clip.
pub(super) struct Sampling<'a> {
    pub(super) clips: &'a TrainingClips,
    pub(super) features: &'a Features,
    pub(super) augment: Augment,
    pub(super) frames: usize,
    pub(super) shuffled: bool,
    /// Clips grouped by the first attribute; only clips of one group serve as padding for each other.
    places: Vec<Vec<usize>>,
}

impl<'a> Sampling<'a> {
    pub(super) fn new(
        clips: &'a TrainingClips,
        features: &'a Features,
        config: &Config,
        augment: Augment,
    ) -> Self {
        let values = clips.classes.attributes.first().map_or(1, |attribute| attribute.values);
        let places = grouped((0..clips.class.len()).map(|clip| clips.place(clip)), values);
        let shuffled = config.time == TimeModel::Shuffled;
        Sampling { clips, features, augment, frames: config.frames, shuffled, places }
    }

    pub(super) fn places(&self, clip: usize, random: &mut Random) -> Vec<ClipFrame> {
        let beside = &self.places[self.clips.place(clip)];
        let neighbour = random.choice(beside).copied().unwrap_or(clip);
        let count = |clip: usize| self.features.frames(clip);
        let mut places = self.augment.places(clip, neighbour, &count, self.frames, random);
        if self.shuffled {
            random.shuffle(&mut places);
        }
        places
    }
}

struct Clips<'a> {
    sampling: Sampling<'a>,
    deviation: Vec<f32>,
    turns: Vec<Vec<[f32; ANGLES]>>,
    encoder: ClipEncoder,
    /// Class vectors, `[classes, dim]`.
    classes: Tensor,
    /// Natural logarithm of the scale of the cosines.
    scale: Tensor,
    attributes: Vec<Linear>,
    angles: Linear,
}

impl<'a> Clips<'a> {
    fn new(
        store: &mut Store,
        clips: &'a TrainingClips,
        features: &'a Features,
        config: &Config,
        augment: Augment,
    ) -> Result<Self, TrainError> {
        fix_scale(store, features)?;
        let (dim, labels) = (config.dim, clips.classes.labels.len());
        let mut attributes = Vec::new();
        for attribute in &clips.classes.attributes {
            let name = format!("heads.{}", attribute.name);
            attributes.push(Linear::new(store, &name, dim, attribute.values)?);
        }
        Ok(Clips {
            sampling: Sampling::new(clips, features, config, augment),
            deviation: features.moments().1,
            turns: (0..clips.class.len()).map(|clip| clips.turns(clip)).collect(),
            encoder: ClipEncoder::new(store, config)?,
            classes: store.get("heads.classes", &[labels, dim], Start::Noise(0.1))?,
            scale: store.get("heads.scale", &[1], Start::Constant(16_f32.ln()))?,
            attributes,
            angles: Linear::new(store, "heads.angles", config.width, ANGLES)?,
        })
    }

    fn noise(&self, examples: usize, random: &mut Random) -> Result<Tensor, TrainError> {
        let frames = self.sampling.frames;
        let noise = (0..examples * frames).flat_map(|_| self.deviation.iter());
        let noise: Vec<f32> = noise.map(|deviation| deviation * NOISE * random.normal()).collect();
        let shape = (examples, frames, self.deviation.len());
        Ok(Tensor::from_vec(noise, shape, &Device::Cpu)?.to_device(default_device())?)
    }

    /// Huber loss of the angles over the clip's own frames; padding counts 0.
    fn angle_loss(
        &self,
        frames: &Tensor,
        places: &[Vec<ClipFrame>],
        own: &[usize],
    ) -> Result<Tensor, TrainError> {
        let (mut wanted, mut counts) = (Vec::new(), Vec::new());
        for (places, clip) in places.iter().zip(own) {
            for place in places {
                let turns = if place.clip == *clip { self.turns[*clip].get(place.frame) } else { None };
                wanted.extend(turns.copied().unwrap_or_default());
                counts.push(if turns.is_some() { 1_f32 } else { 0.0 });
            }
        }
        let (examples, per) = (places.len(), self.sampling.frames);
        let wanted =
            Tensor::from_vec(wanted, (examples, per, ANGLES), &Device::Cpu)?.to_device(default_device())?;
        let counts =
            Tensor::from_vec(counts, (examples, per, 1), &Device::Cpu)?.to_device(default_device())?;
        let distance = huber(&(self.angles.forward(frames)? - wanted)?, 0.3)?;
        Ok(distance.broadcast_mul(&counts)?.mean_all()?)
    }
}

impl Task for Clips<'_> {
    fn loss(&self, mut draw: Draw) -> Result<Loss, TrainError> {
        let clips = self.sampling.clips;
        let own: Vec<usize> = (0..draw.examples).map(|_| draw.random.below(clips.class.len())).collect();
        let places: Vec<Vec<ClipFrame>> =
            own.iter().map(|clip| self.sampling.places(*clip, &mut draw.random)).collect();
        let features = gathered(self.sampling.features, &places, self.sampling.frames)?;
        let encoded = self.encoder.forward(&(features + self.noise(own.len(), &mut draw.random)?)?)?;

        let cosines = unit(&encoded.clips)?.matmul(&unit(&self.classes)?.t()?)?;
        let scores = cosines.broadcast_mul(&self.scale.exp()?)?;
        let labels: Vec<(usize, f32)> = own.iter().map(|clip| (clips.class[*clip], 1.0)).collect();
        let right = scores.argmax(1)?.to_vec1::<u32>()?;
        let right = right.iter().zip(&labels).filter(|(got, label)| **got as usize == label.0).count();
        let wanted = targets(&labels, clips.classes.labels.len(), SMOOTHING, default_device())?;
        let class = soft_cross_entropy(&scores, &wanted)?;

        let angles = self.angle_loss(&encoded.frames, &places, &own)?;
        let mut total = (&class + (&angles * 2.0)?)?;
        for (attribute, head) in clips.classes.attributes.iter().zip(&self.attributes) {
            let value = |clip: &usize| (attribute.of_class[clips.class[*clip]], 1.0);
            let wanted =
                targets(&own.iter().map(value).collect::<Vec<_>>(), attribute.values, 0.0, default_device())?;
            total = (total + (soft_cross_entropy(&head.forward(&encoded.clips)?, &wanted)? * 0.3)?)?;
        }
        let right = right as f32 / own.len().max(1) as f32;
        let parts = vec![("class", class.to_scalar()?), ("angles", angles.to_scalar()?), ("right", right)];
        Ok(Loss { total, parts })
    }
}
