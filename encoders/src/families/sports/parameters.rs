//! Sources of a model's tensors: a file, or a training that starts from noise.

use candle_core::Tensor;

use crate::LoadError;
use crate::loading::Weights;

/// Initial values of a trainable tensor.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Start {
    /// This value everywhere.
    Constant(f32),
    /// Normally distributed noise with this standard deviation.
    Noise(f32),
}

/// Supplies a model's tensors by name.
pub trait Parameters {
    /// The tensor `name` of this shape; `start` initialises a new one.
    ///
    /// # Errors
    /// If there is no such tensor of that shape.
    fn get(&mut self, name: &str, shape: &[usize], start: Start) -> Result<Tensor, LoadError>;
}

/// Fixed tensors from a file.
pub(crate) struct Learnt<'a> {
    pub(crate) weights: &'a Weights,
}

impl Parameters for Learnt<'_> {
    fn get(&mut self, name: &str, shape: &[usize], _start: Start) -> Result<Tensor, LoadError> {
        self.weights.get(name, shape)
    }
}
