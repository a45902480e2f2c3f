//! Spaces, their vectors, and the changes that an index follows.

use crate::terms::{Level, QueryKind, SpaceInfo, SpanKey, UnitVector, VideoNumber};

/// A space to register.
#[derive(Debug, Clone, PartialEq)]
pub struct NewSpace {
    /// 64 hex digits.
    pub id: String,
    /// Display name.
    pub name: String,
    /// The model name from the user.
    pub model: String,
    /// Number of values of a vector.
    pub dim: usize,
}

/// A registered space.
#[derive(Debug, Clone, PartialEq)]
pub struct SpaceRow {
    /// Consecutive number, used in the index.
    pub key: u32,
    /// Its id, names and dimension.
    pub space: NewSpace,
    /// Number of stored vectors.
    pub vectors: i64,
    /// Whether its model was added to a running server. Each start then loads the model.
    pub added: bool,
}

impl SpaceRow {
    /// The declaration for the index.
    pub fn expectation(&self) -> SpaceInfo {
        SpaceInfo { key: self.key, id: self.space.id.clone(), dim: self.space.dim }
    }
}

/// The space that answers a kind of query, chosen while a server ran.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Activation {
    /// The kind.
    pub kind: QueryKind,
    /// The key of the answering space.
    pub space: u32,
    /// The id of the space that the command line named for the kind at that time. Valid while it names the same.
    pub named: Option<String>,
}

/// A stored vector.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredVector {
    /// Its span.
    pub span: SpanKey,
    /// The span's level.
    pub level: Level,
    /// The span's video.
    pub video: VideoNumber,
    /// The unit vector.
    pub unit: UnitVector,
}

/// One insert or delete of a vector.
#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    /// Sequence number.
    pub seq: i64,
    /// The span.
    pub span: SpanKey,
    /// The space.
    pub space: u32,
    /// The span's level.
    pub level: Level,
    /// The vector to insert. `None`: remove the vector, which this or a later change deleted.
    pub vector: Option<StoredVector>,
}

/// A vector to store.
#[derive(Debug, Clone, PartialEq)]
pub struct NewVector {
    /// Its span.
    pub span: SpanKey,
    /// Its space.
    pub space: u32,
    /// The unit vector.
    pub unit: UnitVector,
    /// Norm of the raw vector.
    pub norm: f32,
}
