//! What a next page needs to know, carried by the client: the query's vectors as f16, filter, generation, and
//! how far the pages before went.

use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use half::f16;
use reprise_index::UnitVector;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};
use uuid::Uuid;

use super::windows::QueryVectors;
use super::{Aggregation, Encoded, Exclude, Levels, Origin, QueryInfo, Request, SearchError};
use crate::app::App;
use crate::catalog::Filter;
use crate::config::QueryKind;
use crate::spaces::LoadedSpace;

/// Damage goes unnoticed once in 2^64 times.
const CHECKSUM_BYTES: usize = 8;

/// A search between two pages. Its vectors were rounded to f16 before the first page, so all pages score alike.
#[derive(Debug, Clone)]
pub struct Cursor {
    /// As carried, one row a window: rounding twice would score differently.
    halves: Vec<Vec<f16>>,
    pub(super) vectors: QueryVectors,
    pub(super) filter: Option<Filter>,
    pub(super) state: State,
}

/// Everything but vectors and filter.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct State {
    pub(super) space: String,
    pub(super) generation: u64,
    pub(super) levels: Levels,
    pub(super) aggregation: Aggregation,
    pub(super) limit: usize,
    pub(super) per_group: Option<usize>,
    pub(super) exclude: Exclude,
    pub(super) origin: Option<Origin>,
    pub(super) exact: bool,
    pub(super) merge_adjacent: bool,
    pub(super) explain: bool,
    pub(super) info: QueryInfo,
    /// Hits or groups on the pages before.
    pub(super) seen: usize,
    /// The last hit (or the best hit of the last group) on the pages before.
    pub(super) last: Option<Last>,
}

/// A place in a ranking.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(super) struct Last {
    /// Bits of the score: exact, unlike a decimal.
    pub(super) score_bits: u32,
    pub(super) key: u32,
    pub(super) video: Uuid,
}

#[derive(Serialize, Deserialize)]
struct Wire {
    vectors: Vec<String>,
    filter: Option<Value>,
    state: State,
}

impl Cursor {
    /// The cursor that leads to the first page.
    pub(super) fn first(
        app: &App,
        request: &Request,
        kind: QueryKind,
        space: &LoadedSpace,
        encoded: &Encoded,
    ) -> Result<Cursor, SearchError> {
        let rounded =
            |vector: &UnitVector| vector.values().iter().map(|value| f16::from_f32(*value)).collect();
        let halves: Vec<Vec<f16>> = match request.aggregation {
            Aggregation::Max | Aggregation::Coverage if encoded.windows.len() > 1 => {
                encoded.windows.iter().map(|(_, _, window)| rounded(window)).collect()
            }
            _ => vec![rounded(&encoded.vector)],
        };
        let vanished = || SearchError::Internal("the query's vector vanished in rounding".to_owned());
        Ok(Cursor {
            vectors: vectors(&halves, request.aggregation).ok_or_else(vanished)?,
            halves,
            filter: request.filter.clone(),
            state: State {
                space: space.space.id.clone(),
                generation: app.gallery.index().generation(),
                levels: request.levels,
                aggregation: request.aggregation,
                limit: request.limit,
                per_group: request.per_group,
                exclude: request.exclude,
                origin: encoded.origin,
                exact: request.exact,
                merge_adjacent: request.merge_adjacent,
                explain: request.explain,
                info: QueryInfo { kind, ..encoded.info.clone() },
                seen: 0,
                last: None,
            },
        })
    }

    /// The cursor after a page whose last hit is `last`, `seen` hits or groups from the start.
    pub(super) fn after(&self, last: Last, seen: usize) -> Cursor {
        Cursor { state: State { last: Some(last), seen, ..self.state.clone() }, ..self.clone() }
    }

    /// As text.
    pub fn encode(&self) -> Result<String, SearchError> {
        let bytes = |row: &Vec<f16>| row.iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<u8>>();
        let wire = Wire {
            vectors: self.halves.iter().map(|row| URL_SAFE_NO_PAD.encode(bytes(row))).collect(),
            filter: self.filter.as_ref().map(|filter| filter.to_json().clone()),
            state: self.state.clone(),
        };
        let json = serde_json::to_vec(&wire).map_err(|error| SearchError::Internal(error.to_string()))?;
        Ok(URL_SAFE_NO_PAD.encode([&checksum(&json)[..], &json].concat()))
    }

    /// From text; whatever a client may have made of it. The checksum tells damage from a cursor; it is no
    /// secret, so nothing that is carried is trusted.
    ///
    /// # Errors
    /// [`SearchError::Invalid`] at `/cursor`.
    pub fn decode(text: &str) -> Result<Cursor, SearchError> {
        let wrong = || SearchError::invalid("/cursor", "this is not a cursor of this service");
        let bytes = URL_SAFE_NO_PAD.decode(text).map_err(|_| wrong())?;
        let (sum, json) = bytes.split_first_chunk::<CHECKSUM_BYTES>().ok_or_else(wrong)?;
        if *sum != checksum(json) {
            return Err(wrong());
        }
        let wire: Wire = serde_json::from_slice(json).map_err(|_| wrong())?;
        let row = |text: &String| {
            let bytes = URL_SAFE_NO_PAD.decode(text).map_err(|_| wrong())?;
            Ok(bytes.chunks_exact(2).map(|pair| f16::from_le_bytes([pair[0], pair[1]])).collect())
        };
        let halves = wire.vectors.iter().map(row).collect::<Result<Vec<Vec<f16>>, SearchError>>()?;
        let vectors = vectors(&halves, wire.state.aggregation).ok_or_else(wrong)?;
        let filter = wire.filter.as_ref().map(Filter::parse).transpose().map_err(|_| wrong())?;
        if wire.state.is_within_bounds() {
            Ok(Cursor { halves, vectors, filter, state: wire.state })
        } else {
            Err(wrong())
        }
    }

    /// The space it belongs to.
    ///
    /// # Errors
    /// [`SearchError::CursorGone`] if the space or the generation is gone.
    pub(super) fn space(&self, app: &App) -> Result<Arc<LoadedSpace>, SearchError> {
        let space = app.spaces.named(&self.state.space).ok_or(SearchError::CursorGone)?;
        let same = self.state.generation == app.gallery.index().generation()
            && self.vectors.windows().iter().all(|window| window.values().len() == space.space.dim);
        if same { Ok(Arc::clone(space)) } else { Err(SearchError::CursorGone) }
    }

    /// What the query was made of.
    pub(super) fn info(&self) -> QueryInfo {
        self.state.info.clone()
    }
}

impl State {
    fn is_within_bounds(&self) -> bool {
        let limits = 1..=super::MAX_LIMIT;
        limits.contains(&self.limit)
            && self.per_group.is_none_or(|it| limits.contains(&it))
            // Span keys are u32: no ranking is longer.
            && u32::try_from(self.seen).is_ok()
    }
}

fn checksum(json: &[u8]) -> [u8; CHECKSUM_BYTES] {
    let digest = Sha256::digest(json);
    std::array::from_fn(|index| digest[index])
}

/// The vectors that all pages search with.
fn vectors(halves: &[Vec<f16>], aggregation: Aggregation) -> Option<QueryVectors> {
    let unit = |row: &Vec<f16>| {
        let values: Vec<f32> = row.iter().map(|value| value.to_f32()).collect();
        UnitVector::from_raw(&values).map(|(vector, _)| vector)
    };
    QueryVectors::new(halves.iter().map(unit).collect::<Option<Vec<_>>>()?, aggregation)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::search::Weights;

    fn cursor(values: &[f32], seen: usize) -> Cursor {
        let row: Vec<f16> = values.iter().map(|value| f16::from_f32(*value)).collect();
        let halves = vec![row.clone(), row.iter().map(|value| -*value).collect()];
        let info = QueryInfo { kind: QueryKind::Text, windows: 1, ..QueryInfo::of_clip(0) };
        let last = Last { score_bits: 0.25_f32.to_bits(), key: 7, video: Uuid::nil() };
        Cursor {
            vectors: vectors(&halves, Aggregation::Max).unwrap(),
            halves,
            filter: Some(Filter::parse(&serde_json::json!({"field": "title", "eq": "a"})).unwrap()),
            state: State {
                space: "tiny".to_owned(),
                generation: 3,
                levels: Levels::Clip,
                aggregation: Aggregation::Max,
                limit: 20,
                per_group: None,
                exclude: Exclude { itself: true, same_video: false },
                origin: None,
                exact: false,
                merge_adjacent: false,
                explain: false,
                info: QueryInfo { weights: Weights { visual: 1.0 }, ..info },
                seen,
                last: Some(last),
            },
        }
    }

    /// Decodes what `change` makes of the bytes of a good cursor.
    #[track_caller]
    fn check(change: impl Fn(&mut Vec<u8>), expected: bool) {
        let mut bytes = URL_SAFE_NO_PAD.decode(cursor(&[0.6, 0.8], 20).encode().unwrap()).unwrap();
        change(&mut bytes);
        assert_eq!(Cursor::decode(&URL_SAFE_NO_PAD.encode(&bytes)).is_ok(), expected);
    }

    #[test]
    fn a_cursor_comes_back_bit_by_bit() {
        let sent = cursor(&[0.1, -0.2, 0.3], 40);
        let back = Cursor::decode(&sent.encode().unwrap()).unwrap();
        assert_eq!((back.halves, back.state), (sent.halves, sent.state));
        assert_eq!(back.vectors, sent.vectors);
        assert_eq!(back.filter.map(|it| it.to_json().clone()), sent.filter.map(|it| it.to_json().clone()));
    }

    #[test]
    fn a_changed_cursor_is_refused_wherever_it_was_changed() {
        let length = URL_SAFE_NO_PAD.decode(cursor(&[0.6, 0.8], 20).encode().unwrap()).unwrap().len();
        check(|_| (), true);
        for place in 0..length {
            check(|bytes| bytes[place] ^= 1, false);
            check(|bytes| bytes.truncate(place), false);
        }
    }

    #[test]
    fn a_forged_checksum_does_not_lift_the_bounds() {
        assert!(Cursor::decode(&cursor(&[1.0], usize::MAX).encode().unwrap()).is_err());
        assert!(Cursor::decode("").is_err());
        assert!(Cursor::decode("%%%").is_err());
    }
}
