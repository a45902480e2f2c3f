//! A unit vector.

use simsimd::SpatialSimilarity;

/// The largest deviation from 1 of a stored vector's norm.
const NORM_TOLERANCE: f64 = 1e-3;

/// A finite vector of norm 1.
///
/// Invariant: at least one value, all finite, norm 1 up to rounding. Made only by [`UnitVector::from_raw`] and
/// [`UnitVector::from_unit`].
#[derive(Debug, Clone, PartialEq)]
pub struct UnitVector(Box<[f32]>);

impl UnitVector {
    /// Normalises `raw`; returns the unit vector and the norm of `raw`. `None` if a value is not finite, or the norm is
    /// 0 or exceeds `f32`.
    pub fn from_raw(raw: &[f32]) -> Option<(UnitVector, f32)> {
        let norm = norm(raw)?;
        let narrow = norm as f32;
        if narrow == 0.0 || !narrow.is_finite() {
            return None;
        }
        let values = raw.iter().map(|&value| (f64::from(value) / norm) as f32).collect();
        Some((UnitVector(values), narrow))
    }

    /// Checks that `values` are finite and of norm 1 within 1e-3, and renormalises them; for vectors from storage.
    pub fn from_unit(values: Vec<f32>) -> Option<UnitVector> {
        let norm = norm(&values)?;
        if (norm - 1.0).abs() > NORM_TOLERANCE {
            return None;
        }
        // A vector of norm 1 within `f32` precision is kept bit for bit, so that storing and reading change nothing.
        if (norm - 1.0).abs() < 1e-6 {
            return Some(UnitVector(values.into()));
        }
        UnitVector::from_raw(&values).map(|(unit, _)| unit)
    }

    /// The values.
    pub fn values(&self) -> &[f32] {
        &self.0
    }

    /// Cosine with another vector of the same length, -1 to 1; 0 if the lengths differ.
    pub fn dot(&self, other: &UnitVector) -> f32 {
        cosine(&self.0, &other.0)
    }
}

/// The norm; `None` if a value is not finite.
fn norm(values: &[f32]) -> Option<f64> {
    let squares: f64 = values.iter().map(|&value| f64::from(value) * f64::from(value)).sum();
    squares.is_finite().then(|| squares.sqrt())
}

/// The cosine of two unit vectors of the same length, clamped to -1 ..= 1. All scores of this crate come from here, so
/// the graph and exact search agree to the last bit.
pub fn cosine(left: &[f32], right: &[f32]) -> f32 {
    let product = f32::dot(left, right).unwrap_or(0.0) as f32;
    // Adding 0 turns -0 into 0: equal scores must compare equal.
    product.clamp(-1.0, 1.0) + 0.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(raw: &[f32], expected: Option<(&[f32], f32)>) {
        let got = UnitVector::from_raw(raw);
        match (got, expected) {
            (None, None) => {}
            (Some((unit, norm)), Some((values, expected_norm))) => {
                assert!((norm / expected_norm - 1.0).abs() < 1e-6, "norm {norm} is not {expected_norm}");
                for (got, expected) in unit.values().iter().zip(values) {
                    assert!((got - expected).abs() < 1e-6, "{:?} is not {values:?}", unit.values());
                }
            }
            (got, expected) => panic!("{raw:?} gave {got:?}, not {expected:?}"),
        }
    }

    #[test]
    fn a_raw_vector_is_split_into_direction_and_norm() {
        check(&[3.0, 4.0], Some((&[0.6, 0.8], 5.0)));
        check(&[-2.0], Some((&[-1.0], 2.0)));
        check(&[1e-20, 0.0], Some((&[1.0, 0.0], 1e-20)));
        check(&[1e30, 1e30], Some((&[std::f32::consts::FRAC_1_SQRT_2; 2], std::f32::consts::SQRT_2 * 1e30)));
    }

    #[test]
    fn what_has_no_direction_is_refused() {
        check(&[], None);
        check(&[0.0, 0.0], None);
        check(&[f32::NAN, 1.0], None);
        check(&[f32::INFINITY, 1.0], None);
        check(&[f32::MAX, f32::MAX], None);
    }

    #[test]
    fn a_stored_vector_must_already_be_of_norm_1() {
        assert!(UnitVector::from_unit(vec![0.6, 0.8]).is_some());
        assert!(UnitVector::from_unit(vec![0.6004, 0.8]).is_some());
        assert!(UnitVector::from_unit(vec![0.61, 0.8]).is_none());
        assert!(UnitVector::from_unit(vec![f32::NAN, 1.0]).is_none());
        assert!(UnitVector::from_unit(Vec::new()).is_none());
    }

    #[test]
    fn reading_a_stored_vector_keeps_its_bits() {
        for seed in 1..200 {
            let raw: Vec<f32> = (1..40).map(|at| ((at * 37 + seed * 1_013) % 101) as f32 - 50.0).collect();
            let (unit, _) = UnitVector::from_raw(&raw).unwrap();
            assert_eq!(UnitVector::from_unit(unit.values().to_vec()), Some(unit));
        }
    }

    #[test]
    fn the_dot_product_is_the_cosine() {
        let unit = |raw: &[f32]| UnitVector::from_raw(raw).unwrap().0;
        assert!((unit(&[1.0, 0.0]).dot(&unit(&[1.0, 1.0])) - std::f32::consts::FRAC_1_SQRT_2).abs() < 1e-6);
        assert_eq!(unit(&[1.0, 0.0]).dot(&unit(&[-1.0, 0.0])), -1.0);
        assert_eq!(unit(&[1.0, 0.0]).dot(&unit(&[1.0])), 0.0);
        // The product is -1e-60, which rounds to -0.
        let smallest = unit(&[1e-30, 1.0, 0.0]).dot(&unit(&[-1e-30, 0.0, 1.0]));
        assert!(smallest == 0.0 && smallest.is_sign_positive());
    }
}
