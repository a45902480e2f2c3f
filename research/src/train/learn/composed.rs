//! Stage 2: trains the text transformer and the fusion on vectors of the frozen clip encoder. Losses: HN-NCE
//! for composed queries, alignment for plain texts.

use std::ops::ControlFlow;
use std::path::Path;

use candle_core::{Device, Tensor};

use super::augment::Augment;
use super::clips::{Sampling, fix_scale, gathered};
use super::examples::{TrainingClips, grouped};
use super::features::Features;
use super::folder::{self, Stage};
use super::loss::{HardNegatives, Mode, hn_nce, soft_cross_entropy};
use super::run::{Draw, Loss, Run, Task, train};
use super::store::Store;
use super::vocabulary::{Noise, Vocabulary};
use super::{Progress, Random, Settings, TrainError};
use reprise_encoders::families::sports::Config;
use reprise_encoders::families::sports::TimeModel;
use reprise_encoders::families::sports::training::ClipEncoder;
use reprise_encoders::families::sports::training::default_device;
use reprise_encoders::families::sports::training::unit;
use reprise_encoders::families::sports::training::{EncodedText, Fusion, PaddedTexts, TextEncoder};
use reprise_encoders::families::sports::training::{ForInference, Parameters, Start};

impl Settings {
    /// Defaults of stage 2.
    pub fn composed() -> Self {
        Settings {
            steps: 1600,
            batch: 256,
            learning_rate: 1e-3,
            warmup: 40,
            weight_decay: 0.02,
            clip: 1.0,
            seed: 3,
            shards: 2,
            checkpoint_every: 200,
        }
    }
}

/// A modification text from one class to another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Modification {
    /// Class of the query video.
    pub from: usize,
    /// Class of the target video.
    pub to: usize,
    /// The modification text.
    pub text: String,
}

/// A plain text that describes a class.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Description {
    /// The class.
    pub class: usize,
    /// The text.
    pub text: String,
}

/// All texts of a training run.
#[derive(Debug, Clone, Default)]
pub struct Texts {
    /// Modification texts; at least one.
    pub modifications: Vec<Modification>,
    /// Descriptions; without any, the alignment loss is left out.
    pub descriptions: Vec<Description>,
}

/// The loss of stage 2.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Objective {
    /// Weights of hard negatives.
    pub hard: HardNegatives,
    /// Source of hardness: true for similarities of the labels (the paper), false for vectors of the batch (its
    /// code).
    pub by_label: bool,
    /// Weight of the alignment loss of plain texts and clips.
    pub alignment: f64,
    /// Probability of drawing a modification of one attribute, if there are longer ones too.
    pub one_attribute: f32,
}

impl Objective {
    /// The settings of the built-in model.
    pub const USUAL: Objective = Objective {
        hard: HardNegatives { alpha: 1.0, beta: 2.0, mode: Mode::Clean },
        by_label: true,
        alignment: 0.5,
        one_attribute: 0.6,
    };
}

/// Vectors per clip; each has its own augmentation.
const VARIANTS: usize = 4;
/// Probability of spelling a word letter by letter, in a text with noise.
const SPELT: f32 = 0.08;
/// Probability of an unknown word before each word, in a text with noise. Users write words that training texts
/// lack.
const STRANGE: f32 = 0.2;
/// Noise of the texts that are changed.
const NOISE: Noise = Noise { spelt: SPELT, strange: STRANGE };
/// Probability of a text without noise.
const PLAIN: f32 = 0.4;
/// Probability of a text that begins at a later position.
const MOVED: f32 = 0.3;
/// Texts per forward pass.
const BESIDE: usize = 32;
/// Largest scale of the cosines.
const STEEPEST: f64 = 100.0;

/// The training data of stage 2.
#[derive(Clone, Copy)]
pub struct ComposedData<'a> {
    /// The clips.
    pub clips: &'a TrainingClips,
    /// Features of all frames of the clips.
    pub features: &'a Features,
    /// Texts about the classes of the clips.
    pub texts: &'a Texts,
}

/// The model's configuration, the augmentation of its examples, and its loss.
#[derive(Clone, Copy)]
pub struct ComposedRecipe<'a> {
    /// Configuration of the model.
    pub config: &'a Config,
    /// Augmentation of the examples.
    pub augment: Augment,
    /// The loss.
    pub objective: Objective,
}

/// The folders of stage 2.
#[derive(Clone, Copy)]
pub struct ComposedFolders<'a> {
    /// Contains the tensors of the earlier stages.
    pub stages: &'a Path,
    /// Receives the checkpoint and the curve.
    pub work: &'a Path,
    /// Receives the complete model.
    pub model: &'a Path,
}

/// Trains the text transformer and the fusion, and writes the complete model.
///
/// # Errors
/// [`TrainError`]. After [`TrainError::Stopped`] the same call resumes.
pub fn train_composed(
    data: ComposedData<'_>,
    recipe: ComposedRecipe<'_>,
    settings: &Settings,
    folders: ComposedFolders<'_>,
    progress: &mut dyn FnMut(&Progress) -> ControlFlow<()>,
) -> Result<(), TrainError> {
    let ComposedData { clips, features, texts } = data;
    let ComposedRecipe { config, augment, objective } = recipe;
    let ComposedFolders { stages, work, model } = folders;
    clips.check()?;
    texts.check(clips)?;
    let all = texts.modifications.iter().map(|it| &it.text[..]);
    let all = all.chain(texts.descriptions.iter().map(|it| &it.text[..]));
    let vocabulary = Vocabulary::of(all, config.max_position_embeddings)?;
    let config = Config { vocab_size: vocabulary.size(), ..config.clone() };
    config.check()?;
    let mut frozen = frozen(features, &config, stages)?;
    let encoder = ClipEncoder::new(&mut ForInference(&mut frozen), &config)?;
    let sampling = Sampling::new(clips, features, &config, augment);
    let vectors = Vectors::of(&encoder, &sampling, config.dim, settings.seed)?;
    let mut store = Store::new(settings.seed, default_device());
    let inputs = Inputs { texts, vectors: &vectors, vocabulary: &vocabulary, objective };
    let task = Composed::new(&mut store, clips, &config, inputs)?;
    let name = format!("composed {config:?} {augment:?} {objective:?} {} {}", clips.name(), texts.name());
    train(&task, &store, Run { settings, name: &name, folder: work }, progress)?;
    let mut tensors = Stage::Frames.load(stages, &Device::Cpu)?.tensors()?;
    tensors.extend(frozen.tensors()?);
    tensors.extend(store.tensors()?);
    folder::write(model, &config, &vocabulary, &tensors)
}

/// Tensors of the trained clip encoder.
fn frozen(features: &Features, config: &Config, stages: &Path) -> Result<Store, TrainError> {
    match config.time {
        TimeModel::Ordered => Stage::Clips.load(stages, default_device()),
        TimeModel::Shuffled => Stage::ShuffledClips.load(stages, default_device()),
        TimeModel::Mean => {
            let mut store = Store::new(0, default_device());
            fix_scale(&mut store, features)?;
            Ok(store)
        }
    }
}

impl Texts {
    /// Fingerprint of the texts: counts and a checksum.
    fn name(&self) -> String {
        let modifications = self.modifications.iter().map(|it| &it.text);
        let all = modifications.chain(self.descriptions.iter().map(|it| &it.text));
        let step = |sum: u64, byte| sum.wrapping_mul(31).wrapping_add(u64::from(byte));
        let sum = all.flat_map(|text| text.bytes()).fold(0_u64, step);
        format!("{} modifications {} descriptions {sum:x}", self.modifications.len(), self.descriptions.len())
    }

    fn check(&self, clips: &TrainingClips) -> Result<(), TrainError> {
        let known: Vec<bool> = clips.by_class().iter().map(|clips| !clips.is_empty()).collect();
        let missing = |class: &usize| !known.get(*class).copied().unwrap_or(false);
        let used = self.modifications.iter().flat_map(|it| [it.from, it.to]);
        match used.chain(self.descriptions.iter().map(|it| it.class)).find(missing) {
            Some(class) => {
                Err(TrainError::Data(format!("texts speak of class {class}, which has no clips").into()))
            }
            None if self.modifications.is_empty() => {
                Err(TrainError::Data("there are no modification texts".into()))
            }
            None => Ok(()),
        }
    }
}

/// Raw vectors of all clips, `VARIANTS` per clip.
struct Vectors {
    dim: usize,
    /// `[variants, clips, dim]`, flat.
    values: Vec<f32>,
    clips: usize,
}

impl Vectors {
    fn of(encoder: &ClipEncoder, sampling: &Sampling, dim: usize, seed: u64) -> Result<Self, TrainError> {
        let clips = sampling.clips.class.len();
        let mut values = Vec::with_capacity(VARIANTS * clips * dim);
        let all: Vec<(usize, usize)> =
            (0..VARIANTS).flat_map(|variant| (0..clips).map(move |clip| (variant, clip))).collect();
        for some in all.chunks(256) {
            let places = some.iter().map(|(variant, clip)| {
                let mut random = Random::new(&[seed, 0xEC, *variant as u64, *clip as u64]);
                sampling.places(*clip, &mut random)
            });
            let places: Vec<_> = places.collect();
            let features = gathered(sampling.features, &places, sampling.frames)?;
            values.extend(encoder.forward(&features)?.clips.flatten_all()?.to_vec1::<f32>()?);
        }
        Ok(Vectors { dim, values, clips })
    }

    /// One random variant of each clip: `[clips, dim]`, f32.
    fn draw(&self, clips: &[usize], random: &mut Random) -> Result<Tensor, TrainError> {
        let mut values = Vec::with_capacity(clips.len() * self.dim);
        for clip in clips {
            let row = random.below(VARIANTS) * self.clips + clip;
            values.extend_from_slice(&self.values[row * self.dim..][..self.dim]);
        }
        Ok(Tensor::from_vec(values, (clips.len(), self.dim), &Device::Cpu)?.to_device(default_device())?)
    }
}

/// The inputs of a [`Composed`] task.
struct Inputs<'a> {
    texts: &'a Texts,
    vectors: &'a Vectors,
    vocabulary: &'a Vocabulary,
    objective: Objective,
}

struct Composed<'a> {
    texts: &'a Texts,
    vectors: &'a Vectors,
    vocabulary: &'a Vocabulary,
    objective: Objective,
    by_class: Vec<Vec<usize>>,
    /// Indices of modifications of one attribute, and of several.
    modifications: [Vec<usize>; 2],
    descriptions: Vec<Vec<usize>>,
    /// Classes that have descriptions.
    described: Vec<usize>,
    /// Label similarities, `[classes, classes]`, flat.
    similar: Vec<f32>,
    longest: usize,
    encoder: TextEncoder,
    fusion: Fusion,
    /// Natural logarithms of the scales of the cosines: composed queries, plain texts.
    scales: [Tensor; 2],
}

impl<'a> Composed<'a> {
    fn new(
        store: &mut Store,
        clips: &TrainingClips,
        config: &Config,
        inputs: Inputs<'a>,
    ) -> Result<Self, TrainError> {
        let Inputs { texts, vectors, vocabulary, objective } = inputs;
        let (mut one, mut more) = (Vec::new(), Vec::new());
        for (at, it) in texts.modifications.iter().enumerate() {
            let distance = clips.classes.distance(it.from, it.to);
            if distance > 1 { more.push(at) } else { one.push(at) }
        }
        let classes = clips.classes.labels.len();
        let descriptions = grouped(texts.descriptions.iter().map(|it| it.class), classes);
        let scale = Start::Constant((1.0_f32 / 0.07).ln());
        Ok(Composed {
            texts,
            vectors,
            vocabulary,
            objective,
            by_class: clips.by_class(),
            modifications: [one, more],
            described: (0..classes).filter(|class| !descriptions[*class].is_empty()).collect(),
            descriptions,
            similar: clips.classes.similarities(),
            longest: config.max_position_embeddings,
            encoder: TextEncoder::new(store, config)?,
            fusion: Fusion::new(store, config)?,
            scales: [
                store.get("heads.composed_scale", &[1], scale)?,
                store.get("heads.text_scale", &[1], scale)?,
            ],
        })
    }

    fn encode(&self, texts: &[&str], random: &mut Random) -> Result<EncodedText, TrainError> {
        let mut padded = Vec::new();
        for text in texts {
            let noise = if random.chance(PLAIN) { Noise::NONE } else { NOISE };
            let ids = self.vocabulary.ids(text, noise, random)?;
            let room = self.longest - ids.len();
            // Later positions need training too: queries can be longer than any training text.
            let first = if random.chance(MOVED) { random.below(room + 1) } else { 0 };
            padded.push((ids, first));
        }
        self.encode_by_length(&padded)
    }

    /// Encodes texts in blocks of similar length. Every text of a block is padded to the longest.
    fn encode_by_length(&self, texts: &[(Vec<u32>, usize)]) -> Result<EncodedText, TrainError> {
        let mut order: Vec<usize> = (0..texts.len()).collect();
        order.sort_by_key(|at| texts[*at].0.len());
        let (mut meaning, mut aligned) = (Vec::new(), Vec::new());
        for some in order.chunks(BESIDE) {
            let block: Vec<(&[u32], usize)> =
                some.iter().map(|at| (&texts[*at].0[..], texts[*at].1)).collect();
            let encoded = self.encoder.forward(&PaddedTexts::new(&block, default_device())?)?;
            meaning.push(encoded.meaning);
            aligned.push(encoded.aligned);
        }
        let mut places = vec![0_u32; order.len()];
        order.iter().zip(0..).for_each(|(at, place)| places[*at] = place);
        let places = Tensor::new(places, default_device())?;
        let in_order = |parts: &[Tensor]| Tensor::cat(parts, 0)?.index_select(&places, 0);
        Ok(EncodedText { meaning: in_order(&meaning)?, aligned: in_order(&aligned)? })
    }

    fn clips_of(&self, classes: &[usize], random: &mut Random) -> Result<Tensor, TrainError> {
        let any = |class: &usize| random.choice(&self.by_class[*class]).copied().unwrap_or(0);
        let clips: Vec<usize> = classes.iter().map(any).collect();
        self.vectors.draw(&clips, random)
    }

    fn modification(&self, random: &mut Random) -> &Modification {
        let [one, more] = &self.modifications;
        let one_attribute =
            more.is_empty() || (!one.is_empty() && random.chance(self.objective.one_attribute));
        let kind = if one_attribute { one } else { more };
        &self.texts.modifications[random.choice(kind).copied().unwrap_or(0)]
    }

    fn scores(&self, queries: &Tensor, clips: &Tensor, kind: usize) -> Result<Tensor, TrainError> {
        let scale = self.scales[kind].exp()?.minimum(STEEPEST)?;
        Ok(queries.matmul(&unit(clips)?.t()?)?.broadcast_mul(&scale)?)
    }

    fn composed_loss(&self, draw: &mut Draw) -> Result<(Tensor, f32), TrainError> {
        let drawn: Vec<&Modification> =
            (0..draw.examples).map(|_| self.modification(&mut draw.random)).collect();
        let (from, to): (Vec<usize>, Vec<usize>) = drawn.iter().map(|it| (it.from, it.to)).unzip();
        let queries = self.clips_of(&from, &mut draw.random)?;
        let gallery = self.clips_of(&to, &mut draw.random)?;
        let texts: Vec<&str> = drawn.iter().map(|it| &it.text[..]).collect();
        let texts = self.encode(&texts, &mut draw.random)?;
        let scores = self.scores(&self.fusion.forward(&queries, &texts)?, &gallery, 0)?;
        let best = scores.argmax(1)?.to_vec1::<u32>()?;
        let right = best.iter().zip(&to).filter(|(best, class)| to[**best as usize] == **class).count();

        let pairs = || to.iter().flat_map(|a| to.iter().map(move |b| (*a, *b)));
        let square = (to.len(), to.len());
        let negatives = pairs().map(|(a, b)| if a == b { 0_f32 } else { 1.0 }).collect();
        let negatives = Tensor::from_vec(negatives, square, default_device())?;
        let hardness = match self.objective.by_label {
            true => {
                let classes = self.by_class.len();
                let similar = pairs().map(|(a, b)| self.similar[a * classes + b]).collect();
                Some(Tensor::from_vec(similar, square, default_device())?)
            }
            false => None,
        };
        let hard = self.objective.hard;
        let loss = hn_nce(&scores, hardness.as_ref(), hard.masking(&negatives), hard)?;
        Ok(((loss.rows + loss.columns)?, right as f32 / to.len().max(1) as f32))
    }

    /// Aligns plain texts with clips of their class, in both directions.
    fn alignment_loss(&self, draw: &mut Draw) -> Result<Tensor, TrainError> {
        let count = draw.examples * 3 / 4;
        let any = |_| draw.random.choice(&self.described).copied().unwrap_or(0);
        let classes: Vec<usize> = (0..count.max(1)).map(any).collect();
        let text = |class: &usize| {
            let at = draw.random.choice(&self.descriptions[*class]).copied().unwrap_or(0);
            &self.texts.descriptions[at].text[..]
        };
        let texts: Vec<&str> = classes.iter().map(text).collect();
        let texts = unit(&self.encode(&texts, &mut draw.random)?.aligned)?;
        let scores = self.scores(&texts, &self.clips_of(&classes, &mut draw.random)?, 1)?;
        let mut wanted = Vec::new();
        for class in &classes {
            let same = classes.iter().filter(|other| *other == class).count() as f32;
            wanted.extend(classes.iter().map(|other| if other == class { 1.0 / same } else { 0.0 }));
        }
        let wanted = Tensor::from_vec(wanted, (classes.len(), classes.len()), default_device())?;
        Ok((soft_cross_entropy(&scores, &wanted)? + soft_cross_entropy(&scores.t()?, &wanted)?)?)
    }
}

impl Task for Composed<'_> {
    fn loss(&self, mut draw: Draw) -> Result<Loss, TrainError> {
        let (composed, right) = self.composed_loss(&mut draw)?;
        let mut parts = vec![("composed", composed.to_scalar()?)];
        let total = match self.described.is_empty() || self.objective.alignment == 0.0 {
            true => composed,
            false => {
                let alignment = self.alignment_loss(&mut draw)?;
                parts.push(("alignment", alignment.to_scalar()?));
                (composed + (alignment * self.objective.alignment)?)?
            }
        };
        parts.push(("right", right));
        Ok(Loss { total, parts })
    }
}
