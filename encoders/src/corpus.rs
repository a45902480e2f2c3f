//! Raw vectors without a pool, for commands, evaluation and research.

use crate::text::{MAX_WINDOWS, Overflow, TextError, Window};
use crate::{Embedder, EncodeError, Input};

/// Inputs per batch, unless the device's limits set another number.
const INPUTS_AT_ONCE: usize = 16;
/// Why encoding without a pool failed.
#[derive(Debug, thiserror::Error)]
pub enum CorpusError {
    /// The model refused an input or failed.
    #[error("{space} did not encode the inputs")]
    Encode {
        /// Readable name of the model's space.
        space: String,
        /// The encoder's reason.
        source: EncodeError,
    },
    /// The encoder returned a wrong number of vectors; a fault of the program.
    #[error("{space} gave {vectors} vectors for {inputs} inputs")]
    Count {
        /// Readable name of the model's space.
        space: String,
        /// Inputs of all batches.
        inputs: usize,
        /// Returned vectors.
        vectors: usize,
    },
    /// The model has no text tower.
    #[error("{space} takes no text; choose a model that does")]
    NoText {
        /// Readable name of the model's space.
        space: String,
    },
    /// The tokenizer refused a text.
    #[error(transparent)]
    Text(#[from] TextError),
    /// A text's vector is zero or not finite.
    #[error("the vector of a text is zero or not finite; check the model's weights")]
    NoDirection,
}

/// Raw vectors of any inputs, in order, by the model's first encoder.
///
/// # Errors
/// [`CorpusError::Encode`], [`CorpusError::Count`].
pub fn inputs(model: &mut Embedder, inputs: &[Input]) -> Result<Vec<Vec<f32>>, CorpusError> {
    let space = &model.space.name;
    let at_once = model.limits.map_or(INPUTS_AT_ONCE, |limits| limits.inputs.max(1));
    let mut vectors = Vec::with_capacity(inputs.len());
    // A model without an encoder returns no vectors, which the count below reports.
    for encoder in model.encoders.iter_mut().take(1) {
        for batch in inputs.chunks(at_once) {
            let encoded = encoder.encode(batch);
            vectors.extend(encoded.map_err(|source| CorpusError::Encode { space: space.clone(), source })?);
        }
    }
    match vectors.len() == inputs.len() {
        true => Ok(vectors),
        false => {
            let (inputs, vectors) = (inputs.len(), vectors.len());
            Err(CorpusError::Count { space: space.clone(), inputs, vectors })
        }
    }
}

/// The raw vector of a plain text. For a text over the model's limit, the mean of its windows' unit vectors.
///
/// `POST /v1/embeddings` returns this vector, normalised. A search compares every window instead.
///
/// # Errors
/// [`CorpusError::NoText`], [`CorpusError::Text`], [`CorpusError::Encode`], [`CorpusError::NoDirection`].
pub fn text(model: &mut Embedder, text: &str) -> Result<Vec<f32>, CorpusError> {
    let tokenizer = model.tokenizer.clone().ok_or_else(|| no_text(model))?;
    let windows = tokenizer.windows(text, Overflow::Window, MAX_WINDOWS)?.windows;
    mean_direction(&inputs(model, &texts_of(windows))?).ok_or(CorpusError::NoDirection)
}

/// One raw vector for the windows of one text: a single window's vector unchanged, else the mean of the unit vectors.
/// `None` if a vector is zero or not finite.
pub fn mean_direction(raw: &[Vec<f32>]) -> Option<Vec<f32>> {
    let units = raw.iter().map(|raw| unit(raw)).collect::<Option<Vec<_>>>()?;
    if let [only] = raw {
        return Some(only.clone());
    }
    let mut sum = vec![0.0; units.first()?.len()];
    for unit in &units {
        sum.iter_mut().zip(unit).for_each(|(sum, value)| *sum += value);
    }
    let count = units.len() as f32;
    sum.iter_mut().for_each(|value| *value /= count);
    Some(sum)
}

fn texts_of(windows: Vec<Window>) -> Vec<Input> {
    windows.into_iter().map(|window| Input::Text(window.tokens)).collect()
}

fn no_text(model: &Embedder) -> CorpusError {
    CorpusError::NoText { space: model.space.name.clone() }
}

/// `raw` normalised; `None` if it is zero or not finite.
fn unit(raw: &[f32]) -> Option<Vec<f32>> {
    let norm = raw.iter().map(|value| f64::from(*value).powi(2)).sum::<f64>().sqrt();
    let has_direction = norm.is_finite() && norm > 0.0;
    has_direction.then(|| raw.iter().map(|value| (f64::from(*value) / norm) as f32).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(raw: &[&[f32]], expected: Option<&[f32]>) {
        let raw: Vec<Vec<f32>> = raw.iter().map(|it| it.to_vec()).collect();
        assert_eq!(mean_direction(&raw).as_deref(), expected);
    }

    #[test]
    fn a_mean_direction_weighs_windows_alike() {
        check(&[&[3.0, 4.0]], Some(&[3.0, 4.0]));
        check(&[&[5.0, 0.0], &[0.0, 1.0]], Some(&[0.5, 0.5]));
        check(&[&[5.0, 0.0], &[0.0, 0.0]], None);
        check(&[&[f32::NAN, 0.0]], None);
        check(&[], None);
    }
}
