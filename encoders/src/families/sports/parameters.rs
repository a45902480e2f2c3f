//! Where a model's tensors come from: a file, or an optimiser that begins with noise.

use candle_core::Tensor;

use crate::LoadError;
use crate::loading::Weights;

/// What a tensor holds before it has learnt anything.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Start {
    /// All this value.
    Constant(f32),
    /// Normal noise with this standard deviation.
    Noise(f32),
}

/// Gives each tensor of a model by its name.
pub trait Parameters {
    /// The tensor `name` of this shape; `start` says how a new one begins.
    ///
    /// # Errors
    /// When there is no such tensor of that shape.
    fn get(&mut self, name: &str, shape: &[usize], start: Start) -> Result<Tensor, LoadError>;
}

/// Learnt tensors, which do not change any more.
pub(crate) struct Learnt<'a> {
    pub(crate) weights: &'a Weights,
}

impl Parameters for Learnt<'_> {
    fn get(&mut self, name: &str, shape: &[usize], _start: Start) -> Result<Tensor, LoadError> {
        self.weights.get(name, shape)
    }
}
