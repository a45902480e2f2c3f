//! Loads a folder with an AIM model.
//!
//! The layout is our own, because the published weights are bare checkpoints:
//!
//! ```text
//! config.json               {"model_type": "aim"}
//! model.safetensors         AIM's weights, or those of CLIP's vision tower; or model.pth, model.pt, model.ckpt
//! combiner.safetensors      TF-CoVR's Combiner; or combiner.pth, combiner.pt, combiner.ckpt
//! text/config.json          {"model_type": "bert"}, "blip_2_qformer" or "clip", as Hugging Face writes them
//! text/tokenizer.json
//! text/model.safetensors    the text tower; or text/model.pth, ...
//! ```
//!
//! Without `combiner` and `text/` the model takes clips only. A checkpoint's names may have any prefix, so links under
//! several of these names can point to one file of a whole TF-CoVR model. `text_proj`, in either file, projects texts
//! into the video's space. Optional fields of config.json, for example:
//!
//! ```text
//! "video": {"num_attention_heads": 12, "num_frames": 12, "adapter_scale": 0.5, "hidden_act": "quick_gelu",
//!           "layer_norm_eps": 1e-5, "adapters": true}
//! "text":  {"max_tokens": 32, "normalise": true}
//! ```
//!
//! Sizes, layers and frames come from the weights; `num_frames` applies only to CLIP's own weights, with `"adapters":
//! false`. Frames are resized to the model's square (bicubic, without the aspect ratio) and normalised as CLIP's.

mod combiner;
mod encoder;
mod known;
mod text;
mod tower;

use std::sync::Arc;

pub use combiner::{Combiner, Widths};
use encoder::{Composition, Covr, CovrEncoder};
use serde::{Deserialize, Serialize};
use text::TextTower;
use tower::Aim;

use crate::blocks::openai_names;
use crate::device::Placement;
use crate::families::family::{Family, KnownModel, Model};
use crate::hub::Repository;
use crate::loading::{
    CONFIG, Embedder, FamilyId, Identity, LoadError, LoadOptions, ModelFiles, ModelName, SpaceName, folder,
};
use crate::preprocess::{Middle, Preprocessing, Resampling};
use crate::sample::Sampler;
use crate::text::Tokenizer;
use crate::text::clean::Cleaning;
use crate::{Abilities, Encoder, FrameSize, Space, TrainedOn};

/// AIM, with TF-CoVR's text towers and Combiner.
const ID: FamilyId = FamilyId { name: "aim", version: 1 };

/// TF-CoVR's models.
pub(crate) struct TfCovr;

impl Family for TfCovr {
    fn name(&self) -> &'static str {
        ID.name
    }

    fn version(&self) -> u32 {
        ID.version
    }

    fn known(&self) -> &'static [KnownModel] {
        known::KNOWN
    }

    fn model_types(&self) -> &'static [&'static str] {
        &["aim"]
    }

    fn download(&self, _: &Repository) -> Result<(), LoadError> {
        Err(LoadError::Unsupported("models of type aim are loaded from folders".into()))
    }

    fn load(&self, model: &ModelFiles, on: &Placement, options: &LoadOptions) -> Result<Model, LoadError> {
        let config: Config = model.config()?;
        let mut identity = Identity::new(on);
        let weights = identity.weights(model.folder(), folder::STEM, model.name())?;
        let aim = Aim::load(&config.video, &openai_names::vision(weights)?)?;
        let preprocessing = preprocessing(aim.sizes().image());
        let (composition, tokenizer) = match composition(model, &config, &aim, &mut identity)? {
            Some((composition, tokenizer)) => (Some(composition), Some(Arc::new(tokenizer))),
            None => (None, None),
        };
        let covr = Covr { aim, composition };
        let space = space(model.name(), &config, &covr, &preprocessing, &identity);
        let covr = Arc::new(covr);
        let encoder = || CovrEncoder::new(Arc::clone(&covr), space.clone(), preprocessing.clone());
        let encoders = (0..options.replicas.max(1)).map(|_| Box::new(encoder()) as Box<dyn Encoder>);
        let encoders = encoders.collect();
        Ok(Model::Embedder(Embedder::new(space, tokenizer, encoders)))
    }
}

const TEXT: &str = "text";
const COMBINER: &str = "combiner";

#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Config {
    model_type: String,
    #[serde(default)]
    video: tower::Config,
    #[serde(default)]
    text: TextConfig,
}

#[derive(Debug, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
struct TextConfig {
    /// `None`: the limit of the paper's code for this kind of tower.
    max_tokens: Option<usize>,
    /// Whether to apply TF-CoVR's normaliser to texts.
    normalise: bool,
}

impl Default for TextConfig {
    fn default() -> Self {
        TextConfig { max_tokens: None, normalise: true }
    }
}

/// The text tower, Combiner and tokenizer, if the folder has them. A part without the others is an error.
fn composition(
    model: &ModelFiles,
    config: &Config,
    aim: &Aim,
    identity: &mut Identity,
) -> Result<Option<(Composition, Tokenizer)>, LoadError> {
    let (name, path) = (model.name(), model.folder());
    let text = path.join(TEXT);
    let (has_text, has_combiner) = (text.is_dir(), !folder::candidates(path, COMBINER).is_empty());
    if !has_text && !has_combiner {
        return Ok(None);
    }
    if !has_text {
        return Err(model.missing(format!("{TEXT}/ beside its {COMBINER}")));
    }
    let combiner = identity.weights(path, COMBINER, name)?;
    let words = identity.weights(&text, folder::STEM, name)?;
    let kind_file = format!("{TEXT}/{CONFIG}");
    let kind: text::Config = in_text(model, model.json(&kind_file))?;
    let described = serde_json::to_vec(&kind);
    identity.add(&described.map_err(|error| model.bad(&kind_file, error))?);
    let dim = aim.sizes().width;
    let tower = TextTower::load(&kind, dim, &openai_names::text(words)?, &combiner)?;
    let longest = config.text.max_tokens.unwrap_or(tower.longest()).min(tower.positions());
    let json = in_text(model, model.read(&format!("{TEXT}/{}", folder::TOKENIZER)))?;
    identity.add(&json);
    let tokenizer = Tokenizer::from_json(&json, tower.specials(), longest)?.cleaned(tower.cleaning());
    if tower.cleaning() != Cleaning::None {
        identity.add(tower.cleaning().name().as_bytes());
    }
    check_tokenizer(&tokenizer, &tower)?;
    let tokenizer = if config.text.normalise { tokenizer.normalising() } else { tokenizer };
    let combiner = Combiner::load(&combiner)?;
    Ok(Some((Composition::new(tower, combiner, dim, longest)?, tokenizer)))
}

/// Refuses another model's tokenizer: it would silently give wrong vectors.
fn check_tokenizer(tokenizer: &Tokenizer, tower: &TextTower) -> Result<(), LoadError> {
    let (ids, rows) = (tokenizer.id_bound(), tower.vocabulary());
    if ids > rows {
        let why = format!("text/tokenizer.json gives {ids} ids, the model has {rows} tokens");
        return Err(LoadError::Unsupported(why.into()));
    }
    let ids = tokenizer.ids("a").map_err(|error| LoadError::Unsupported(error.into()))?;
    if !tower.ends(&ids) {
        let last = ids.last().copied().unwrap_or_default();
        let why = format!("text/tokenizer.json ends texts with id {last}, which text/config.json does not");
        return Err(LoadError::Unsupported(why.into()));
    }
    Ok(())
}

/// Frames as TF-CoVR prepares them: resized to a square, without the aspect ratio and without a crop. AIM's own code keeps
/// the ratio: short side 224, then a centre crop.
fn preprocessing(side: usize) -> Preprocessing {
    let side = side as u32;
    Preprocessing {
        size: FrameSize::Exact { width: side, height: side },
        resampling: Resampling::Bicubic,
        crop: (side, side),
        middle: Middle::Down,
        scale: 1.0 / 255.0,
        mean: [0.481_454_66, 0.457_827_5, 0.408_210_73],
        std: [0.268_629_54, 0.261_302_6, 0.275_777_1],
    }
}

fn space(
    name: &ModelName,
    config: &Config,
    model: &Covr,
    preprocessing: &Preprocessing,
    identity: &Identity,
) -> Space {
    let sampler = Sampler::Middles { frames: model.aim.sizes().frames };
    let rest = serde_json::json!({
        "family": ID.name,
        "version": ID.version,
        "config": config,
        "preprocessing": preprocessing,
        "sampler": sampler,
        "pooling": "mean over the frames' class tokens",
    });
    let SpaceName { id, readable } = identity.space(name, &rest);
    Space {
        name: readable,
        id,
        model: name.to_string(),
        family: ID.name.to_owned(),
        dim: model.aim.sizes().width,
        sampler,
        scaling: preprocessing.scaling(),
        max_text_tokens: model.composition.as_ref().map_or(0, Composition::longest),
        temporal: config.video.adapters,
        frame_stage: None,
        can: Abilities { text: false, frames: true, composed: model.composition.is_some() },
        composed_frames: None,
        trained_on: TrainedOn::Unstated,
        precision: identity.precision(),
    }
}

/// Names a missing file relative to the `text` folder.
fn in_text<T>(model: &ModelFiles, read: Result<T, LoadError>) -> Result<T, LoadError> {
    read.map_err(|error| match error {
        LoadError::MissingFile { file, .. } => {
            let prefix = format!("{TEXT}/");
            model.missing(file.strip_prefix(&prefix).unwrap_or(&file).to_owned())
        }
        other => other,
    })
}
