//! TF-CoVR's gated Combiner (arXiv 2506.05274, after CLIP4Cir): fuses a video and a text vector to a query vector.
//!
//! All operations are differentiable, for training and inference.

use candle_core::{Result, Tensor};

use crate::LoadError;
use crate::blocks::layers::divided_by_norm;
use crate::loading::Weights;

/// `x W^T + b`, with the weight in its stored and trained layout.
#[derive(Debug, Clone)]
struct Linear {
    /// (outputs, inputs).
    weight: Tensor,
    /// (outputs).
    bias: Tensor,
}

impl Linear {
    fn forward(&self, rows: &Tensor) -> Result<Tensor> {
        rows.matmul(&self.weight.t()?)?.broadcast_add(&self.bias)
    }
}

/// Dimensions of a [`Combiner`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Widths {
    /// Values of the video's, the text's and the query's vectors.
    pub dim: usize,
    /// Values of each projected vector.
    pub projection: usize,
    /// Hidden size of both heads.
    pub hidden: usize,
}

/// The fusion head. In the paper: 768, 3072 and 6144 values, 84,960,001 parameters.
#[derive(Debug, Clone)]
pub struct Combiner {
    widths: Widths,
    text: Linear,
    video: Linear,
    joint: Linear,
    output: Linear,
    gate_hidden: Linear,
    gate: Linear,
}

impl Combiner {
    /// Reads a Combiner of any size with the released code's names, under any prefix.
    ///
    /// # Errors
    /// [`LoadError::MissingTensor`] or [`LoadError::WrongShape`].
    pub(crate) fn load(weights: &Weights) -> std::result::Result<Self, LoadError> {
        let marker = "text_projection_layer.weight";
        let missing = || LoadError::MissingTensor { name: marker.to_owned() };
        let prefix = weights.names().find_map(|name| name.strip_suffix(marker)).ok_or_else(missing)?;
        let size = |name: &str| match weights.shape(&format!("{prefix}{name}.weight")) {
            Some([outputs, inputs]) => Ok((*outputs, *inputs)),
            _ => Err(LoadError::MissingTensor { name: format!("{prefix}{name}.weight") }),
        };
        let (projection, dim) = size("text_projection_layer")?;
        let (hidden, _) = size("combiner_layer")?;
        Combiner::new(Widths { dim, projection, hidden }, |name, shape| {
            weights.get(&format!("{prefix}{name}"), shape)
        })
    }

    /// Builds a Combiner of the tensors that `parameter` returns for a name and a shape: stored or trainable ones.
    ///
    /// # Errors
    /// The errors of `parameter`.
    pub fn new<Error>(
        widths: Widths,
        mut parameter: impl FnMut(&str, &[usize]) -> std::result::Result<Tensor, Error>,
    ) -> std::result::Result<Self, Error> {
        let Widths { dim, projection, hidden } = widths;
        let mut linear = |name: &str, outputs: usize, inputs: usize| -> std::result::Result<Linear, Error> {
            Ok(Linear {
                weight: parameter(&format!("{name}.weight"), &[outputs, inputs])?,
                bias: parameter(&format!("{name}.bias"), &[outputs])?,
            })
        };
        Ok(Combiner {
            widths,
            text: linear("text_projection_layer", projection, dim)?,
            video: linear("image_projection_layer", projection, dim)?,
            joint: linear("combiner_layer", hidden, 2 * projection)?,
            output: linear("output_layer", dim, hidden)?,
            gate_hidden: linear("dynamic_scalar.0", hidden, 2 * projection)?,
            gate: linear("dynamic_scalar.3", 1, hidden)?,
        })
    }

    /// Its dimensions.
    pub(crate) fn widths(&self) -> Widths {
        self.widths
    }

    /// Fuses queries to (queries, dim) of norm 1. `video`: (queries, dim), raw. `text`: (queries, dim) of norm 1.
    ///
    /// # Errors
    /// Failures of the device.
    pub fn forward(&self, video: &Tensor, text: &Tensor) -> Result<Tensor> {
        divided_by_norm(&self.mixed(video, text)?)
    }

    /// The query vectors before normalisation.
    fn mixed(&self, video: &Tensor, text: &Tensor) -> Result<Tensor> {
        let joined = Tensor::cat(&[self.text.forward(text)?.relu()?, self.video.forward(video)?.relu()?], 1)?;
        let gate = self.gate(&joined)?;
        let change = self.output.forward(&self.joint.forward(&joined)?.relu()?)?;
        // lambda t + (1 - lambda) v.
        change + video.add(&text.sub(video)?.broadcast_mul(&gate)?)?
    }

    /// Lambda, the weight of the text: (queries, 1), 0 to 1.
    fn gate(&self, joined: &Tensor) -> Result<Tensor> {
        candle_nn::ops::sigmoid(&self.gate.forward(&self.gate_hidden.forward(joined)?.relu()?)?)
    }
}

#[cfg(test)]
mod tests {
    use candle_core::{Device, Var};

    use super::*;

    const SMALL: Widths = Widths { dim: 2, projection: 2, hidden: 2 };

    /// Parameters of a worked example.
    fn values(name: &str) -> &'static [f32] {
        match name {
            "text_projection_layer.weight" => &[1.0, 0.0, 0.0, 1.0],
            "image_projection_layer.weight" => &[0.5, 0.0, 0.0, -0.5],
            "image_projection_layer.bias" => &[0.1, 0.0],
            "combiner_layer.weight" => &[1.0, 0.0, 0.0, 1.0, 0.0, -1.0, 1.0, 0.0],
            "combiner_layer.bias" => &[0.0, 0.2],
            "dynamic_scalar.0.weight" => &[0.1, 0.2, 0.3, 0.4, -0.1, 0.2, -0.3, 0.4],
            "dynamic_scalar.3.weight" => &[1.0, -1.0],
            "dynamic_scalar.3.bias" => &[0.1],
            "output_layer.weight" => &[0.2, -0.1, 0.3, 0.4],
            "output_layer.bias" => &[0.0, 0.05],
            _ => &[0.0, 0.0],
        }
    }

    fn example() -> Combiner {
        let tensor = |name: &str, shape: &[usize]| Tensor::from_slice(values(name), shape, &Device::Cpu);
        Combiner::new(SMALL, tensor).unwrap()
    }

    fn vectors() -> (Tensor, Tensor) {
        let row = |values: [f32; 2]| Tensor::new(&[values], &Device::Cpu).unwrap();
        (row([2.0, -1.0]), row([0.6, 0.8]))
    }

    #[track_caller]
    fn check(got: &Tensor, expected: &[f32]) {
        let got = got.flatten_all().unwrap().to_vec1::<f32>().unwrap();
        assert_eq!(got.len(), expected.len());
        let off = got.iter().zip(expected).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
        assert!(off < 1e-5, "{got:?} instead of {expected:?}");
    }

    #[test]
    fn the_protocols_example_comes_out() {
        let (combiner, (video, text)) = (example(), vectors());
        let joined = Tensor::cat(
            &[combiner.text.forward(&text).unwrap(), combiner.video.forward(&video).unwrap().relu().unwrap()],
            1,
        );
        check(&combiner.gate(&joined.unwrap()).unwrap(), &[0.700_567]);
        check(&combiner.mixed(&video, &text).unwrap(), &[1.189_206, 0.841_021]);
        check(&combiner.forward(&video, &text).unwrap(), &[0.816_456, 0.577_408]);
    }

    #[test]
    fn the_papers_size_has_the_papers_parameters() {
        let mut parameters = 0;
        let widths = Widths { dim: 768, projection: 3072, hidden: 6144 };
        let counted = Combiner::new(widths, |_, shape| {
            parameters += shape.iter().product::<usize>();
            Tensor::zeros(1, candle_core::DType::F32, &Device::Cpu)
        });
        assert_eq!(counted.unwrap().widths(), widths);
        assert_eq!(parameters, 84_960_001);
    }

    #[test]
    fn every_parameter_has_a_gradient() {
        let mut all = Vec::new();
        let combiner = Combiner::new(SMALL, |name, shape| -> Result<Tensor> {
            let noise = 0.3 + Tensor::rand(0_f32, 0.4, shape, &Device::Cpu)?;
            let variable = Var::from_tensor(&noise?)?;
            all.push((name.to_owned(), variable.clone()));
            Ok(variable.as_tensor().clone())
        });
        let row = |values: [f32; 2]| Tensor::new(&[values], &Device::Cpu).unwrap();
        // All values are positive, so no ReLU stops a gradient.
        let query = combiner.unwrap().forward(&row([2.0, 1.0]), &row([0.6, 0.8])).unwrap();
        let gradients = query.narrow(1, 0, 1).unwrap().sum_all().unwrap().backward().unwrap();
        assert_eq!(all.len(), 12);
        for (name, variable) in all {
            let gradient = gradients.get(&variable).unwrap_or_else(|| panic!("{name} has none"));
            let size = gradient.abs().unwrap().sum_all().unwrap().to_scalar::<f32>().unwrap();
            assert!(size > 0.0, "{name} has a gradient of 0");
        }
    }

    #[test]
    fn any_prefix_of_the_names_will_do_and_gaps_are_named() {
        let tensors = |prefix: &str, without: &str| {
            let mut all = Vec::new();
            let collected = Combiner::new(SMALL, |name, shape| {
                if name != without {
                    all.push((
                        format!("{prefix}{name}"),
                        shape.to_vec(),
                        values(name)[..shape.iter().product()].to_vec(),
                    ));
                }
                Tensor::zeros(shape, candle_core::DType::F32, &Device::Cpu)
            });
            collected.unwrap();
            Combiner::load(&Weights::from_values(all).unwrap())
        };
        let (video, text) = vectors();
        for prefix in ["", "combiner.", "module.fusion."] {
            let combiner = tensors(prefix, "").unwrap();
            check(&combiner.forward(&video, &text).unwrap(), &[0.816_456, 0.577_408]);
        }
        for name in ["text_projection_layer.weight", "combiner_layer.weight", "dynamic_scalar.3.bias"] {
            let error = tensors("", name).unwrap_err().to_string();
            assert!(error.contains(name), "{error}");
        }
    }
}
