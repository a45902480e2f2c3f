//! A folder with a sentence encoder to encoders, in the layout of sentence-transformers:
//!
//! ```text
//! config.json                        "model_type": "bert", "roberta", "xlm-roberta" or "camembert"
//! tokenizer.json
//! model.safetensors                  or its parts, or pytorch_model.bin
//! modules.json                       what follows the tower; without it the mean of the tokens is taken
//! 1_Pooling/config.json              pooling_mode_mean_tokens or pooling_mode_cls_token
//! 2_Dense/config.json                in_features, out_features, activation_function Tanh or Identity
//! 2_Dense/model.safetensors
//! sentence_bert_config.json          max_seq_length
//! config_sentence_transformers.json  prompts: "query", and "passage" or "document"
//! ```
//!
//! E5 and BGE models tell queries from passages by words before the text. Their folders don't say which, so it goes
//! by their names where no prompts are given.

use std::collections::BTreeMap;
use std::path::{Component, Path};
use std::sync::Arc;

use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::identity::Identity;
use super::{LoadError, Loaded, ModelName, folder};
use crate::LoadOptions;
use crate::models::Family;
use crate::models::bert::{self, Bert};
use crate::models::sentence::{Dense, DenseActivation, Model, Pooling, SentenceEncoder, Step};
use crate::placement::{Placement, Precision};
use crate::text::{Specials, Tokenizer};
use crate::video::sample::Sampler;
use crate::{Abilities, Encoder, FrameSize, Space, TrainedOn};

/// The list of what follows the tower.
pub(super) const MODULES: &str = "modules.json";
/// The limit of texts.
pub(super) const LIMITS: &str = "sentence_bert_config.json";
/// The prompts.
pub(super) const PROMPTS: &str = "config_sentence_transformers.json";

#[derive(Debug, Deserialize)]
struct Config {
    #[serde(default)]
    model_type: String,
    pad_token_id: Option<usize>,
    position_embedding_type: Option<String>,
    #[serde(rename = "_name_or_path")]
    name_or_path: Option<String>,
    #[serde(flatten)]
    tower: bert::Config,
}

/// One line of modules.json.
#[derive(Debug, Deserialize)]
pub(super) struct Module {
    #[serde(rename = "type")]
    kind: String,
    /// The folder of its files.
    #[serde(default)]
    pub(super) path: String,
}

impl Module {
    /// Its class in sentence-transformers.
    pub(super) fn class(&self) -> &str {
        self.kind.rsplit('.').next().unwrap_or_default()
    }
}

#[derive(Debug, Deserialize)]
struct PoolingConfig {
    #[serde(default)]
    pooling_mode_cls_token: bool,
    #[serde(default)]
    pooling_mode_mean_tokens: bool,
    include_prompt: Option<bool>,
    /// The modes that are not supported, and what else there is.
    #[serde(flatten)]
    rest: BTreeMap<String, serde_json::Value>,
}

#[derive(Debug, Deserialize)]
struct DenseConfig {
    in_features: usize,
    out_features: usize,
    activation_function: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
struct Limits {
    max_seq_length: Option<usize>,
    do_lower_case: Option<bool>,
}

#[derive(Debug, Default, Deserialize)]
struct PromptsConfig {
    #[serde(default)]
    prompts: BTreeMap<String, String>,
}

/// What stands before queries and before passages.
#[derive(Debug, Default, PartialEq, Eq)]
struct Prompts {
    query: String,
    passage: String,
}

/// # Errors
/// [`LoadError`] for files that are missing, can't be read, don't belong together or ask for what is not supported.
pub(super) fn load(
    name: &ModelName,
    path: &Path,
    options: &LoadOptions,
    placement: &Placement,
) -> Result<Loaded, LoadError> {
    let files = Folder { path, model: name.to_string() };
    let mut config: Config = files.required("config.json")?;
    if let Some(kind) = config.position_embedding_type.as_deref().filter(|kind| *kind != "absolute") {
        return Err(LoadError::Unsupported(format!("positions of type {kind}; absolute ones are")));
    }
    if config.model_type != "bert" {
        // RoBERTa counts positions from behind the padding's.
        config.tower.position_offset = config.pad_token_id.unwrap_or(1) + 1;
    }
    let mut identity = Identity::new(placement);
    let weights = identity.weights(path, "model", name)?;
    let tower = Bert::load(&config.tower, &weights)?;
    let head = Head::load(&files, name, tower.width(), &mut identity)?;
    let limits: Limits = files.optional(LIMITS)?.unwrap_or_default();
    let longest = limits.max_seq_length.unwrap_or(tower.positions()).min(tower.positions());
    let prompts = prompts(&files, name, &config)?;
    if !head.includes_prompt && prompts != Prompts::default() {
        return Err(LoadError::Unsupported("its pooling leaves the prompt's tokens out".to_owned()));
    }
    let json = folder::read_file(path, &files.model, "tokenizer.json")?;
    identity.add(&json);
    let tokenizer = Tokenizer::from_json(&json, Specials::default(), longest)?;
    let tokenizer = tokenizer.with_prompts(&prompts.query, &prompts.passage)?;
    check_tokenizer(&tokenizer, &tower, &limits)?;
    let rest = serde_json::json!({
        "family": Family::Sentence.name(),
        "version": Family::Sentence.version(),
        "config": config.tower,
        "position_offset": config.tower.position_offset,
        "pooling": head.pooling,
        "steps": head.said,
        "longest": longest,
        "prompts": [prompts.query, prompts.passage],
    });
    let (id, readable) = identity.id_and_name(name, &rest);
    let space = Space { precision: identity.precision(), ..space(name, (id, readable), head.dim, longest) };
    let model = Arc::new(Model { tower, pooling: head.pooling, steps: head.steps, longest });
    let encoder = || SentenceEncoder::new(Arc::clone(&model), space.clone());
    let encoders = (0..options.replicas.max(1)).map(|_| Box::new(encoder()) as Box<dyn Encoder>).collect();
    Ok(Loaded::new(space, Some(Arc::new(tokenizer)), encoders))
}

fn space(name: &ModelName, (id, readable): (String, String), dim: usize, longest: usize) -> Space {
    Space {
        name: readable,
        id,
        model: name.to_string(),
        family: Family::Sentence.name().to_owned(),
        dim,
        // Said of every space; nothing is decoded for one that takes no frames.
        sampler: Sampler::Stride { frames: 1 },
        scaling: FrameSize::Exact { width: 1, height: 1 }.into(),
        max_text_tokens: longest,
        temporal: false,
        frame_stage: None,
        can: Abilities { text: true, frames: false, composed: false },
        composed_frames: None,
        trained_on: TrainedOn::Unstated,
        precision: Precision::F32,
    }
}

/// A tokenizer of another model would give vectors, but wrong ones.
fn check_tokenizer(tokenizer: &Tokenizer, tower: &Bert, limits: &Limits) -> Result<(), LoadError> {
    let (ids, rows) = (tokenizer.id_bound(), tower.vocabulary());
    if ids > rows {
        let why = format!("tokenizer.json gives {ids} ids, the model has {rows} tokens");
        return Err(LoadError::Unsupported(why));
    }
    let ids = |text| tokenizer.ids(text).map_err(|error| LoadError::Unsupported(error.to_string()));
    if limits.do_lower_case == Some(true) && ids("Turn")? != ids("turn")? {
        let why = format!("{LIMITS} asks for lower case, which tokenizer.json does not make");
        return Err(LoadError::Unsupported(why));
    }
    Ok(())
}

/// What follows the tower.
struct Head {
    pooling: Pooling,
    includes_prompt: bool,
    steps: Vec<Step>,
    /// The steps in words that make another space where they differ.
    said: Vec<String>,
    dim: usize,
}

impl Head {
    fn load(
        files: &Folder<'_>,
        name: &ModelName,
        width: usize,
        identity: &mut Identity,
    ) -> Result<Head, LoadError> {
        let (steps, said) = (Vec::new(), Vec::new());
        let mut head = Head { pooling: Pooling::Mean, includes_prompt: true, steps, said, dim: width };
        let modules: Vec<Module> = files.optional(MODULES)?.unwrap_or_default();
        for (number, module) in modules.iter().enumerate() {
            let path = inside(files.path, &module.path)?;
            match (number, module.class()) {
                (0, "Transformer") if module.path.is_empty() => {}
                (1, "Pooling") => {
                    let config: PoolingConfig = files.required(&format!("{}/config.json", module.path))?;
                    head.pooling = pooling(&config)?;
                    head.includes_prompt = config.include_prompt.unwrap_or(true);
                }
                (2.., "Dense") => {
                    let config: DenseConfig = files.required(&format!("{}/config.json", module.path))?;
                    let weights = identity.weights(&path, "model", name)?;
                    let activation = activation(config.activation_function.as_deref())?;
                    let sizes = (head.dim, config.out_features);
                    if config.in_features != head.dim {
                        let (takes, gets) = (config.in_features, head.dim);
                        let why = format!("{} takes {takes} values and gets {gets}", module.path);
                        return Err(LoadError::Unsupported(why));
                    }
                    head.steps.push(Step::Dense(Dense::load(&weights, sizes, activation)?));
                    head.said.push(format!("dense {sizes:?} {activation:?}"));
                    head.dim = config.out_features;
                }
                (2.., "Normalize") => {
                    head.steps.push(Step::Normalize);
                    head.said.push("normalize".to_owned());
                }
                (_, class) => {
                    let why = format!(
                        "{MODULES} has {class} in place {number}; Transformer, Pooling, then Dense and Normalize \
                         are supported"
                    );
                    return Err(LoadError::Unsupported(why));
                }
            }
        }
        Ok(head)
    }
}

fn pooling(config: &PoolingConfig) -> Result<Pooling, LoadError> {
    let on = |(name, value): (&String, &serde_json::Value)| {
        (name.starts_with("pooling_mode_") && value == true).then(|| name.clone())
    };
    let other: Vec<String> = config.rest.iter().filter_map(on).collect();
    match (config.pooling_mode_mean_tokens, config.pooling_mode_cls_token) {
        (true, false) if other.is_empty() => Ok(Pooling::Mean),
        (false, true) if other.is_empty() => Ok(Pooling::Cls),
        _ => Err(LoadError::Unsupported(format!(
            "pooling by {}; either pooling_mode_mean_tokens or pooling_mode_cls_token alone is supported",
            if other.is_empty() { "both or neither of its modes".to_owned() } else { other.join(", ") }
        ))),
    }
}

/// As sentence-transformers has it, Tanh unless said otherwise.
fn activation(name: Option<&str>) -> Result<DenseActivation, LoadError> {
    match name.map_or("Tanh", |name| name.rsplit('.').next().unwrap_or_default()) {
        "Tanh" => Ok(DenseActivation::Tanh),
        "Identity" => Ok(DenseActivation::Identity),
        other => {
            Err(LoadError::Unsupported(format!("dense layers with {other}; with Tanh or Identity they are")))
        }
    }
}

/// Given prompts, else those that the model's kind was trained with.
fn prompts(files: &Folder<'_>, name: &ModelName, config: &Config) -> Result<Prompts, LoadError> {
    let given: PromptsConfig = files.optional(PROMPTS)?.unwrap_or_default();
    let find = |names: &[&str]| names.iter().find_map(|name| given.prompts.get(*name)).cloned();
    let query = find(&["query"]).unwrap_or_default();
    let passage = find(&["passage", "document", "corpus"]).unwrap_or_default();
    let given = Prompts { query, passage };
    // Files written by newer versions name empty prompts for models that were never asked about them.
    if given != Prompts::default() {
        return Ok(given);
    }
    let from = config.name_or_path.as_deref().unwrap_or_default();
    Ok(known_prompts(&name.short()).or_else(|| known_prompts(from)).unwrap_or_default())
}

/// The prompts in the model cards of E5 (arXiv 2212.03533) and BGE (arXiv 2309.07597), by words in a model's name.
fn known_prompts(name: &str) -> Option<Prompts> {
    let name = name.to_lowercase();
    let words: Vec<&str> = name.split(|letter: char| !letter.is_ascii_alphanumeric()).collect();
    let has = |word: &str| words.contains(&word);
    let prompts =
        |query: &str, passage: &str| Some(Prompts { query: query.to_owned(), passage: passage.to_owned() });
    match () {
        // Instructions that a user writes, and a model that takes none.
        () if has("instruct") || (has("bge") && has("m3")) => None,
        () if has("e5") => prompts("query: ", "passage: "),
        () if has("bge") && has("zh") => prompts("为这个句子生成表示以用于检索相关文章：", ""),
        () if has("bge") => prompts("Represent this sentence for searching relevant passages: ", ""),
        () => None,
    }
}

/// A folder that a file names; one that leaves the model's own is refused.
pub(super) fn inside(path: &Path, name: &str) -> Result<std::path::PathBuf, LoadError> {
    match Path::new(name).components().all(|part| matches!(part, Component::Normal(_))) {
        true => Ok(path.join(name)),
        false => {
            Err(LoadError::BadFile { path: path.join(MODULES), why: format!("it names the folder {name:?}") })
        }
    }
}

/// Where the files are, and the model's name in messages.
struct Folder<'a> {
    path: &'a Path,
    model: String,
}

impl Folder<'_> {
    fn required<T: DeserializeOwned>(&self, name: &str) -> Result<T, LoadError> {
        let bytes = folder::read_file(self.path, &self.model, name)?;
        serde_json::from_slice(&bytes)
            .map_err(|error| LoadError::BadFile { path: self.path.join(name), why: error.to_string() })
    }

    fn optional<T: DeserializeOwned>(&self, name: &str) -> Result<Option<T>, LoadError> {
        if self.path.join(name).exists() { self.required(name).map(Some) } else { Ok(None) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(name: &str, expected: Option<(&str, &str)>) {
        let got = known_prompts(name);
        assert_eq!(got.as_ref().map(|it| (&it.query[..], &it.passage[..])), expected, "{name}");
    }

    #[test]
    fn families_with_prompts_are_known_by_their_names() {
        let e5 = Some(("query: ", "passage: "));
        check("e5-small-v2", e5);
        check("intfloat/multilingual-E5-base", e5);
        check("bge-small-en-v1.5", Some(("Represent this sentence for searching relevant passages: ", "")));
        check("BAAI/bge-large-zh", Some(("为这个句子生成表示以用于检索相关文章：", "")));
        check("bge-m3", None);
        check("multilingual-e5-large-instruct", None);
        check("all-minilm-l6-v2", None);
        check("size5-model", None);
    }
}
