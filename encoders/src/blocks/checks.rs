//! Checks of inputs that every encoder makes.

use std::sync::Arc;

use crate::EncodeError;

/// # Errors
/// [`EncodeError::BadInput`] for what the frame stage can't have made.
pub(crate) fn check_features(rows: &[Arc<[f32]>], width: usize) -> Result<(), EncodeError> {
    let whole = |row: &Arc<[f32]>| row.len() == width && row.iter().all(|value| value.is_finite());
    if rows.is_empty() || !rows.iter().all(whole) {
        let rows = rows.len();
        return Err(EncodeError::BadInput(
            format!("{rows} features, not all of {width} finite values").into(),
        ));
    }
    Ok(())
}

pub(crate) fn failed(error: candle_core::Error) -> EncodeError {
    EncodeError::Failed(error.into())
}

/// # Errors
/// [`EncodeError::BadInput`] for a text without tokens, with more than `longest`, or with one that the
/// `vocabulary` does not have.
pub(crate) fn check_ids(texts: &[&[u32]], vocabulary: usize, longest: usize) -> Result<(), EncodeError> {
    for ids in texts {
        if ids.is_empty() || ids.len() > longest {
            let tokens = ids.len();
            return Err(EncodeError::BadInput(
                format!("{tokens} tokens; the model takes 1 to {longest}").into(),
            ));
        }
        if let Some(id) = ids.iter().find(|id| **id as usize >= vocabulary) {
            return Err(EncodeError::BadInput(format!("the model has no token {id}").into()));
        }
    }
    Ok(())
}
