//! Spaces, their vectors, and the changes that an index follows.

use crate::terms::{Level, QueryKind, SpaceInfo, SpanKey, UnitVector, VideoNumber};

/// A space to register.
#[derive(Debug, Clone, PartialEq)]
pub struct NewSpace {
    /// 64 hex digits.
    pub id: String,
    /// Readable name.
    pub name: String,
    /// The model as the user named it.
    pub model: String,
    /// Values per vector.
    pub dim: usize,
}

/// A registered space.
#[derive(Debug, Clone, PartialEq)]
pub struct SpaceRow {
    /// Dense number, used in the index.
    pub key: u32,
    /// The rest.
    pub space: NewSpace,
    /// Vectors stored in it.
    pub vectors: i64,
    /// Whether its model was added to a running server: then it is loaded at each start.
    pub added: bool,
}

impl SpaceRow {
    /// What the index must know of it.
    pub fn expectation(&self) -> SpaceInfo {
        SpaceInfo { key: self.key, id: self.space.id.clone(), dim: self.space.dim }
    }
}

/// A kind of query that was moved to a space while a server ran.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Activation {
    /// The kind.
    pub kind: QueryKind,
    /// The key of the space that answers it.
    pub space: u32,
    /// The id of the space that the command line named for the kind then: while it names the same, this holds.
    pub named: Option<String>,
}

/// A vector as stored.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredVector {
    /// Its span.
    pub span: SpanKey,
    /// The span's level.
    pub level: Level,
    /// The span's video.
    pub video: VideoNumber,
    /// The direction.
    pub unit: UnitVector,
}

/// One insert or delete of a vector.
#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    /// Its place in the order of changes.
    pub seq: i64,
    /// The span.
    pub span: SpanKey,
    /// The space.
    pub space: u32,
    /// The span's level.
    pub level: Level,
    /// The vector if it was inserted and is still there; `None`: it is to be removed (deleted now, or by a
    /// later change).
    pub vector: Option<StoredVector>,
}

/// A vector to store.
#[derive(Debug, Clone, PartialEq)]
pub struct NewVector {
    /// Its span.
    pub span: SpanKey,
    /// Its space.
    pub space: u32,
    /// The direction.
    pub unit: UnitVector,
    /// Length of the raw vector.
    pub norm: f32,
}
