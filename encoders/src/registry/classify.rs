//! Finds the family that reads a model.

use super::list::FAMILIES;
use crate::families::family::{Family, Verdict};
use crate::loading::{CONFIG, LoadError, ModelFiles};

/// The family that reads the model.
///
/// # Errors
/// [`LoadError::Unsupported`] if a family refuses the model; [`LoadError::Architecture`] or [`LoadError::MissingFile`]
/// if no family knows it.
pub(super) fn classify(model: &ModelFiles) -> Result<&'static dyn Family, LoadError> {
    // An unknown config.json may belong to another program, beside a file that identifies a family.
    for model in [model, &model.without_config()] {
        if let Some(family) = first(model)? {
            return Ok(family);
        }
    }
    Err(match model.model_type() {
        Some(found) => LoadError::Architecture { found: found.to_owned(), known: model_types() },
        None => model.missing(CONFIG.to_owned()),
    })
}

/// Files other than config.json that identify a family, each once.
pub(super) fn marks() -> Vec<&'static str> {
    let mut marks: Vec<&'static str> = FAMILIES.iter().filter_map(|family| family.mark()).collect();
    marks.dedup();
    marks
}

fn first(model: &ModelFiles) -> Result<Option<&'static dyn Family>, LoadError> {
    for family in FAMILIES {
        match family.reads(model) {
            Verdict::No => {}
            Verdict::Yes => return Ok(Some(*family)),
            Verdict::Refused(why) => return Err(LoadError::Unsupported(why.into())),
        }
    }
    Ok(None)
}

/// All supported values of `model_type`, as an English list.
fn model_types() -> String {
    let all: Vec<&str> = FAMILIES.iter().flat_map(|family| family.model_types()).copied().collect();
    match all.split_last() {
        Some((last, others)) => format!("{} and {last}", others.join(", ")),
        None => String::new(),
    }
}
