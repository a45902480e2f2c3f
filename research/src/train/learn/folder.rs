//! The files between the stages, and the folder of the finished model.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use candle_core::{DType, Device, Tensor};
use serde_json::json;

use super::TrainError;
use super::store::Store;
use super::vocabulary::Vocabulary;
use reprise_encoders::families::sports::Config;
use reprise_encoders::preprocess::Preprocessing;

/// A stage that leaves tensors for a later one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    Frames,
    Clips,
    ShuffledClips,
}

impl Stage {
    fn path(self, folder: &Path) -> PathBuf {
        folder.join(match self {
            Stage::Frames => "frames.safetensors",
            Stage::Clips => "stage1.safetensors",
            Stage::ShuffledClips => "stage1_shuffled.safetensors",
        })
    }

    pub(super) fn is_saved(self, folder: &Path) -> bool {
        self.path(folder).is_file()
    }

    pub(super) fn save(self, folder: &Path, tensors: &BTreeMap<String, Tensor>) -> Result<(), TrainError> {
        let path = self.path(folder);
        let tensors: HashMap<&str, Tensor> =
            tensors.iter().map(|(name, it)| (&name[..], it.clone())).collect();
        let part = path.with_extension("part");
        candle_core::safetensors::save(&tensors, &part).map_err(|error| TrainError::file(&path, error))?;
        std::fs::rename(&part, &path).map_err(|error| TrainError::file(&path, error))
    }

    /// Loads the tensors of a stage as fixed tensors.
    pub(super) fn load(self, folder: &Path, device: &Device) -> Result<Store, TrainError> {
        let mut store = Store::new(0, device);
        let path = self.path(folder);
        if !path.is_file() {
            return Err(TrainError::file(&path, "not there: train the stage before this one first"));
        }
        let tensors = candle_core::safetensors::load(&path, device);
        for (name, tensor) in tensors.map_err(|error| TrainError::file(&path, error))? {
            store.fix(&name, tensor);
        }
        Ok(store)
    }
}

/// The contents of preprocessor_config.json: resizing without cropping, values from -1 to 1.
fn preprocessor(config: &Config) -> serde_json::Value {
    let side = config.image_size;
    json!({
        "do_resize": true, "size": {"height": side, "width": side}, "resample": 3, "do_center_crop": false,
        "do_rescale": true, "rescale_factor": 1.0 / 255.0,
        "do_normalize": true, "image_mean": [0.5, 0.5, 0.5], "image_std": [0.5, 0.5, 0.5],
    })
}

/// Preprocessing of frames, equal in training and in use.
pub(super) fn preprocessing(config: &Config) -> Result<Preprocessing, TrainError> {
    Preprocessing::from_json(preprocessor(config).to_string().as_bytes()).map_err(TrainError::Data)
}

/// Writes a model's folder with f16 weights; existing files are overwritten.
pub(super) fn write(
    folder: &Path,
    config: &Config,
    vocabulary: &Vocabulary,
    tensors: &BTreeMap<String, Tensor>,
) -> Result<(), TrainError> {
    std::fs::create_dir_all(folder).map_err(|error| TrainError::file(folder, error))?;
    let half = |(name, tensor): (&String, &Tensor)| Ok((name.clone(), tensor.to_dtype(DType::F16)?));
    let half: HashMap<String, Tensor> = tensors.iter().map(half).collect::<Result<_, TrainError>>()?;
    let path = folder.join("model.safetensors");
    candle_core::safetensors::save(&half, &path).map_err(|error| TrainError::file(&path, error))?;
    let described = serde_json::to_value(config).map_err(|error| TrainError::file(folder, error))?;
    let files: [(&str, Vec<u8>); 3] = [
        ("config.json", format!("{described:#}\n").into_bytes()),
        ("preprocessor_config.json", format!("{:#}\n", preprocessor(config)).into_bytes()),
        ("tokenizer.json", vocabulary.json().to_vec()),
    ];
    for (name, bytes) in files {
        let path = folder.join(name);
        std::fs::write(&path, bytes).map_err(|error| TrainError::file(&path, error))?;
    }
    Ok(())
}
