//! Query vectors in half precision, as a cursor carries them.

use half::f16;

use crate::terms::{Aggregation, QueryVectors, UnitVector};

/// The vectors that all pages of a search compare with: rounded once, before the first page.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct RoundedVectors {
    /// One row per query vector, of equal lengths. To round a second time would change scores.
    rows: Vec<Vec<f16>>,
    aggregation: Aggregation,
    vectors: QueryVectors,
}

impl RoundedVectors {
    /// `None` without a vector, or if rounding leaves one without a direction.
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

    /// As the search compares with them.
    pub(super) fn vectors(&self) -> &QueryVectors {
        &self.vectors
    }

    /// Whether they can be compared with vectors of `dim` values: a forged cursor carries any.
    pub(super) fn have(&self, dim: usize) -> bool {
        self.rows.iter().all(|row| row.len() == dim)
    }

    /// How they become one score.
    pub(super) fn aggregation(&self) -> Aggregation {
        self.aggregation
    }

    /// How many there are.
    pub(super) fn count(&self) -> usize {
        self.rows.len()
    }

    /// The values, row after row, two bytes each, least significant first.
    pub(super) fn bytes(&self) -> impl Iterator<Item = u8> {
        self.rows.iter().flatten().flat_map(|value| value.to_le_bytes())
    }

    /// `count` vectors of equal lengths from [`RoundedVectors::bytes`]; `None` if `bytes` are no such vectors.
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
