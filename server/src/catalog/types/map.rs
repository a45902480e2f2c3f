//! Maps: spans as points in the plane.

use uuid::Uuid;

use crate::terms::{Collection, SpanKey};

/// A span's place in the plane, -1 to 1 on each axis.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MapPoint {
    /// The span.
    pub key: SpanKey,
    /// To the right.
    pub x: f32,
    /// Upwards.
    pub y: f32,
}

/// A map to store.
#[derive(Debug, Clone, PartialEq)]
pub struct NewMap {
    /// Its space and level.
    pub of: Collection,
    /// The newest change of vectors that it contains.
    pub seq: i64,
    /// Number of spans that were laid out. The others were placed between them.
    pub anchors: i64,
    /// Every span, in order of key.
    pub points: Vec<MapPoint>,
}

/// The state of a map.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MapState {
    /// Time of its making, in Unix milliseconds. `None`: it is not made yet.
    pub made_at_ms: Option<i64>,
    /// Whether a job will make it, or make it anew.
    pub is_waited_for: bool,
    /// Why it could not be made anew. A new job is queued after a while.
    pub trouble: Option<String>,
}

/// A span on a map.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PlacedSpan {
    /// The span's id.
    pub id: Uuid,
    /// Its video.
    pub video: Uuid,
    /// First millisecond, inclusive.
    pub start_ms: i64,
    /// End, exclusive, in milliseconds.
    pub end_ms: i64,
    /// Its place.
    pub point: MapPoint,
}

/// A page of a map.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct MapPage {
    /// Spans in order of id. Those that are not on the map yet are left out.
    pub spans: Vec<PlacedSpan>,
    /// Where the next page begins: after this span. `None` on the last one.
    pub next: Option<Uuid>,
}
