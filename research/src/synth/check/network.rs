//! A small network over sets: equal layers for every frame, order-independent pooling, a softmax.

use candle_core::{DType, Device, Result, Tensor, Var};
use candle_nn::{AdamW, Linear, Module, Optimizer, ParamsAdamW, loss, ops};

use crate::synth::draw::Draw;

/// Initial learning rate; it falls along a cosine to `LAST_RATE`.
const RATE: f64 = 2e-3;
const LAST_RATE: f64 = 1e-5;
const WEIGHT_DECAY: f64 = 0.0005;

/// Examples per forward pass.
const BATCH: usize = 256;

/// Examples of one probe: `frames` rows of `width` numbers each.
#[derive(Debug, Clone)]
pub(super) struct Examples {
    /// Numbers per row.
    pub width: usize,
    /// Rows per example.
    pub frames: usize,
    /// Rows of all examples, `[examples, frames, width]`, flat.
    pub rows: Vec<f32>,
    /// The class of each example, below the number of classes.
    pub classes: Vec<usize>,
}

impl Examples {
    /// The numbers of example `at`.
    fn of(&self, at: usize) -> &[f32] {
        let size = self.width * self.frames;
        &self.rows[at * size..(at + 1) * size]
    }

    /// Mean and standard deviation of each column.
    fn scaling(&self) -> Result<Scaling> {
        let rows = Tensor::from_slice(&self.rows, ((), self.width), &Device::Cpu)?;
        let mean = rows.mean_keepdim(0)?;
        let deviation = rows.broadcast_sub(&mean)?.sqr()?.mean_keepdim(0)?.sqrt()?;
        Ok(Scaling { mean, deviation: (deviation + 1e-4)? })
    }
}

/// Mean and standard deviation of each input.
#[derive(Debug, Clone)]
struct Scaling {
    mean: Tensor,
    deviation: Tensor,
}

/// Two layers per frame, mean and maximum over the frames, two layers on top.
#[derive(Debug, Clone)]
pub(super) struct SetNetwork {
    frame: [Linear; 2],
    top: [Linear; 2],
    scaling: Scaling,
}

/// The length of a training.
#[derive(Debug, Clone, Copy)]
pub(super) struct Training {
    /// Passes over the examples.
    pub epochs: usize,
    /// Examples per step.
    pub batch: usize,
    /// Size of the hidden layers.
    pub hidden: usize,
}

impl SetNetwork {
    /// Trains a classifier for `classes` classes.
    ///
    /// # Errors
    /// The rows of `examples` differ from its width and frames, or a class is not below `classes`.
    pub(super) fn learn(
        examples: &Examples,
        classes: usize,
        training: Training,
        draw: &mut Draw,
    ) -> Result<SetNetwork> {
        let hidden = training.hidden;
        let mut variables = Vec::new();
        let mut layer = |inputs, outputs, draw: &mut Draw| {
            let (weight, bias) =
                (weights(inputs, outputs, draw)?, Var::zeros(outputs, DType::F32, &Device::Cpu)?);
            let layer = Linear::new(weight.as_tensor().clone(), Some(bias.as_tensor().clone()));
            variables.extend([weight, bias]);
            Ok::<_, candle_core::Error>(layer)
        };
        let frame = [layer(examples.width, hidden, draw)?, layer(hidden, hidden, draw)?];
        let top = [layer(2 * hidden, hidden, draw)?, layer(hidden, classes, draw)?];
        let network = SetNetwork { frame, top, scaling: examples.scaling()? };
        let decay = ParamsAdamW { weight_decay: WEIGHT_DECAY, ..ParamsAdamW::default() };
        let mut optimizer = AdamW::new(variables, decay)?;
        let mut order: Vec<usize> = (0..examples.classes.len()).collect();
        let steps = (training.epochs * order.len().div_ceil(training.batch)) as f64;
        let mut step = 0.0;
        for _ in 0..training.epochs {
            draw.shuffle(&mut order);
            for batch in order.chunks(training.batch) {
                let falling = 0.5 * (1.0 + (std::f64::consts::PI * step / steps).cos());
                optimizer.set_learning_rate(RATE * falling + LAST_RATE);
                optimizer.backward_step(&network.loss(examples, batch)?)?;
                step += 1.0;
            }
        }
        Ok(network)
    }

    /// Cross-entropy of a batch.
    fn loss(&self, examples: &Examples, batch: &[usize]) -> Result<Tensor> {
        let classes: Vec<u32> = batch.iter().map(|at| examples.classes[*at] as u32).collect();
        let classes = Tensor::new(classes, &Device::Cpu)?;
        loss::cross_entropy(&self.logits(examples, batch)?, &classes)
    }

    /// Probability of each class for each example.
    ///
    /// # Errors
    /// The rows of `examples` don't fit the network.
    pub(super) fn probabilities(&self, examples: &Examples) -> Result<Vec<Vec<f32>>> {
        let all: Vec<usize> = (0..examples.classes.len()).collect();
        let mut probabilities = Vec::with_capacity(all.len());
        for batch in all.chunks(BATCH) {
            let rows = ops::softmax(&self.logits(examples, batch)?, 1)?;
            probabilities.extend(rows.to_vec2::<f32>()?);
        }
        Ok(probabilities)
    }

    /// Calibrates the probabilities: the exponent from 0 to 1 with the highest likelihood on `unseen` examples.
    /// Training examples would show too much confidence.
    ///
    /// # Errors
    /// The rows of `unseen` don't fit the network.
    pub(super) fn trust(&self, unseen: &Examples) -> Result<f32> {
        let probabilities = self.probabilities(unseen)?;
        let likelihood = |power: f32| -> f64 {
            let of = |(row, class): (&Vec<f32>, &usize)| {
                let all: f32 = row.iter().map(|it| it.powf(power)).sum();
                f64::from((row[*class].powf(power) / all).max(1e-12).ln())
            };
            probabilities.iter().zip(&unseen.classes).map(of).sum()
        };
        // An exponent above 0 must beat 0 by a margin, about one standard error of noise.
        let margin = (unseen.classes.len() as f64).sqrt() * 0.1;
        let powers = (0..=10u8).map(|it| f32::from(it) / 10.0);
        let mut best = (0.0, likelihood(0.0) + margin);
        for power in powers.skip(1) {
            let found = likelihood(power);
            if found > best.1 {
                best = (power, found);
            }
        }
        Ok(best.0)
    }

    fn logits(&self, examples: &Examples, batch: &[usize]) -> Result<Tensor> {
        let rows: Vec<f32> = batch.iter().flat_map(|at| examples.of(*at)).copied().collect();
        let rows = Tensor::from_vec(rows, ((), examples.width), &Device::Cpu)?;
        let input = rows.broadcast_sub(&self.scaling.mean)?.broadcast_div(&self.scaling.deviation)?;
        let hidden = perceptron(&self.frame, &input)?.relu()?;
        let hidden = hidden.reshape((batch.len(), examples.frames, ()))?;
        let pooled = Tensor::cat(&[hidden.mean(1)?, hidden.max(1)?], 1)?;
        perceptron(&self.top, &pooled)
    }
}

/// Two linear layers with a ReLU between them.
fn perceptron(layers: &[Linear; 2], input: &Tensor) -> Result<Tensor> {
    layers[1].forward(&layers[0].forward(input)?.relu()?)
}

/// Initial weights of a layer (He et al., arXiv 1502.01852), the same on every machine.
fn weights(inputs: usize, outputs: usize, draw: &mut Draw) -> Result<Var> {
    let bound = (6.0 / inputs as f64).sqrt();
    let weights: Vec<f32> = (0..inputs * outputs).map(|_| draw.within(-bound, bound) as f32).collect();
    Var::from_vec(weights, (outputs, inputs), &Device::Cpu)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::synth::draw::Purpose;

    /// Sets of two frames. Class 1: the first number of any frame is above 0.7.
    fn examples(number: usize, draw: &mut Draw) -> Examples {
        let mut rows = Vec::new();
        let mut classes = Vec::new();
        for _ in 0..number {
            let example: Vec<f32> = (0..4).map(|_| draw.unit() as f32).collect();
            classes.push(usize::from(example[0] > 0.7 || example[2] > 0.7));
            rows.extend(example);
        }
        Examples { width: 2, frames: 2, rows, classes }
    }

    #[test]
    fn a_rule_over_sets_is_learnt() {
        let mut draw = Draw::new(1, 0, Purpose::Probe, 0);
        let training = Training { epochs: 30, batch: 16, hidden: 16 };
        let network = SetNetwork::learn(&examples(400, &mut draw), 2, training, &mut draw).unwrap();
        let unseen = examples(200, &mut draw);
        let right = network
            .probabilities(&unseen)
            .unwrap()
            .iter()
            .zip(&unseen.classes)
            .filter(|(probabilities, class)| probabilities[**class] > 0.5)
            .count();
        assert!(right >= 185, "{right} of 200");
    }

    #[test]
    fn the_order_of_frames_makes_no_difference() {
        let mut draw = Draw::new(2, 0, Purpose::Probe, 0);
        let training = Training { epochs: 1, batch: 16, hidden: 8 };
        let network = SetNetwork::learn(&examples(64, &mut draw), 2, training, &mut draw).unwrap();
        let one = Examples { width: 2, frames: 2, rows: vec![0.1, 0.2, 0.8, 0.4], classes: vec![0] };
        let other = Examples { rows: vec![0.8, 0.4, 0.1, 0.2], ..one.clone() };
        let [one, other] = [one, other].map(|it| network.probabilities(&it).unwrap());
        assert!((one[0][0] - other[0][0]).abs() < 1e-6);
    }

    #[test]
    fn rows_that_do_not_fit_are_refused() {
        let mut draw = Draw::new(3, 0, Purpose::Probe, 0);
        let training = Training { epochs: 1, batch: 16, hidden: 8 };
        let good = examples(16, &mut draw);
        let ragged = Examples { width: 3, frames: 2, ..good.clone() };
        assert!(SetNetwork::learn(&ragged, 2, training, &mut draw).is_err());
        let strange = Examples { classes: vec![7; 16], ..good };
        assert!(SetNetwork::learn(&strange, 2, training, &mut draw).is_err());
    }
}
