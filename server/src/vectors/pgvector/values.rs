//! Values of statements: vectors in pgvector's binary form, keys as 64-bit integers, key sets as multiranges.

use std::fmt::Write as _;
use std::ops::Range;

use sqlx::encode::IsNull;
use sqlx::error::BoxDynError;
use sqlx::postgres::{PgArgumentBuffer, PgHasArrayType, PgTypeInfo};
use sqlx::{Encode, Postgres, Type};

use crate::terms::{KeySet, SpanKey, UnitVector};

/// A unit vector as a value of pgvector's type `vector`.
pub(super) struct PgUnit<'a>(pub(super) &'a UnitVector);

impl Type<Postgres> for PgUnit<'_> {
    fn type_info() -> PgTypeInfo {
        PgTypeInfo::with_name("vector")
    }
}

impl PgHasArrayType for PgUnit<'_> {
    fn array_type_info() -> PgTypeInfo {
        PgTypeInfo::array_of("vector")
    }
}

impl Encode<'_, Postgres> for PgUnit<'_> {
    /// The number of values and a zero, 16 bits each, then the values as f32; all big-endian.
    fn encode_by_ref(&self, buffer: &mut PgArgumentBuffer) -> Result<IsNull, BoxDynError> {
        let values = self.0.values();
        buffer.extend_from_slice(&u16::try_from(values.len())?.to_be_bytes());
        buffer.extend_from_slice(&[0, 0]);
        values.iter().for_each(|value| buffer.extend_from_slice(&value.to_be_bytes()));
        Ok(IsNull::No)
    }
}

/// A key as a `bigint`. Keys of the catalog fit; a larger number becomes the largest.
pub(super) fn bigint(key: SpanKey) -> i64 {
    i64::try_from(key.number()).unwrap_or(i64::MAX)
}

/// Keys as an array of `bigint`.
pub(super) fn bigints(keys: &KeySet) -> Vec<i64> {
    keys.iter().map(bigint).collect()
}

/// The text of an `int8multirange` with at most `most` ranges that holds these keys. To stay within `most` it also takes
/// in the narrowest gaps between them.
pub(super) fn multirange(keys: &KeySet, most: usize) -> String {
    let ranges = runs(keys);
    let mut gaps: Vec<u64> = ranges.windows(2).map(|pair| pair[1].start - pair[0].end).collect();
    let filled = ranges.len().saturating_sub(most.max(1));
    // Gaps of at most this width are filled.
    let widest = match filled {
        0 => 0,
        filled => *gaps.select_nth_unstable(filled - 1).1,
    };
    let mut text = "{".to_owned();
    let mut joined: Option<Range<u64>> = None;
    for range in ranges {
        match &mut joined {
            Some(last) if range.start - last.end <= widest => last.end = range.end,
            _ => {
                write_range(&mut text, joined.replace(range));
            }
        }
    }
    write_range(&mut text, joined);
    text.push('}');
    text
}

fn write_range(text: &mut String, range: Option<Range<u64>>) {
    let Some(Range { start, end }) = range else { return };
    let comma = if text.len() > 1 { "," } else { "" };
    // Writing to a string does not fail.
    let _ = write!(text, "{comma}[{start},{end})");
}

/// The keys as ranges of successive numbers.
fn runs(keys: &KeySet) -> Vec<Range<u64>> {
    let mut runs: Vec<Range<u64>> = Vec::new();
    for key in keys.iter().map(SpanKey::number) {
        match runs.last_mut() {
            Some(last) if last.end == key => last.end = key + 1,
            _ => runs.push(key..key + 1),
        }
    }
    runs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(keys: &[u64], most: usize, expected: &str) {
        let keys: KeySet = keys.iter().copied().map(SpanKey::new).collect();
        assert_eq!(multirange(&keys, most), expected);
    }

    #[test]
    fn keys_become_ranges_and_the_narrowest_gaps_are_filled_first() {
        check(&[], 5, "{}");
        check(&[7], 5, "{[7,8)}");
        check(&[1, 2, 3, 5, 9, 10], 5, "{[1,4),[5,6),[9,11)}");
        check(&[1, 2, 3, 5, 9, 10], 2, "{[1,6),[9,11)}");
        check(&[1, 2, 3, 5, 9, 10], 1, "{[1,11)}");
        check(&[1, 3, 5, 7], 3, "{[1,8)}");
        check(&[0, 1 << 40], 2, "{[0,1),[1099511627776,1099511627777)}");
    }
}
