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
    /// `None`: nothing that is seen is looked for.
    pub(super) vectors: Option<QueryVectors>,
    /// What is said is searched for this.
    pub(super) said: Option<SaidQuery>,
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
    /// Whether what is said is part of the ranking: settled with the first page.
    pub(super) fused: bool,
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
    said: Option<SaidWire>,
    filter: Option<Value>,
    state: State,
}

/// A text that is searched for in what is said.
#[derive(Debug, Clone)]
pub(super) struct SaidQuery {
    pub(super) text: String,
    /// Its meaning, in the space of passages; with the space's id.
    pub(super) meaning: Option<(String, QueryVectors)>,
    halves: Vec<Vec<f16>>,
}

#[derive(Serialize, Deserialize)]
struct SaidWire {
    text: String,
    space: Option<String>,
    vectors: Vec<String>,
}

impl SaidQuery {
    /// `meaning`: a space's id, and the windows of the text in it.
    pub(super) fn new(text: &str, meaning: Option<(String, Vec<UnitVector>)>) -> Option<SaidQuery> {
        let halves: Vec<Vec<f16>> =
            meaning.iter().flat_map(|(_, windows)| windows.iter().map(rounded)).collect();
        SaidQuery::of(text.to_owned(), meaning.map(|(space, _)| space), halves)
    }

    fn of(text: String, space: Option<String>, halves: Vec<Vec<f16>>) -> Option<SaidQuery> {
        let meaning = match space {
            Some(space) => Some((space, vectors(&halves, Aggregation::default())?)),
            None => None,
        };
        Some(SaidQuery { text, meaning, halves })
    }

    fn to_wire(&self) -> SaidWire {
        let space = self.meaning.as_ref().map(|(space, _)| space.clone());
        SaidWire {
            text: self.text.clone(),
            space,
            vectors: self.halves.iter().map(|row| to_text(row)).collect(),
        }
    }
}

impl Cursor {
    /// The cursor that leads to the first page; `encoded` is there if anything that is seen is looked for.
    pub(super) fn first(
        app: &App,
        request: &Request,
        kind: QueryKind,
        space: &LoadedSpace,
        (encoded, said): (Option<&Encoded>, Option<SaidQuery>),
    ) -> Result<Cursor, SearchError> {
        let halves: Vec<Vec<f16>> = match (encoded, request.aggregation) {
            (None, _) => Vec::new(),
            (Some(encoded), Aggregation::Max | Aggregation::Coverage) if encoded.windows.len() > 1 => {
                encoded.windows.iter().map(|(_, _, window)| rounded(window)).collect()
            }
            (Some(encoded), _) => vec![rounded(&encoded.vector)],
        };
        let vectors = vectors(&halves, request.aggregation);
        if encoded.is_some() && vectors.is_none() {
            return Err(SearchError::Internal("the query's vector vanished in rounding".to_owned()));
        }
        let info = encoded.map_or_else(|| QueryInfo::of_clip(0), |encoded| encoded.info.clone());
        Ok(Cursor {
            vectors,
            said,
            halves,
            filter: request.filter.clone(),
            state: State {
                space: space.space.id.clone(),
                generation: app.gallery.index().generation(),
                levels: request.levels,
                aggregation: request.aggregation,
                fused: false,
                limit: request.limit,
                per_group: request.per_group,
                exclude: request.exclude,
                origin: encoded.and_then(|encoded| encoded.origin),
                exact: request.exact,
                merge_adjacent: request.merge_adjacent,
                explain: request.explain,
                info: QueryInfo { kind, ..info },
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
        let wire = Wire {
            vectors: self.halves.iter().map(|row| to_text(row)).collect(),
            said: self.said.as_ref().map(SaidQuery::to_wire),
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
        let rows = |rows: &[String]| rows.iter().map(from_text).collect::<Option<Vec<_>>>().ok_or_else(wrong);
        let halves = rows(&wire.vectors)?;
        let vectors = vectors(&halves, wire.state.aggregation);
        let said = match wire.said {
            Some(said) => {
                let halves = rows(&said.vectors)?;
                Some(SaidQuery::of(said.text, said.space, halves).ok_or_else(wrong)?)
            }
            None => None,
        };
        if vectors.is_none() && (!halves.is_empty() || said.is_none()) {
            return Err(wrong());
        }
        let filter = wire.filter.as_ref().map(Filter::parse).transpose().map_err(|_| wrong())?;
        if wire.state.is_within_bounds() {
            Ok(Cursor { halves, vectors, said, filter, state: wire.state })
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
            && self
                .vectors
                .iter()
                .flat_map(QueryVectors::windows)
                .all(|it| it.values().len() == space.space.dim);
        if same { Ok(space) } else { Err(SearchError::CursorGone) }
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

fn rounded(vector: &UnitVector) -> Vec<f16> {
    vector.values().iter().map(|value| f16::from_f32(*value)).collect()
}

fn to_text(row: &[f16]) -> String {
    URL_SAFE_NO_PAD.encode(row.iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<u8>>())
}

fn from_text(text: &String) -> Option<Vec<f16>> {
    let bytes = URL_SAFE_NO_PAD.decode(text).ok()?;
    Some(bytes.chunks_exact(2).map(|pair| f16::from_le_bytes([pair[0], pair[1]])).collect())
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
            vectors: Some(vectors(&halves, Aggregation::Max).unwrap()),
            said: SaidQuery::new("bias", None),
            halves,
            filter: Some(Filter::parse(&serde_json::json!({"field": "title", "eq": "a"})).unwrap()),
            state: State {
                space: "tiny".to_owned(),
                generation: 3,
                levels: Levels::Clip,
                aggregation: Aggregation::Max,
                fused: true,
                limit: 20,
                per_group: None,
                exclude: Exclude { itself: true, same_video: false },
                origin: None,
                exact: false,
                merge_adjacent: false,
                explain: false,
                info: QueryInfo { weights: Weights { visual: Some(1.0), spoken: None }, ..info },
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
