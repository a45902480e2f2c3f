//! A loaded model that turns inputs into vectors.

use std::sync::Arc;

use super::error::LoadError;
use crate::batch::Limits;
use crate::text::Tokenizer;
use crate::{Encoder, Space};

/// A loaded model, ready to start in a pool.
pub struct Embedder {
    /// The embedding space of its vectors.
    pub space: Space,
    /// The tokenizer; `None` if the model takes no text.
    pub tokenizer: Option<Arc<Tokenizer>>,
    /// One encoder per replica and device, all of this space.
    pub encoders: Vec<Box<dyn Encoder>>,
    /// The encoders' devices, as [`crate::DeviceChoice`] names them.
    pub devices: Vec<String>,
    /// The fastest batch size, measured; `None` on the CPU, where larger batches are hardly faster.
    pub limits: Option<Limits>,
}

impl Embedder {
    /// An embedder without devices and limits; the registry adds them.
    pub(crate) fn new(
        space: Space,
        tokenizer: Option<Arc<Tokenizer>>,
        encoders: Vec<Box<dyn Encoder>>,
    ) -> Embedder {
        Embedder { space, tokenizer, encoders, devices: Vec::new(), limits: None }
    }

    /// Adds the encoders of `other`, the same model on another device.
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
        // Any encoder may get any batch, so the smaller limits apply.
        let smaller = |(one, other): (Limits, Limits)| Limits {
            inputs: one.inputs.min(other.inputs),
            cost: one.cost.min(other.cost),
        };
        self.limits = self.limits.zip(other.limits).map(smaller).or(self.limits).or(other.limits);
        Ok(self)
    }
}
