//! Input checks that all encoders share.

use std::sync::Arc;

use crate::EncodeError;

/// # Errors
/// [`EncodeError::BadInput`] if there are no rows, or a row has another width or a value that is not finite.
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
/// [`EncodeError::BadInput`] for a text with no tokens, with more than `longest`, or with an id that is not below
/// `vocabulary`.
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
