//! Query vectors in half precision, as a cursor stores them.

use half::f16;

use crate::terms::{Aggregation, QueryVectors, UnitVector};

/// Query vectors rounded to half precision before the first page, so that all pages score alike.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct RoundedVectors {
    /// `[vectors, dim]`, f16. Kept, because rounding `vectors` again could change scores.
    rows: Vec<Vec<f16>>,
    aggregation: Aggregation,
    vectors: QueryVectors,
}

impl RoundedVectors {
    /// `None` without a vector, or if rounding turns one into zero.
    pub(super) fn new(units: &[UnitVector], aggregation: Aggregation) -> Option<RoundedVectors> {
        let rounded = |unit: &UnitVector| unit.values().iter().map(|value| f16::from_f32(*value)).collect();
        RoundedVectors::of_rows(units.iter().map(rounded).collect(), aggregation)
    }

    fn of_rows(rows: Vec<Vec<f16>>, aggregation: Aggregation) -> Option<RoundedVectors> {
        let unit = |row: &Vec<f16>| {
            let values: Vec<f32> = row.iter().map(|value| value.to_f32()).collect();
            UnitVector::from_raw(&values).map(|(unit, _)| unit)
        };
        let units = rows.iter().map(unit).collect::<Option<Vec<_>>>()?;
        Some(RoundedVectors { vectors: QueryVectors::new(units, aggregation)?, rows, aggregation })
    }

    /// The rounded vectors as unit vectors, f32.
    pub(super) fn vectors(&self) -> &QueryVectors {
        &self.vectors
    }

    /// Whether all have `dim` values. A forged cursor may hold other lengths.
    pub(super) fn have(&self, dim: usize) -> bool {
        self.rows.iter().all(|row| row.len() == dim)
    }

    /// The rule that turns the cosines of several vectors into one score.
    pub(super) fn aggregation(&self) -> Aggregation {
        self.aggregation
    }

    /// Number of vectors.
    pub(super) fn count(&self) -> usize {
        self.rows.len()
    }

    /// All rows, two bytes per value, little-endian.
    pub(super) fn bytes(&self) -> impl Iterator<Item = u8> {
        self.rows.iter().flatten().flat_map(|value| value.to_le_bytes())
    }

    /// Reads `count` vectors of equal length from [`RoundedVectors::bytes`]. `None` if `bytes` is malformed.
    pub(super) fn from_bytes(bytes: &[u8], count: usize, aggregation: Aggregation) -> Option<RoundedVectors> {
        let length = bytes.len().checked_div(count).filter(|it| *it > 0 && it * count == bytes.len())?;
        let row = |row: &[u8]| row.chunks_exact(2).map(|it| f16::from_le_bytes([it[0], it[1]])).collect();
        let rows = bytes.chunks_exact(length).map(row).collect();
        RoundedVectors::of_rows(rows, aggregation).filter(|_| length % 2 == 0)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check(bytes: &[u8], count: usize, expected: bool) {
        assert_eq!(RoundedVectors::from_bytes(bytes, count, Aggregation::Max).is_some(), expected);
    }

    #[test]
    fn bytes_that_are_no_vectors_are_refused() {
        check(&[0, 60, 0, 0], 1, true);
        check(&[0, 60, 0, 60], 2, true);
        check(&[0, 60, 0, 60], 4, false);
        check(&[0, 60, 0, 60], 0, false);
        check(&[0, 60, 0], 1, false);
        check(&[0, 60, 0, 60], 3, false);
        check(&[0, 0, 0, 0], 1, false);
        check(&[0, 124], 1, false);
        check(&[], 1, false);
        check(&[0, 60], usize::MAX, false);
    }

    proptest! {
        #[test]
        fn vectors_come_back_from_their_bytes_bit_by_bit(
            raw in proptest::collection::vec(proptest::collection::vec(0.01_f32..1.0, 6), 1..5),
        ) {
            let units: Vec<UnitVector> = raw.iter().filter_map(|it| UnitVector::from_raw(it)).map(|it| it.0).collect();
            let sent = RoundedVectors::new(&units, Aggregation::Coverage).expect("vectors with a direction");
            let bytes: Vec<u8> = sent.bytes().collect();
            let back = RoundedVectors::from_bytes(&bytes, units.len(), Aggregation::Coverage);
            prop_assert_eq!(back, Some(sent));
        }
    }
}
