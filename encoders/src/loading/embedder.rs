//! A loaded model that turns inputs into vectors.

use std::sync::Arc;

use super::error::LoadError;
use crate::batch::Limits;
use crate::text::Tokenizer;
use crate::{Encoder, Space};

/// A model ready to start in a pool.
pub struct Embedder {
    /// The space of its vectors.
    pub space: Space,
    /// How it reads text; `None` if it takes no text.
    pub tokenizer: Option<Arc<Tokenizer>>,
    /// One encoder a replica and device, all of this space.
    pub encoders: Vec<Box<dyn Encoder>>,
    /// The devices that they run on, as [`DeviceChoice`] names them.
    pub devices: Vec<String>,
    /// What one batch should hold, found by trying; `None` on the CPU, where more at a time is hardly faster.
    pub limits: Option<Limits>,
}

impl Embedder {
    /// Without devices and limits: the registry adds them.
    pub(crate) fn new(
        space: Space,
        tokenizer: Option<Arc<Tokenizer>>,
        encoders: Vec<Box<dyn Encoder>>,
    ) -> Embedder {
        Embedder { space, tokenizer, encoders, devices: Vec::new(), limits: None }
    }

    /// `self` with the encoders of `other`, which is the same model on another device.
    ///
    /// # Errors
    /// [`LoadError::Unsupported`] if the two have different spaces.
    pub(crate) fn joined(mut self, other: Embedder) -> Result<Embedder, LoadError> {
        if self.space.id != other.space.id {
            let why = "the model's files changed while they were read; load it again";
            return Err(LoadError::Unsupported(why.into()));
        }
        self.encoders.extend(other.encoders);
        self.devices.extend(other.devices);
        // Any of them may get any batch.
        let smaller = |(one, other): (Limits, Limits)| Limits {
            inputs: one.inputs.min(other.inputs),
            cost: one.cost.min(other.cost),
        };
        self.limits = self.limits.zip(other.limits).map(smaller).or(self.limits).or(other.limits);
        Ok(self)
    }
}
