//! All parts of a sports model.

use super::config::Config;
use super::parameters::Parameters;
use super::{frames, language, temporal};
use crate::LoadError;

/// All parts of a sports model.
#[derive(Debug, Clone)]
pub(crate) struct Parts {
    pub(crate) frames: frames::FrameEncoder,
    pub(crate) clips: temporal::ClipEncoder,
    pub(crate) text: language::TextEncoder,
    pub(crate) fusion: language::Fusion,
}

impl Parts {
    /// `config` must have passed [`Config::check`].
    pub(crate) fn new(parameters: &mut dyn Parameters, config: &Config) -> Result<Self, LoadError> {
        Ok(Parts {
            frames: frames::FrameEncoder::new(parameters, config)?,
            clips: temporal::ClipEncoder::new(parameters, config)?,
            text: language::TextEncoder::new(parameters, config)?,
            fusion: language::Fusion::new(parameters, config)?,
        })
    }
}
