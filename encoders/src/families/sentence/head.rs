//! The modules after a sentence encoder's tower, from modules.json.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::encoder::{Dense, DenseActivation, Pooling, Step};
use crate::Cause;
use crate::hub::Repository;
use crate::loading::folder::{STEM, WEIGHTS};
use crate::loading::{CONFIG, Identity, LoadError, ModelFiles};

/// The file that lists a model's modules.
const MODULES: &str = "modules.json";

/// One entry of modules.json.
#[derive(Debug, Deserialize)]
struct Module {
    #[serde(rename = "type")]
    kind: String,
    /// The folder of the module's files.
    #[serde(default)]
    path: String,
}

impl Module {
    /// The module's class in sentence-transformers.
    fn class(&self) -> &str {
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
    /// Unsupported pooling modes, and all other fields.
    #[serde(flatten)]
    rest: BTreeMap<String, serde_json::Value>,
}

#[derive(Debug, Deserialize)]
struct DenseConfig {
    in_features: usize,
    out_features: usize,
    activation_function: Option<String>,
}

/// Pooling and the steps after it.
pub(super) struct Head {
    pub(super) pooling: Pooling,
    pub(super) includes_prompt: bool,
    pub(super) steps: Vec<Step>,
    /// A description of the steps; part of the space's id.
    pub(super) said: Vec<String>,
    pub(super) dim: usize,
}

impl Head {
    /// # Errors
    /// [`LoadError`] for unreadable files or unsupported settings.
    pub(super) fn load(model: &ModelFiles, width: usize, identity: &mut Identity) -> Result<Head, LoadError> {
        let (steps, said) = (Vec::new(), Vec::new());
        let mut head = Head { pooling: Pooling::Mean, includes_prompt: true, steps, said, dim: width };
        let modules: Vec<Module> = optional(model, MODULES)?.unwrap_or_default();
        for (number, module) in modules.iter().enumerate() {
            let path = inside(model.folder(), &module.path)?;
            match (number, module.class()) {
                (0, "Transformer") if module.path.is_empty() => {}
                (1, "Pooling") => {
                    let config: PoolingConfig = model.json(&format!("{}/config.json", module.path))?;
                    head.pooling = pooling(&config)?;
                    head.includes_prompt = config.include_prompt.unwrap_or(true);
                }
                (2.., "Dense") => {
                    let config: DenseConfig = model.json(&format!("{}/config.json", module.path))?;
                    let weights = identity.weights(&path, STEM, model.name())?;
                    let activation = activation(config.activation_function.as_deref())?;
                    let (inputs, outputs) = (head.dim, config.out_features);
                    if config.in_features != head.dim {
                        let (takes, gets) = (config.in_features, head.dim);
                        let why = format!("{} takes {takes} values and gets {gets}", module.path);
                        return Err(LoadError::Unsupported(why.into()));
                    }
                    head.steps.push(Step::Dense(Dense::load(&weights, inputs, outputs, activation)?));
                    head.said.push(format!("dense {:?} {activation:?}", (inputs, outputs)));
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
                    return Err(LoadError::Unsupported(why.into()));
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
        _ => Err(LoadError::Unsupported(
            format!(
                "pooling by {}; either pooling_mode_mean_tokens or pooling_mode_cls_token alone is supported",
                if other.is_empty() { "both or neither of its modes".to_owned() } else { other.join(", ") }
            )
            .into(),
        )),
    }
}

/// The activation of a dense layer; Tanh by default, as in sentence-transformers.
fn activation(name: Option<&str>) -> Result<DenseActivation, LoadError> {
    match name.map_or("Tanh", |name| name.rsplit('.').next().unwrap_or_default()) {
        "Tanh" => Ok(DenseActivation::Tanh),
        "Identity" => Ok(DenseActivation::Identity),
        other => Err(LoadError::Unsupported(
            format!("dense layers with {other}; with Tanh or Identity they are").into(),
        )),
    }
}

/// A folder that modules.json names. Refuses folders outside the model's.
fn inside(path: &Path, name: &str) -> Result<PathBuf, LoadError> {
    match Path::new(name).components().all(|part| matches!(part, Component::Normal(_))) {
        true => Ok(path.join(name)),
        false => Err(LoadError::BadFile {
            path: path.join(MODULES),
            why: format!("it names the folder {name:?}").into(),
        }),
    }
}

/// The parsed contents of a JSON file; `None` if the model lacks the file.
///
/// # Errors
/// [`LoadError::BadFile`].
pub(super) fn optional<T: DeserializeOwned>(model: &ModelFiles, file: &str) -> Result<Option<T>, LoadError> {
    match model.has(file) {
        true => model.json(file).map(Some),
        false => Ok(None),
    }
}

/// Downloads the files that modules.json names.
///
/// # Errors
/// [`LoadError`] for files that can't be downloaded, and for folders outside the model's.
pub(super) fn download(hub: &Repository) -> Result<(), LoadError> {
    let Some(path) = hub.get_if_there(MODULES)? else { return Ok(()) };
    let bad = |why: Cause| LoadError::BadFile { path: path.clone(), why };
    let bytes = std::fs::read(&path).map_err(|error| bad(error.into()))?;
    let modules: Vec<Module> = serde_json::from_slice(&bytes).map_err(|error| bad(error.into()))?;
    for module in modules.iter().filter(|module| !module.path.is_empty()) {
        inside(path.parent().unwrap_or(&path), &module.path)?;
        let file = |name: &str| format!("{}/{name}", module.path);
        match module.class() {
            "Normalize" => continue,
            "Dense" => drop(hub.get(&file(WEIGHTS))?),
            _ => {}
        }
        hub.get(&file(CONFIG))?;
    }
    Ok(())
}
