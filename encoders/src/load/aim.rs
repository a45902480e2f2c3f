//! A folder with an AIM model to encoders.
//!
//! The layout is our own, for the weights that are published come as bare checkpoints:
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
//! Without `combiner` and `text/` the model takes clips alone. A checkpoint's names may stand under any prefix, so the
//! file of a whole TF-CoVR model can be linked to under several of these names. The text's projection into the
//! video's space is `text_proj`, in either file. What config.json can say beside its type:
//!
//! ```text
//! "video": {"num_attention_heads": 12, "num_frames": 12, "adapter_scale": 0.5, "hidden_act": "quick_gelu",
//!           "layer_norm_eps": 1e-5, "adapters": true}
//! "text":  {"max_tokens": 32, "normalise": true}
//! ```
//!
//! Sizes, layers and frames are read off the weights (`num_frames` only where they are CLIP's own, with `"adapters":
//! false`). Frames are squashed to the model's square, bicubic, and normalised as CLIP's.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::identity::Identity;
use super::{LoadError, Loaded, ModelName, folder};
use crate::LoadOptions;
use crate::models::Family;
use crate::models::aim::{self, Aim};
use crate::models::combiner::Combiner;
use crate::models::covr::{Composition, CovrEncoder, Model};
use crate::models::openai;
use crate::models::text_tower::{self, TextTower};
use crate::placement::Placement;
use crate::preprocess::{Middle, Preprocessing, Resampling};
use crate::text::Tokenizer;
use crate::video::sample::Sampler;
use crate::{Abilities, Encoder, FrameSize, Space, TrainedOn};

const TEXT: &str = "text";
const COMBINER: &str = "combiner";

#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Config {
    model_type: String,
    #[serde(default)]
    video: aim::Config,
    #[serde(default)]
    text: TextConfig,
}

#[derive(Debug, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
struct TextConfig {
    /// `None`: as the paper's code cuts texts for this kind of tower.
    max_tokens: Option<usize>,
    /// Whether texts go through TF-CoVR's normaliser.
    normalise: bool,
}

impl Default for TextConfig {
    fn default() -> Self {
        TextConfig { max_tokens: None, normalise: true }
    }
}

/// # Errors
/// [`LoadError`] for files that are missing, can't be read or don't belong together.
pub(super) fn load(
    name: &ModelName,
    path: &Path,
    options: &LoadOptions,
    placement: &Placement,
) -> Result<Loaded, LoadError> {
    let config: Config = parse(&path.join("config.json"), &name.to_string())?;
    let mut identity = Identity::new(placement);
    let weights = identity.weights(path, "model", name)?;
    let aim = Aim::load(&config.video, &openai::vision(weights)?)?;
    let preprocessing = preprocessing(aim.sizes().image());
    let (composition, tokenizer) = match composition(name, path, &config, &aim, &mut identity)? {
        Some((composition, tokenizer)) => (Some(composition), Some(Arc::new(tokenizer))),
        None => (None, None),
    };
    let model = Model { aim, composition };
    let space = space(name, &config, &model, tokenizer.as_deref(), &preprocessing, &identity);
    let model = Arc::new(model);
    let encoder = || CovrEncoder::new(Arc::clone(&model), space.clone(), preprocessing.clone());
    let encoders = (0..options.replicas.max(1)).map(|_| Box::new(encoder()) as Box<dyn Encoder>).collect();
    Ok(Loaded::new(space, tokenizer, encoders))
}

/// The text tower, the Combiner and the tokenizer, if the folder has them; one without the others is an error.
fn composition(
    name: &ModelName,
    path: &Path,
    config: &Config,
    aim: &Aim,
    identity: &mut Identity,
) -> Result<Option<(Composition, Tokenizer)>, LoadError> {
    let text = path.join(TEXT);
    let (has_text, has_combiner) = (text.is_dir(), !folder::candidates(path, COMBINER).is_empty());
    if !has_text && !has_combiner {
        return Ok(None);
    }
    if !has_text {
        let file = format!("{TEXT}/ beside its {COMBINER}");
        return Err(LoadError::MissingFile { model: name.to_string(), file });
    }
    let combiner = identity.weights(path, COMBINER, name)?;
    let words = identity.weights(&text, "model", name)?;
    let kind: text_tower::Config = parse(&text.join("config.json"), &name.to_string())?;
    identity.add(&serde_json::to_vec(&kind).map_err(|error| unusable(&text.join("config.json"), &error))?);
    let dim = aim.sizes().width;
    let tower = TextTower::load(&kind, dim, &openai::text(words)?, &combiner)?;
    let longest = config.text.max_tokens.unwrap_or(tower.longest()).min(tower.positions());
    let json = read(&text.join("tokenizer.json"), &name.to_string())?;
    identity.add(&json);
    let tokenizer = Tokenizer::from_json(&json, tower.specials(), longest)?;
    check_tokenizer(&tokenizer, &tower)?;
    let tokenizer = if config.text.normalise { tokenizer.normalising() } else { tokenizer };
    let combiner = Combiner::load(&combiner)?;
    Ok(Some((Composition::new(tower, combiner, (dim, longest))?, tokenizer)))
}

/// A tokenizer of another model would give vectors, but wrong ones.
fn check_tokenizer(tokenizer: &Tokenizer, tower: &TextTower) -> Result<(), LoadError> {
    let (ids, rows) = (tokenizer.id_bound(), tower.vocabulary());
    if ids > rows {
        let why = format!("text/tokenizer.json gives {ids} ids, the model has {rows} tokens");
        return Err(LoadError::Unsupported(why));
    }
    let ids = tokenizer.ids("a").map_err(|error| LoadError::Unsupported(error.to_string()))?;
    if !tower.ends(&ids) {
        let last = ids.last().copied().unwrap_or_default();
        let why = format!("text/tokenizer.json ends texts with id {last}, which text/config.json does not");
        return Err(LoadError::Unsupported(why));
    }
    Ok(())
}

/// As AIM's own: the aspect ratio is not kept, nothing is cut off.
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
    model: &Model,
    tokenizer: Option<&Tokenizer>,
    preprocessing: &Preprocessing,
    identity: &Identity,
) -> Space {
    let family = Family::Aim;
    let sampler = Sampler::Middles { frames: model.aim.sizes().frames };
    let rest = serde_json::json!({
        "family": family.name(),
        "version": family.version(),
        "config": config,
        "preprocessing": preprocessing,
        "sampler": sampler,
        "pooling": "mean over the frames' class tokens",
    });
    let (id, readable) = identity.id_and_name(name, &rest);
    Space {
        name: readable,
        id,
        model: name.to_string(),
        family: family.name().to_owned(),
        dim: model.aim.sizes().width,
        sampler,
        scaling: preprocessing.scaling(),
        max_text_tokens: tokenizer.map_or(0, Tokenizer::max_tokens),
        temporal: config.video.adapters,
        frame_stage: None,
        can: Abilities { text: false, frames: true, composed: model.composition.is_some() },
        composed_frames: None,
        trained_on: TrainedOn::Unstated,
        precision: identity.precision(),
    }
}

fn read(path: &Path, model: &str) -> Result<Vec<u8>, LoadError> {
    let (folder, name) = (path.parent().unwrap_or(path), path.file_name().unwrap_or_default());
    folder::read_file(folder, model, &name.to_string_lossy())
}

fn parse<T: for<'a> Deserialize<'a>>(path: &Path, model: &str) -> Result<T, LoadError> {
    serde_json::from_slice(&read(path, model)?).map_err(|error| unusable(path, &error))
}

fn unusable(path: &Path, error: &serde_json::Error) -> LoadError {
    LoadError::BadFile { path: PathBuf::from(path), why: error.to_string() }
}
