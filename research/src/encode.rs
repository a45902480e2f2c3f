//! Encodes clips and texts as unit vectors.

use anyhow::Context;
use reprise_encoders::Loaded;
pub use reprise_encoders::corpus::{
    CLIPS_AT_ONCE, LONGEST_MS, LongTexts, Stretch, clips, decoded, file_of, frames, inputs, long_texts,
    picked_frames, side_by_side,
};
use reprise_index::UnitVector;

/// The unit vector of a plain text, equal to the answer of `POST /v1/embeddings`.
///
/// # Errors
/// A text that the tokenizer cannot encode, or a model that fails.
pub fn text(model: &mut Loaded, text: &str) -> anyhow::Result<UnitVector> {
    let raw = reprise_encoders::corpus::text(model, text)?;
    let (unit, _) = UnitVector::from_raw(&raw).context("the text's vector is zero or not finite")?;
    Ok(unit)
}
