//! Terms shared by all parts of the service: keys and key sets, levels, collections, vectors, kinds of query.

use std::fmt;
use std::ops::{BitAnd, BitAndAssign, BitOr, Range, Sub, SubAssign};
use std::sync::Arc;

use roaring::RoaringTreemap;
use serde::{Deserialize, Serialize};

pub use reprise_index::{
    Aggregation, Background, Collection, Level, NEGATIVE_SHARE, QueryVectors, SampledSpan, SpaceInfo,
    UnitVector, cosine, duplicate_cosine, late_interaction, rocchio,
};

/// A span's number in the catalog. A deleted span's key is never reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SpanKey(u64);

impl SpanKey {
    /// Every key.
    pub const ALL: Range<SpanKey> = SpanKey(0)..SpanKey(u64::MAX);

    /// The key with this number.
    pub const fn new(number: u64) -> SpanKey {
        SpanKey(number)
    }

    /// The key's number.
    pub const fn number(self) -> u64 {
        self.0
    }
}

impl From<u64> for SpanKey {
    fn from(number: u64) -> SpanKey {
        SpanKey(number)
    }
}

impl fmt::Display for SpanKey {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(to)
    }
}

/// A video's number in the catalog, stored beside each vector by vector engines. Never reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct VideoNumber(u64);

impl VideoNumber {
    /// The video with this number.
    pub const fn new(number: u64) -> VideoNumber {
        VideoNumber(number)
    }

    /// The number itself.
    pub const fn number(self) -> u64 {
        self.0
    }
}

/// A set of span keys. A clone is cheap: clones share the set until one of them changes.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct KeySet(Arc<RoaringTreemap>);

impl KeySet {
    /// The empty set.
    pub fn new() -> KeySet {
        KeySet::default()
    }

    /// The set as a bitmap of the keys' numbers.
    pub fn bitmap(&self) -> &Arc<RoaringTreemap> {
        &self.0
    }

    /// Number of keys in the set.
    pub fn len(&self) -> u64 {
        self.0.len()
    }

    /// Whether the set holds no key.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether the set holds `key`.
    pub fn contains(&self, key: SpanKey) -> bool {
        self.0.contains(key.0)
    }

    /// Number of keys in both sets.
    pub fn intersection_len(&self, other: &KeySet) -> u64 {
        self.0.intersection_len(&other.0)
    }

    /// The set without keys outside `range`.
    pub fn within(mut self, range: Range<SpanKey>) -> KeySet {
        if range != SpanKey::ALL {
            let keys = Arc::make_mut(&mut self.0);
            keys.remove_range(..range.start.0);
            keys.remove_range(range.end.0..);
        }
        self
    }

    /// Adds a key. Returns whether it is new.
    pub fn insert(&mut self, key: SpanKey) -> bool {
        Arc::make_mut(&mut self.0).insert(key.0)
    }

    /// Removes a key. Returns whether it was in the set.
    pub fn remove(&mut self, key: SpanKey) -> bool {
        Arc::make_mut(&mut self.0).remove(key.0)
    }

    /// The keys in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = SpanKey> + '_ {
        self.0.iter().map(SpanKey)
    }
}

impl From<RoaringTreemap> for KeySet {
    fn from(bitmap: RoaringTreemap) -> KeySet {
        KeySet(Arc::new(bitmap))
    }
}

impl FromIterator<SpanKey> for KeySet {
    fn from_iter<I: IntoIterator<Item = SpanKey>>(keys: I) -> KeySet {
        keys.into_iter().map(SpanKey::number).collect::<RoaringTreemap>().into()
    }
}

impl Extend<SpanKey> for KeySet {
    fn extend<I: IntoIterator<Item = SpanKey>>(&mut self, keys: I) {
        Arc::make_mut(&mut self.0).extend(keys.into_iter().map(SpanKey::number));
    }
}

impl BitAnd for &KeySet {
    type Output = KeySet;

    fn bitand(self, other: &KeySet) -> KeySet {
        (&*self.0 & &*other.0).into()
    }
}

impl BitOr for &KeySet {
    type Output = KeySet;

    fn bitor(self, other: &KeySet) -> KeySet {
        (&*self.0 | &*other.0).into()
    }
}

impl Sub for &KeySet {
    type Output = KeySet;

    fn sub(self, other: &KeySet) -> KeySet {
        (&*self.0 - &*other.0).into()
    }
}

impl BitAndAssign<&KeySet> for KeySet {
    fn bitand_assign(&mut self, other: &KeySet) {
        *Arc::make_mut(&mut self.0) &= &*other.0;
    }
}

impl SubAssign<&KeySet> for KeySet {
    fn sub_assign(&mut self, other: &KeySet) {
        *Arc::make_mut(&mut self.0) -= &*other.0;
    }
}

/// A kind of query.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum QueryKind {
    /// A text.
    Text,
    /// A stored range or an uploaded clip.
    Clip,
    /// A clip with a modification text.
    Composed,
    /// A text that is searched in subtitles by meaning.
    Spoken,
}

impl QueryKind {
    /// All kinds.
    pub const ALL: [QueryKind; 4] =
        [QueryKind::Text, QueryKind::Clip, QueryKind::Composed, QueryKind::Spoken];

    /// The name in flags and answers.
    pub fn name(self) -> &'static str {
        match self {
            QueryKind::Text => "text",
            QueryKind::Clip => "clip",
            QueryKind::Composed => "composed",
            QueryKind::Spoken => "spoken",
        }
    }
}

/// A kind of search, in answers and in the query log. A space answers it by one or more [`QueryKind`]s.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SearchKind {
    /// A text.
    Text,
    /// A stored range or an uploaded clip.
    Clip,
    /// A clip with a modification text.
    Composed,
    /// A still image.
    Image,
    /// Several examples: more like some, less like others.
    Examples,
}

impl SearchKind {
    /// All kinds.
    pub const ALL: [SearchKind; 5] =
        [SearchKind::Text, SearchKind::Clip, SearchKind::Composed, SearchKind::Image, SearchKind::Examples];

    /// The name in answers and in the log.
    pub fn name(self) -> &'static str {
        match self {
            SearchKind::Text => "text",
            SearchKind::Clip => "clip",
            SearchKind::Composed => "composed",
            SearchKind::Image => "image",
            SearchKind::Examples => "examples",
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Keys on both sides of 2^32.
    fn keys() -> impl Strategy<Value = Vec<u64>> {
        proptest::collection::vec(
            prop_oneof![0..40_u64, (1_u64 << 32) - 5..(1 << 32) + 30, Just(1 << 62)],
            0..60,
        )
    }

    fn set(numbers: &[u64]) -> KeySet {
        numbers.iter().copied().map(SpanKey).collect()
    }

    proptest! {
        #[test]
        fn a_set_of_keys_is_a_set(one in keys(), other in keys()) {
            use std::collections::BTreeSet;
            let model = |numbers: &[u64]| numbers.iter().copied().collect::<BTreeSet<u64>>();
            let numbers = |set: &KeySet| set.iter().map(SpanKey::number).collect::<BTreeSet<u64>>();
            let (left, right) = (set(&one), set(&other));
            prop_assert_eq!(numbers(&(&left & &right)), &model(&one) & &model(&other));
            prop_assert_eq!(numbers(&(&left | &right)), &model(&one) | &model(&other));
            prop_assert_eq!(numbers(&(&left - &right)), &model(&one) - &model(&other));
            prop_assert_eq!(left.len(), model(&one).len() as u64);
            prop_assert_eq!(left.intersection_len(&right), (&left & &right).len());
            let range = SpanKey::new(7)..SpanKey::new((1 << 32) + 3);
            let within = model(&one).range(7..(1 << 32) + 3).copied().collect();
            prop_assert_eq!(numbers(&left.clone().within(range)), within);
            prop_assert_eq!(left.clone().within(SpanKey::ALL), left);
        }
    }

    #[test]
    fn a_clone_keeps_what_it_held_when_the_other_changes() {
        let mut one = set(&[1, 1 << 40]);
        let other = one.clone();
        one.insert(SpanKey::new(7));
        one.remove(SpanKey::new(1));
        assert_eq!(numbers(&other), [1, 1 << 40]);
        assert_eq!(numbers(&one), [7, 1 << 40]);
    }

    fn numbers(set: &KeySet) -> Vec<u64> {
        set.iter().map(SpanKey::number).collect()
    }
}
