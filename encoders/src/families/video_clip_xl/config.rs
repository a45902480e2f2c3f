//! VideoCLIP-XL (arXiv 2410.00741): ViCLIP's vision tower (arXiv 2307.06942), which reads all frames of a clip as one
//! sequence, and Long-CLIP's text tower with 248 positions.
//!
//! Compared with the released modules (docs/encoders.md).

use crate::LoadError;
use crate::blocks::openai_names;
use crate::blocks::vision_transformer;
use crate::families::clip::config as clip;
use crate::loading::Weights;

/// Name of the temporal embedding in the checkpoint.
const TIMES: &str = "temporal_positional_embedding";

/// The vision tower of `clip` for clips of as many frames as the temporal embedding of `weights` has rows. The weights
/// must have passed [`renamed`].
///
/// # Errors
/// [`LoadError`] for missing tensors or wrong shapes.
pub(crate) fn vision(
    clip: &clip::Config,
    weights: &Weights,
) -> Result<vision_transformer::Config, LoadError> {
    let [frames, _] = weights.dims::<2>(vision_transformer::TIMES)?;
    let tower = vision_transformer::Config { joint_frames: Some(frames), ..clip.vision()? };
    tower.check().map(|()| tower)
}

/// Renames the released checkpoint's tensors to the names of Hugging Face's CLIP:
///
/// | VideoCLIP-XL | here |
/// |---|---|
/// | `vision_model.vision_encoder.*` | as OpenAI's names ([`openai`]) |
/// | `vision_model.vision_encoder.conv1`, with an axis of length 1 for time | without |
/// | `vision_model.vision_encoder.temporal_positional_embedding`, with an axis of length 1 | `vision_model.embeddings.temporal_embedding`, without |
/// | `text_model.*` | as Long-CLIP's names |
///
/// # Errors
/// [`LoadError::WrongShape`] for tensors that do not fit together, [`LoadError::Unsupported`] for patches that span
/// several frames.
pub(crate) fn renamed(weights: Weights) -> Result<Weights, LoadError> {
    let weights = openai_names::text(openai_names::vision(openai_names::long(weights)?)?)?;
    weights.changed(|name, tensor| match (name, tensor.dims()) {
        (vision_transformer::PATCHES_WEIGHT, &[_, _, 1, _, _]) => {
            Ok(vec![(name.to_owned(), tensor.squeeze(2)?)])
        }
        (vision_transformer::PATCHES_WEIGHT, &[_, _, depth, _, _]) => {
            Err(LoadError::Unsupported(format!("patches of {depth} frames in depth").into()))
        }
        _ if name.ends_with(TIMES) && tensor.rank() == 3 => {
            Ok(vec![(vision_transformer::TIMES.to_owned(), tensor.flatten_to(1)?)])
        }
        _ => Ok(vec![(name.to_owned(), tensor)]),
    })
}
