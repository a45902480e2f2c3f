//! `builtin:sports`: the family's model in the binary, trained on rendered clips. pretrained/README.md describes its
//! training and quality.

use std::path::PathBuf;

use crate::device::Placement;
use crate::loading::{PretrainedFiles, Weights};
use crate::{Cause, LoadError};

/// The contents of model.safetensors, in f16.
pub(crate) const WEIGHTS: &[u8] = include_bytes!("pretrained/model.safetensors");

/// The model's files, in the form in which a folder is read.
pub(crate) fn files(placement: &Placement) -> Result<PretrainedFiles, LoadError> {
    let folder = PathBuf::from("builtin:sports");
    let bad = |why: Cause| LoadError::BadFile { path: folder.join("model.safetensors"), why };
    Ok(PretrainedFiles {
        config: include_bytes!("pretrained/config.json").to_vec(),
        preprocessor: include_bytes!("pretrained/preprocessor_config.json").to_vec(),
        tokenizer: include_bytes!("pretrained/tokenizer.json").to_vec(),
        weights: Weights::from_safetensors(WEIGHTS).map_err(bad)?.placed(placement),
        folder,
    })
}
