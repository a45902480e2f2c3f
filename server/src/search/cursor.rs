//! What a next page needs to know, carried by the client: the query vector as f16, filter, generation, and
//! how far the pages before went.

use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use half::f16;
use reprise_index::UnitVector;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

use super::{Encoded, Exclude, Levels, Origin, QueryInfo, Request, SearchError};
use crate::app::App;
use crate::catalog::Filter;
use crate::config::QueryKind;
use crate::spaces::LoadedSpace;

/// A search between two pages. The vector was rounded to f16 before the first page, so all pages score alike.
#[derive(Debug, Clone)]
pub struct Cursor {
    /// As carried: rounding twice would score differently.
    halves: Vec<f16>,
    pub(super) vector: UnitVector,
    pub(super) filter: Option<Filter>,
    pub(super) state: State,
}

/// Everything but vector and filter.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct State {
    pub(super) space: String,
    pub(super) generation: u64,
    pub(super) levels: Levels,
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
    vector: String,
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
        let halves: Vec<f16> = encoded.vector.values().iter().map(|value| f16::from_f32(*value)).collect();
        let vanished = || SearchError::Internal("the query's vector vanished in rounding".to_owned());
        Ok(Cursor {
            vector: unit(&halves).ok_or_else(vanished)?,
            halves,
            filter: request.filter.clone(),
            state: State {
                space: space.space.id.clone(),
                generation: app.gallery.index().generation(),
                levels: request.levels,
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
        let bytes: Vec<u8> = self.halves.iter().flat_map(|value| value.to_le_bytes()).collect();
        let wire = Wire {
            vector: URL_SAFE_NO_PAD.encode(bytes),
            filter: self.filter.as_ref().map(|filter| filter.to_json().clone()),
            state: self.state.clone(),
        };
        let json = serde_json::to_vec(&wire).map_err(|error| SearchError::Internal(error.to_string()))?;
        Ok(URL_SAFE_NO_PAD.encode(json))
    }

    /// From text; whatever a client may have made of it.
    ///
    /// # Errors
    /// [`SearchError::Invalid`] at `/cursor`.
    pub fn decode(text: &str) -> Result<Cursor, SearchError> {
        let wrong = || SearchError::invalid("/cursor", "this is not a cursor of this service");
        let json = URL_SAFE_NO_PAD.decode(text).map_err(|_| wrong())?;
        let wire: Wire = serde_json::from_slice(&json).map_err(|_| wrong())?;
        let bytes = URL_SAFE_NO_PAD.decode(&wire.vector).map_err(|_| wrong())?;
        let halves: Vec<f16> =
            bytes.chunks_exact(2).map(|pair| f16::from_le_bytes([pair[0], pair[1]])).collect();
        let vector = unit(&halves).ok_or_else(wrong)?;
        let filter = wire.filter.as_ref().map(Filter::parse).transpose().map_err(|_| wrong())?;
        let limits_hold = (1..=super::MAX_LIMIT).contains(&wire.state.limit)
            && wire.state.per_group.is_none_or(|it| (1..=super::MAX_LIMIT).contains(&it));
        if limits_hold { Ok(Cursor { halves, vector, filter, state: wire.state }) } else { Err(wrong()) }
    }

    /// The space it belongs to.
    ///
    /// # Errors
    /// [`SearchError::CursorGone`] if the space or the generation is gone.
    pub(super) fn space(&self, app: &App) -> Result<Arc<LoadedSpace>, SearchError> {
        let space = app.spaces.named(&self.state.space).ok_or(SearchError::CursorGone)?;
        let same = self.state.generation == app.gallery.index().generation()
            && self.vector.values().len() == space.space.dim;
        if same { Ok(Arc::clone(space)) } else { Err(SearchError::CursorGone) }
    }

    /// What the query was made of.
    pub(super) fn info(&self) -> QueryInfo {
        self.state.info.clone()
    }
}

/// The vector that all pages search with.
fn unit(halves: &[f16]) -> Option<UnitVector> {
    let values: Vec<f32> = halves.iter().map(|value| value.to_f32()).collect();
    UnitVector::from_raw(&values).map(|(vector, _)| vector)
}
