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

    /// Whether the layers of these tensors may run the processor's kernels, which are faster and keep no gradients.
    fn are_for_inference(&self) -> bool {
        false
    }
}

/// The tensors of a model that only answers.
pub struct ForInference<'a>(pub &'a mut dyn Parameters);

impl Parameters for ForInference<'_> {
    fn get(&mut self, name: &str, shape: &[usize], start: Start) -> Result<Tensor, LoadError> {
        self.0.get(name, shape, start)
    }

    fn are_for_inference(&self) -> bool {
        true
    }
}

/// Fixed tensors from a file.
pub(crate) struct Learnt<'a> {
    pub(crate) weights: &'a Weights,
}

impl Parameters for Learnt<'_> {
    fn get(&mut self, name: &str, shape: &[usize], _start: Start) -> Result<Tensor, LoadError> {
        self.weights.get(name, shape)
    }

    fn are_for_inference(&self) -> bool {
        self.weights.placement().processor().is_some()
    }
}
