//! Losses: HN-NCE and InfoNCE over a batch's similarities, cross-entropy, and Huber loss.

use candle_core::{D, Device, Result, Tensor};

/// Weights of hard negatives (HN-NCE, arXiv 2301.02280, as in TF-CoVR: arXiv 2506.05274).
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Mode {
    /// As in the paper: weights over the row's own negatives. The weights are constants.
    Clean,
    /// As in TF-CoVR's released code. A row's weights are divided by the sums of other rows. Gradients flow through
    /// the weights. A target of the same label is a negative.
    Compat,
}

/// Parameters of HN-NCE.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct HardNegatives {
    /// Weight of the positive.
    pub alpha: f64,
    /// Concentration on hard negatives; 0 gives InfoNCE.
    pub beta: f64,
    /// Normalisation of the weights.
    pub mode: Mode,
}

impl HardNegatives {
    /// TF-CoVR's parameters.
    pub const PAPER: HardNegatives = HardNegatives { alpha: 1.0, beta: 0.5, mode: Mode::Clean };
    /// InfoNCE: every negative weighs the same.
    pub const INFO_NCE: HardNegatives = HardNegatives { alpha: 1.0, beta: 0.0, mode: Mode::Clean };

    /// The mask of negatives. `negatives` leaves out targets of the same label. The released code has no such mask.
    pub(super) fn masking(self, negatives: &Tensor) -> Option<&Tensor> {
        (self.mode == Mode::Clean).then_some(negatives)
    }
}

/// Both directions of a contrastive loss.
pub struct Contrast {
    /// Mean over queries, a scalar.
    pub rows: Tensor,
    /// Mean over targets, a scalar.
    pub columns: Tensor,
}

/// HN-NCE of `scores` (`[batch, batch]`): cosines divided by the temperature. The target of query i is i.
///
/// `hardness` (`[batch, batch]`) replaces the scores in the weights, e.g. by similarities of the targets'
/// labels. `negatives` (`[batch, batch]`) holds 1 for negatives and 0 elsewhere; by default all but the
/// diagonal. In [`Mode::Clean`] no gradient flows through the weights.
///
/// # Errors
/// If the shapes differ.
pub fn hn_nce(
    scores: &Tensor,
    hardness: Option<&Tensor>,
    negatives: Option<&Tensor>,
    settings: HardNegatives,
) -> Result<Contrast> {
    let batch = scores.dim(0)?;
    let diagonal = identity(batch, scores.device())?;
    let negatives = match negatives {
        Some(negatives) => negatives.clone(),
        None => (1.0 - &diagonal)?,
    };
    let hardness = hardness.unwrap_or(scores);
    let hardness = if settings.mode == Mode::Clean { hardness.detach() } else { hardness.clone() };
    // A common factor does not change the weights; it keeps the exponentials finite.
    let shifted = hardness.broadcast_sub(&hardness.max_all()?.detach())?;
    let powers = ((shifted * settings.beta)?.exp()? * &negatives)?;
    let row_sums = powers.sum_keepdim(1)?;
    let divisors = match settings.mode {
        Mode::Clean => row_sums.broadcast_as(powers.shape())?,
        Mode::Compat => row_sums.t()?.broadcast_as(powers.shape())?,
    };
    let positives = (&diagonal * settings.alpha)?;
    let weigh = |divisors: &Tensor, counts: &Tensor| -> Result<Tensor> {
        powers.broadcast_div(&(divisors + 1e-30)?)?.broadcast_mul(counts)? + &positives
    };
    let rows = weigh(&divisors, &negatives.sum_keepdim(1)?)?;
    let columns = weigh(&powers.sum_keepdim(0)?, &negatives.sum_keepdim(0)?)?;
    let right = (scores * &diagonal)?.sum(1)?;
    let mean = |weights: &Tensor, dimension: usize| -> Result<Tensor> {
        (log_sum(scores, weights, dimension)? - &right)?.mean_all()
    };
    Ok(Contrast { rows: mean(&rows, 1)?, columns: mean(&columns, 0)? })
}

/// Weighted log-sum-exp, `log sum w e^s`, along a dimension.
fn log_sum(scores: &Tensor, weights: &Tensor, dimension: usize) -> Result<Tensor> {
    let largest = scores.max_keepdim(dimension)?.detach();
    let sums = (scores.broadcast_sub(&largest)?.exp()? * weights)?.sum(dimension)?;
    sums.log()? + largest.squeeze(dimension)?
}

/// Identity matrix, `[size, size]`.
pub(super) fn identity(size: usize, device: &Device) -> Result<Tensor> {
    let values: Vec<f32> =
        (0..size * size).map(|at| if at / size == at % size { 1.0 } else { 0.0 }).collect();
    Tensor::from_vec(values, (size, size), device)
}

/// Log-probabilities along the last dimension.
pub(super) fn log_softmax(scores: &Tensor) -> Result<Tensor> {
    let centred = scores.broadcast_sub(&scores.max_keepdim(D::Minus1)?.detach())?;
    centred.broadcast_sub(&centred.exp()?.sum_keepdim(D::Minus1)?.log()?)
}

/// Cross-entropy of `scores` against `targets`, both `[rows, classes]`: the sum over rows divided by `rows`. A
/// row of targets sums to 1, or to 0 if the row does not count.
pub(super) fn soft_cross_entropy(scores: &Tensor, targets: &Tensor) -> Result<Tensor> {
    let rows = scores.dim(0)?.max(1) as f64;
    (log_softmax(scores)? * targets)?.sum_all()?.neg()? / rows
}

/// Smoothed one-hot rows, `[rows, count]`. Each row is multiplied by its weight.
pub(super) fn targets(
    classes: &[(usize, f32)],
    count: usize,
    smoothing: f32,
    device: &Device,
) -> Result<Tensor> {
    let mut values = Vec::with_capacity(classes.len() * count);
    for (class, weight) in classes {
        let share = smoothing / count.max(1) as f32;
        let value = |at| if at == *class { 1.0 - smoothing + share } else { share };
        values.extend((0..count).map(|at| value(at) * weight));
    }
    Tensor::from_vec(values, (classes.len(), count), device)
}

/// Huber loss divided by `reach`, per element: quadratic up to `reach`, linear beyond.
pub(super) fn huber(difference: &Tensor, reach: f64) -> Result<Tensor> {
    let distance = difference.abs()?;
    let near = distance.minimum(reach)?;
    ((&near * (distance - (&near * 0.5)?)?)? / reach)?.contiguous()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// TF-CoVR's temperature.
    const TEMPERATURE: f64 = 0.07;
    const COSINES: [[f32; 3]; 3] = [[0.9, 0.2, 0.1], [0.3, 0.8, 0.4], [0.0, 0.5, 0.7]];

    fn scores() -> Tensor {
        (Tensor::new(&COSINES, &Device::Cpu).unwrap() / TEMPERATURE).unwrap()
    }

    fn number(tensor: &Tensor) -> f64 {
        f64::from(tensor.to_scalar::<f32>().unwrap())
    }

    #[track_caller]
    fn check(settings: HardNegatives, rows: f64, columns: f64) {
        let loss = hn_nce(&scores(), None, None, settings).unwrap();
        let (got_rows, got_columns) = (number(&loss.rows), number(&loss.columns));
        assert!((got_rows - rows).abs() < 1e-5, "rows {got_rows} instead of {rows}");
        assert!((got_columns - columns).abs() < 1e-5, "columns {got_columns} instead of {columns}");
    }

    #[test]
    fn hard_negatives_weigh_as_meant() {
        check(HardNegatives::PAPER, 0.036_973, 0.016_365);
    }

    #[test]
    fn hard_negatives_weigh_as_released() {
        check(HardNegatives { mode: Mode::Compat, ..HardNegatives::PAPER }, 0.050_536, 0.016_365);
    }

    /// The gradient of both directions' sum with respect to the scores, by central differences in f64.
    #[test]
    fn as_released_gradients_flow_through_the_weights() {
        let expected = [
            [-0.000_118_45_f32, -0.000_637_46, -0.000_520_25],
            [-0.006_257_74, -0.009_787_98, -0.005_236_48],
            [-0.000_013_60, 0.075_965_46, -0.053_393_49],
        ];
        let scores = candle_core::Var::from_tensor(&scores()).unwrap();
        let compat = HardNegatives { mode: Mode::Compat, ..HardNegatives::PAPER };
        let loss = hn_nce(&scores, None, None, compat).unwrap();
        let gradients = (loss.rows + loss.columns).unwrap().backward().unwrap();
        let got: Vec<Vec<f32>> = gradients.get(&scores).unwrap().to_vec2().unwrap();
        for (got, expected) in got.concat().iter().zip(expected.concat()) {
            assert!((got - expected).abs() < 2e-6, "{got} instead of {expected}");
        }
    }

    #[test]
    fn without_hardness_it_is_info_nce() {
        check(HardNegatives::INFO_NCE, 0.020_008, 0.009_302);
        check(HardNegatives { mode: Mode::Compat, ..HardNegatives::INFO_NCE }, 0.020_008, 0.009_302);
    }

    #[test]
    fn a_right_answer_of_another_query_does_not_count_as_a_negative() {
        let negatives = Tensor::new(&[[0_f32, 0.0, 1.0], [0.0, 0.0, 1.0], [1.0, 1.0, 0.0]], &Device::Cpu);
        let loss = hn_nce(&scores(), None, Some(&negatives.unwrap()), HardNegatives::INFO_NCE).unwrap();
        let row = |right: f64, wrong: &[f64]| {
            let power = |cosine: &f64| (cosine / TEMPERATURE).exp();
            (power(&right) + wrong.iter().map(power).sum::<f64>()).ln() - right / TEMPERATURE
        };
        let expected = (row(0.9, &[0.1]) + row(0.8, &[0.4]) + row(0.7, &[0.0, 0.5])) / 3.0;
        assert!((number(&loss.rows) - expected).abs() < 1e-5);
    }

    #[test]
    fn large_scores_stay_finite() {
        let scores = Tensor::new(&[[900_f32, 100.0], [-900.0, 800.0]], &Device::Cpu).unwrap();
        let loss = hn_nce(&scores, None, None, HardNegatives::PAPER).unwrap();
        assert!(number(&loss.rows).is_finite() && number(&loss.columns).is_finite());
    }

    #[test]
    fn cross_entropy_is_as_by_hand() {
        let scores = Tensor::new(&[[1_f32, 2.0, 3.0], [0.0, 0.0, 0.0]], &Device::Cpu).unwrap();
        let log_sum = (1_f64.exp() + 2_f64.exp() + 3_f64.exp()).ln();
        let hard = targets(&[(2, 1.0), (0, 1.0)], 3, 0.0, &Device::Cpu).unwrap();
        let got = number(&soft_cross_entropy(&scores, &hard).unwrap());
        assert!((got - (log_sum - 3.0 + 3_f64.ln()) / 2.0).abs() < 1e-6);
        let smooth = targets(&[(2, 1.0), (0, 0.0)], 3, 0.3, &Device::Cpu).unwrap();
        let got = number(&soft_cross_entropy(&scores, &smooth).unwrap());
        assert!((got - (log_sum - 0.8 * 3.0 - 0.1 * 2.0 - 0.1) / 2.0).abs() < 1e-6);
    }

    #[test]
    fn the_robust_distance_is_a_parabola_and_then_a_line() {
        let got = huber(&Tensor::new(&[0.2_f32, -0.3, 1.3], &Device::Cpu).unwrap(), 0.3).unwrap();
        let expected = [0.04 / 0.6, 0.15, 1.15];
        let close = |(a, b): (f32, f32)| (a - b).abs() < 1e-6;
        assert!(got.to_vec1::<f32>().unwrap().into_iter().zip(expected).all(close), "{got}");
    }
}
