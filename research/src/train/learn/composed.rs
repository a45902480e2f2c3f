//! Stage 2: the text transformer and the fusion, on the vectors of the frozen clip encoder, by HN-NCE
//! for composed queries and an alignment loss for plain texts.

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
use reprise_encoders::families::sports::training::{Parameters, Start};

impl Settings {
    /// Of stage 2.
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

/// A text that turns clips of one class into clips of another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Modification {
    /// Class of the query video.
    pub from: usize,
    /// Class of the target.
    pub to: usize,
    /// The modification text.
    pub text: String,
}

/// A plain text for a class.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Description {
    /// The class.
    pub class: usize,
    /// The text.
    pub text: String,
}

/// All texts of a training.
#[derive(Debug, Clone, Default)]
pub struct Texts {
    /// At least one.
    pub modifications: Vec<Modification>,
    /// May be none: then plain texts are not learnt.
    pub descriptions: Vec<Description>,
}

/// What stage 2 minimises.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Objective {
    /// Weights of hard negatives.
    pub hard: HardNegatives,
    /// Whether negatives are hard by the similarity of their labels (the paper) or of the batch's own
    /// vectors (its code).
    pub by_label: bool,
    /// Weight of the alignment of plain texts and clips.
    pub alignment: f64,
    /// How often a change of one attribute is drawn where there are longer ones too.
    pub one_attribute: f32,
}

impl Objective {
    /// What the built-in model is trained with.
    pub const USUAL: Objective = Objective {
        hard: HardNegatives { alpha: 1.0, beta: 2.0, mode: Mode::Clean },
        by_label: true,
        alignment: 0.5,
        one_attribute: 0.6,
    };
}

/// Variants of each clip's vector: boundaries differ.
const VARIANTS: usize = 4;
/// How often a word is spelt, in a text that is changed.
const SPELT: f32 = 0.08;
/// How often a word that nobody knows stands before a word, in a text that is changed: texts come in other
/// words than training's.
const STRANGE: f32 = 0.2;
/// What is done to other texts than those that are taken as they are.
const NOISE: Noise = Noise { spelt: SPELT, strange: STRANGE };
/// How often a text is taken as it is.
const PLAIN: f32 = 0.4;
/// How often a text begins at a later position.
const MOVED: f32 = 0.3;
/// Texts of one block.
const BESIDE: usize = 32;
/// Largest factor on cosines.
const STEEPEST: f64 = 100.0;

/// The examples of stage 2.
#[derive(Clone, Copy)]
pub struct ComposedData<'a> {
    /// The clips.
    pub clips: &'a TrainingClips,
    /// The features of all their frames.
    pub features: &'a Features,
    /// The texts about their classes.
    pub texts: &'a Texts,
}

/// The model's shape, the changes to its examples, and its loss.
#[derive(Clone, Copy)]
pub struct ComposedRecipe<'a> {
    /// The shape.
    pub config: &'a Config,
    /// The changes.
    pub augment: Augment,
    /// The loss.
    pub objective: Objective,
}

/// The folders of stage 2.
#[derive(Clone, Copy)]
pub struct ComposedFolders<'a> {
    /// Holds the earlier stages.
    pub stages: &'a Path,
    /// Receives the checkpoint.
    pub work: &'a Path,
    /// Receives the whole model.
    pub model: &'a Path,
}

/// Trains text transformer and fusion, and writes the whole model.
///
/// # Errors
/// [`TrainError`]; after [`TrainError::Stopped`] the same call goes on.
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
    let encoder = ClipEncoder::new(&mut frozen, &config)?;
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

/// The clip encoder's tensors.
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
    /// A few words that tell these texts from others.
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

/// Raw vectors of all clips, some variants of each.
struct Vectors {
    dim: usize,
    /// Variant after variant, clip after clip.
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

    /// (clips, dim): any variant of each.
    fn draw(&self, clips: &[usize], random: &mut Random) -> Result<Tensor, TrainError> {
        let mut values = Vec::with_capacity(clips.len() * self.dim);
        for clip in clips {
            let row = random.below(VARIANTS) * self.clips + clip;
            values.extend_from_slice(&self.values[row * self.dim..][..self.dim]);
        }
        Ok(Tensor::from_vec(values, (clips.len(), self.dim), &Device::Cpu)?.to_device(default_device())?)
    }
}

/// The inputs of the task that it draws its examples from, and its loss.
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
    /// Modifications of one attribute, and the others.
    modifications: [Vec<usize>; 2],
    descriptions: Vec<Vec<usize>>,
    /// Classes that have descriptions.
    described: Vec<usize>,
    /// (classes * classes).
    similar: Vec<f32>,
    longest: usize,
    encoder: TextEncoder,
    fusion: Fusion,
    /// Logs of the factors on cosines: composed queries, plain texts.
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
            // Later positions must mean something too: longer texts than those of training will come.
            let first = if random.chance(MOVED) { random.below(room + 1) } else { 0 };
            padded.push((ids, first));
        }
        self.encode_by_length(&padded)
    }

    /// Texts of like length side by side, because all of a block are padded to its longest.
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
        let loss = hn_nce(&scores, hardness.as_ref(), Some(&negatives), self.objective.hard)?;
        Ok(((loss.rows + loss.columns)?, right as f32 / to.len().max(1) as f32))
    }

    /// Plain texts and clips of their class find each other.
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
