//! A small network over sets: the same layers for every frame, pooling that knows no order, a softmax.
//!
//! Written out by hand, because tensors live in another crate and this must stay small: two layers a frame,
//! mean and maximum over the frames, two layers on top, cross-entropy, Adam.

use crate::synth::draw::Draw;

/// Examples of one kind: `frames` rows of `width` numbers each.
#[derive(Debug, Clone)]
pub(super) struct Examples {
    /// Numbers a row.
    pub width: usize,
    /// Rows an example.
    pub frames: usize,
    /// All rows of all examples, one after the other.
    pub rows: Vec<f32>,
    /// What each example is, below the number of classes.
    pub classes: Vec<usize>,
}

impl Examples {
    fn size(&self) -> usize {
        self.width * self.frames
    }

    /// Numbers of one example.
    fn of(&self, at: usize) -> &[f32] {
        &self.rows[at * self.size()..(at + 1) * self.size()]
    }
}

/// A linear layer with its gradients and Adam's memory.
#[derive(Debug, Clone)]
struct Linear {
    inputs: usize,
    outputs: usize,
    /// `inputs` rows of `outputs` weights, then the biases.
    weights: Vec<f32>,
    gradient: Vec<f32>,
    mean: Vec<f32>,
    square: Vec<f32>,
}

impl Linear {
    fn new(inputs: usize, outputs: usize, draw: &mut Draw) -> Linear {
        let bound = (6.0 / inputs as f64).sqrt();
        let mut weights: Vec<f32> =
            (0..inputs * outputs).map(|_| draw.within(-bound, bound) as f32).collect();
        weights.extend(std::iter::repeat_n(0.0, outputs));
        let zeros = vec![0.0; weights.len()];
        Linear { inputs, outputs, gradient: zeros.clone(), mean: zeros.clone(), square: zeros, weights }
    }

    fn forward(&self, input: &[f32]) -> Vec<f32> {
        let bias = &self.weights[self.inputs * self.outputs..];
        let mut output = Vec::with_capacity(input.len() / self.inputs * self.outputs);
        for row in input.chunks_exact(self.inputs) {
            let start = output.len();
            output.extend_from_slice(bias);
            let into = &mut output[start..];
            for (value, weights) in row.iter().zip(self.weights.chunks_exact(self.outputs)) {
                if *value != 0.0 {
                    into.iter_mut().zip(weights).for_each(|(it, weight)| *it += value * weight);
                }
            }
        }
        output
    }

    /// Adds to the gradient; gives the gradient of the input.
    fn backward(&mut self, input: &[f32], of_output: &[f32]) -> Vec<f32> {
        let mut of_input = Vec::with_capacity(input.len());
        let (weights, _) = self.weights.split_at(self.inputs * self.outputs);
        let (gradient, of_bias) = self.gradient.split_at_mut(self.inputs * self.outputs);
        for (row, output) in input.chunks_exact(self.inputs).zip(of_output.chunks_exact(self.outputs)) {
            of_bias.iter_mut().zip(output).for_each(|(it, value)| *it += value);
            let layers = weights.chunks_exact(self.outputs).zip(gradient.chunks_exact_mut(self.outputs));
            for (value, (weights, gradient)) in row.iter().zip(layers) {
                // The sum in eight lanes, which the compiler keeps in one register.
                let mut lanes = [0.0f32; 8];
                for (weights, output) in weights.chunks(8).zip(output.chunks(8)) {
                    lanes.iter_mut().zip(weights.iter().zip(output)).for_each(|(it, (a, b))| *it += a * b);
                }
                of_input.push(lanes.iter().sum());
                if *value != 0.0 {
                    gradient.iter_mut().zip(output).for_each(|(it, output)| *it += value * output);
                }
            }
        }
        of_input
    }

    fn step(&mut self, rate: f32, number: i32) {
        let (fix_mean, fix_square) = (1.0 - 0.9f32.powi(number), 1.0 - 0.999f32.powi(number));
        let memory = self.mean.iter_mut().zip(&mut self.square);
        let weights = self.weights.iter_mut().zip(&mut self.gradient);
        for ((weight, gradient), (mean, square)) in weights.zip(memory) {
            *mean = 0.9 * *mean + 0.1 * *gradient;
            *square = 0.999 * *square + 0.001 * *gradient * *gradient;
            *weight -= rate * (*mean / fix_mean / ((*square / fix_square).sqrt() + 1e-8) + 0.0005 * *weight);
            *gradient = 0.0;
        }
    }
}

/// The network.
#[derive(Debug, Clone)]
pub(super) struct SetNetwork {
    frame: [Linear; 2],
    top: [Linear; 2],
    classes: usize,
    /// Mean and scale of each input.
    scaling: Vec<(f32, f32)>,
    steps: i32,
}

/// What a forward pass leaves for the backward pass.
struct Pass {
    input: Vec<f32>,
    hidden: [Vec<f32>; 2],
    pooled: Vec<f32>,
    /// Row of the maximum, for each example and number.
    maximum: Vec<usize>,
    top: Vec<f32>,
    logits: Vec<f32>,
}

/// How long to learn.
#[derive(Debug, Clone, Copy)]
pub(super) struct Training {
    /// Passes over the examples.
    pub epochs: usize,
    /// Examples a step.
    pub batch: usize,
    /// Numbers of the hidden layers.
    pub hidden: usize,
}

impl SetNetwork {
    /// Learns to tell `classes` classes apart.
    pub(super) fn learn(
        examples: &Examples,
        classes: usize,
        training: Training,
        draw: &mut Draw,
    ) -> SetNetwork {
        let hidden = training.hidden;
        let mut network = SetNetwork {
            frame: [Linear::new(examples.width, hidden, draw), Linear::new(hidden, hidden, draw)],
            top: [Linear::new(2 * hidden, hidden, draw), Linear::new(hidden, classes, draw)],
            classes,
            scaling: scaling(examples),
            steps: 0,
        };
        let mut order: Vec<usize> = (0..examples.classes.len()).collect();
        let all = (training.epochs * order.len().div_ceil(training.batch)) as f32;
        for _ in 0..training.epochs {
            draw.shuffle(&mut order);
            for batch in order.chunks(training.batch) {
                let rate = 0.5 * (1.0 + (std::f32::consts::PI * network.steps as f32 / all).cos());
                network.learn_batch(examples, batch, 2e-3 * rate + 1e-5);
            }
        }
        network
    }

    fn learn_batch(&mut self, examples: &Examples, batch: &[usize], rate: f32) {
        let pass = self.forward(examples, batch);
        let mut of_logits = pass.logits.clone();
        for (row, at) in of_logits.chunks_exact_mut(self.classes).zip(batch) {
            softmax(row);
            row[examples.classes[*at]] -= 1.0;
            row.iter_mut().for_each(|it| *it /= batch.len() as f32);
        }
        self.backward(&pass, &of_logits, examples.frames);
        self.steps += 1;
        for layer in self.frame.iter_mut().chain(&mut self.top) {
            layer.step(rate, self.steps);
        }
    }

    /// Probability of each class for each example.
    pub(super) fn probabilities(&self, examples: &Examples) -> Vec<Vec<f32>> {
        let all: Vec<usize> = (0..examples.classes.len()).collect();
        let of_batch = |batch: &[usize]| {
            let mut logits = self.forward(examples, batch).logits;
            logits.chunks_exact_mut(self.classes).for_each(softmax);
            logits.chunks_exact(self.classes).map(<[f32]>::to_vec).collect::<Vec<_>>()
        };
        all.chunks(256).flat_map(of_batch).collect()
    }

    /// How far to trust the probabilities, 0 to 1: the power to which they are best raised on examples that
    /// were not learnt from. What was learnt by heart counts for nothing.
    pub(super) fn trust(&self, unseen: &Examples) -> f32 {
        let probabilities = self.probabilities(unseen);
        let likelihood = |power: f32| -> f64 {
            let of = |(row, class): (&Vec<f32>, &usize)| {
                let all: f32 = row.iter().map(|it| it.powf(power)).sum();
                f64::from((row[*class].powf(power) / all).max(1e-12).ln())
            };
            probabilities.iter().zip(&unseen.classes).map(of).sum()
        };
        // A power has to earn its place: one standard error of noise is not knowledge.
        let margin = (unseen.classes.len() as f64).sqrt() * 0.1;
        let powers = (0..=10u8).map(|it| f32::from(it) / 10.0);
        let mut best = (0.0, likelihood(0.0) + margin);
        for power in powers.skip(1) {
            let found = likelihood(power);
            if found > best.1 {
                best = (power, found);
            }
        }
        best.0
    }

    fn forward(&self, examples: &Examples, batch: &[usize]) -> Pass {
        let rows = batch.iter().flat_map(|at| examples.of(*at).chunks_exact(examples.width));
        let scaled = |row: &[f32]| -> Vec<f32> {
            row.iter().zip(&self.scaling).map(|(it, (mean, scale))| (it - mean) * scale).collect()
        };
        let input: Vec<f32> = rows.flat_map(scaled).collect();
        let first = rectified(self.frame[0].forward(&input));
        let second = rectified(self.frame[1].forward(&first));
        let (pooled, maximum) = self.pool(&second, examples.frames);
        let top = rectified(self.top[0].forward(&pooled));
        let logits = self.top[1].forward(&top);
        Pass { input, hidden: [first, second], pooled, maximum, top, logits }
    }

    fn pool(&self, hidden: &[f32], frames: usize) -> (Vec<f32>, Vec<usize>) {
        let width = self.frame[1].outputs;
        let (mut pooled, mut maximum) = (Vec::new(), Vec::new());
        for example in hidden.chunks_exact(width * frames) {
            let column = |at: usize| example.iter().skip(at).step_by(width);
            pooled.extend((0..width).map(|at| column(at).sum::<f32>() / frames as f32));
            for at in 0..width {
                let best = column(at).enumerate().max_by(|a, b| a.1.total_cmp(b.1));
                let (row, value) = best.map_or((0, 0.0), |(row, value)| (row, *value));
                pooled.push(value);
                maximum.push(row);
            }
        }
        (pooled, maximum)
    }

    fn backward(&mut self, pass: &Pass, of_logits: &[f32], frames: usize) {
        let mut of_top = self.top[1].backward(&pass.top, of_logits);
        gate(&mut of_top, &pass.top);
        let of_pooled = self.top[0].backward(&pass.pooled, &of_top);
        let width = self.frame[1].outputs;
        let mut of_second = vec![0.0; pass.hidden[1].len()];
        for (at, example) in of_second.chunks_exact_mut(width * frames).enumerate() {
            let (mean, maximum) = of_pooled[2 * width * at..2 * width * (at + 1)].split_at(width);
            for row in example.chunks_exact_mut(width) {
                row.iter_mut().zip(mean).for_each(|(it, value)| *it += value / frames as f32);
            }
            for (column, value) in maximum.iter().enumerate() {
                example[pass.maximum[width * at + column] * width + column] += value;
            }
        }
        gate(&mut of_second, &pass.hidden[1]);
        let mut of_first = self.frame[1].backward(&pass.hidden[0], &of_second);
        gate(&mut of_first, &pass.hidden[0]);
        self.frame[0].backward(&pass.input, &of_first);
    }
}

fn scaling(examples: &Examples) -> Vec<(f32, f32)> {
    let number = (examples.rows.len() / examples.width.max(1)).max(1) as f32;
    let of_column = |at: usize| {
        let column = || examples.rows.iter().skip(at).step_by(examples.width);
        let mean = column().sum::<f32>() / number;
        let variance = column().map(|it| (it - mean) * (it - mean)).sum::<f32>() / number;
        (mean, 1.0 / (variance.sqrt() + 1e-4))
    };
    (0..examples.width).map(of_column).collect()
}

fn rectified(mut values: Vec<f32>) -> Vec<f32> {
    values.iter_mut().for_each(|it| *it = it.max(0.0));
    values
}

/// No gradient where the rectifier was shut.
fn gate(gradient: &mut [f32], values: &[f32]) {
    gradient.iter_mut().zip(values).filter(|(_, value)| **value <= 0.0).for_each(|(it, _)| *it = 0.0);
}

fn softmax(row: &mut [f32]) {
    let highest = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    row.iter_mut().for_each(|it| *it = (*it - highest).exp());
    let sum: f32 = row.iter().sum();
    row.iter_mut().for_each(|it| *it /= sum);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::synth::draw::Purpose;

    /// Sets of two frames: class 1 where any first number is over 0.5, whatever the order.
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
        let network = SetNetwork::learn(&examples(400, &mut draw), 2, training, &mut draw);
        let unseen = examples(200, &mut draw);
        let right = network
            .probabilities(&unseen)
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
        let network = SetNetwork::learn(&examples(64, &mut draw), 2, training, &mut draw);
        let one = Examples { width: 2, frames: 2, rows: vec![0.1, 0.2, 0.8, 0.4], classes: vec![0] };
        let other = Examples { rows: vec![0.8, 0.4, 0.1, 0.2], ..one.clone() };
        let (one, other) = (network.probabilities(&one), network.probabilities(&other));
        assert!((one[0][0] - other[0][0]).abs() < 1e-6);
    }

    #[test]
    fn gradients_agree_with_differences() {
        let mut draw = Draw::new(3, 0, Purpose::Probe, 0);
        let data = examples(6, &mut draw);
        let training = Training { epochs: 0, batch: 6, hidden: 5 };
        let mut network = SetNetwork::learn(&data, 2, training, &mut draw);
        let batch: Vec<usize> = (0..6).collect();
        let loss = |network: &SetNetwork| -> f64 {
            let mut logits = network.forward(&data, &batch).logits;
            logits.chunks_exact_mut(2).for_each(softmax);
            let of = |(at, row): (usize, &[f32])| -f64::from(row[data.classes[at]]).ln() / 6.0;
            logits.chunks_exact(2).enumerate().map(of).sum()
        };
        let pass = network.forward(&data, &batch);
        let mut of_logits = pass.logits.clone();
        for (row, at) in of_logits.chunks_exact_mut(2).zip(&batch) {
            softmax(row);
            row[data.classes[*at]] -= 1.0;
            row.iter_mut().for_each(|it| *it /= 6.0);
        }
        network.backward(&pass, &of_logits, 2);
        for at in [0, 3, 7, 11] {
            let mut moved = network.clone();
            moved.frame[0].weights[at] += 1e-2;
            let up = loss(&moved);
            moved.frame[0].weights[at] -= 2e-2;
            let difference = (up - loss(&moved)) / 2e-2;
            let gradient = f64::from(network.frame[0].gradient[at]);
            assert!((difference - gradient).abs() < 2e-3, "{difference} {gradient}");
        }
    }
}
