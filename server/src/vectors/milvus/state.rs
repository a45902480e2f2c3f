//! The state of the engine, in a collection of its own: whose vectors Milvus holds, how new they are, and the spaces.
//!
//! Milvus has no transactions. The state is written after the vectors, so vectors may be newer than the state, never
//! older. Each writer's lease has a row of its own, and the highest lease counts. So a writer whose lease has ended does
//! not overwrite the seq of its successor.

use std::collections::BTreeMap;

use milvus::v2::prelude::{CollectionSchema, DataType, FieldData, FieldSchema, QueryResults};

use super::client::{Client, ROWS, UNIT, numbers, odd};
use super::rows::among;
use crate::terms::SpaceInfo;
use crate::vectors::EngineError;

/// The collection of the state. Its name is the same for all libraries, so a second library finds the first one's.
pub(super) const NAME: &str = "reprise_state";
/// The format of the collections.
const FORMAT: i64 = 1;
/// The longest public id of a space, in bytes.
const LONGEST_NAME: u32 = 4_096;

/// Number of a row: 0 for the library, above for spaces, below for leases.
const SLOT: &str = "slot";
/// The library's id, or a space's public id.
const OWNER: &str = "owner";
/// [`FORMAT`], or the values of a space's vectors. Never negative.
const SHAPE: &str = "shape";
const SEQ: &str = "seq";
const FENCE: &str = "fence";

/// What Milvus holds.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct State {
    /// The library's id; empty in an empty Milvus.
    pub(super) library: String,
    /// The newest change of the catalog.
    pub(super) seq: i64,
    /// The highest fencing number.
    pub(super) fence: u64,
    /// Slots of lower fencing numbers.
    pub(super) ended: Vec<i64>,
    pub(super) spaces: BTreeMap<u32, SpaceInfo>,
}

/// A row of the collection.
#[derive(Default)]
struct Row<'a> {
    slot: i64,
    owner: &'a str,
    shape: i64,
    seq: i64,
    fence: i64,
}

/// Creates the collection. A second call changes nothing.
pub(super) async fn create(client: &Client) -> Result<(), EngineError> {
    let number = |name| FieldSchema::new().name(name).data_type(DataType::Int64);
    let schema = CollectionSchema::new()
        .add_field(number(SLOT).primary_key(true))
        .add_field(FieldSchema::new().name(OWNER).data_type(DataType::VarChar).max_length(LONGEST_NAME))
        .add_field(number(SHAPE))
        .add_field(number(SEQ))
        .add_field(number(FENCE))
        // Milvus wants a vector in every collection.
        .add_field(FieldSchema::new().name(UNIT).data_type(DataType::FloatVector).dimension(2));
    client.create(NAME, schema).await
}

/// Reads the state.
pub(super) async fn read(client: &Client) -> Result<State, EngineError> {
    let fields = [SLOT, OWNER, SHAPE, SEQ, FENCE];
    let found = client.query(NAME, "shape >= 0", &fields, Some(ROWS)).await?.ok_or_else(lost)?;
    let [slots, shapes, seqs, fences] = [SLOT, SHAPE, SEQ, FENCE].map(|name| numbers(&found, name));
    let (slots, shapes, seqs, fences) = (slots?, shapes?, seqs?, fences?);
    let mut state = State::default();
    let mut leases = Vec::new();
    for (row, owner) in texts(&found, OWNER)?.iter().enumerate() {
        let at = |column: &[i64]| column.get(row).copied().ok_or_else(|| odd("columns of unequal length"));
        let (slot, shape) = (at(slots)?, at(shapes)?);
        match slot {
            0 => {
                check_format(shape)?;
                state.library.clone_from(owner);
            }
            ..0 => leases.push((at(fences)?, at(seqs)?, slot)),
            1.. => {
                let key = u32::try_from(slot - 1).map_err(|error| EngineError::Failed(Box::new(error)))?;
                let space = SpaceInfo { key, id: owner.clone(), dim: shape.max(0) as usize };
                state.spaces.insert(key, space);
            }
        }
    }
    leases.sort_unstable();
    if let Some((fence, seq, _)) = leases.pop() {
        state.fence = fence.max(0) as u64;
        state.seq = seq;
    }
    state.ended = leases.iter().map(|(_, _, slot)| *slot).collect();
    Ok(state)
}

/// Makes this library the owner.
pub(super) async fn own(client: &Client, library: &str) -> Result<(), EngineError> {
    put(client, Row { owner: library, shape: FORMAT, ..Row::default() }).await
}

/// Writes the seq and the fencing number, and removes those of ended leases.
pub(super) async fn write(client: &Client, state: &State) -> Result<(), EngineError> {
    let fence = i64::try_from(state.fence).unwrap_or(i64::MAX);
    put(client, Row { slot: lease(state.fence), seq: state.seq, fence, ..Row::default() }).await?;
    match state.ended.is_empty() {
        true => Ok(()),
        false => remove(client, &state.ended).await,
    }
}

/// Writes the declaration of a space.
pub(super) async fn declare(client: &Client, space: &SpaceInfo) -> Result<(), EngineError> {
    let (slot, shape) = (slot(space.key), space.dim as i64);
    put(client, Row { slot, owner: &space.id, shape, ..Row::default() }).await
}

/// Removes the declaration of a space.
pub(super) async fn withdraw(client: &Client, space: u32) -> Result<(), EngineError> {
    remove(client, &[slot(space)]).await
}

async fn remove(client: &Client, slots: &[i64]) -> Result<(), EngineError> {
    client.delete(NAME, among(SLOT, slots.iter().copied())).await
}

/// The slot of a fencing number.
pub(super) fn lease(fence: u64) -> i64 {
    -1 - i64::try_from(fence).unwrap_or(i64::MAX)
}

fn slot(space: u32) -> i64 {
    i64::from(space) + 1
}

fn check_format(found: i64) -> Result<(), EngineError> {
    if found == FORMAT {
        return Ok(());
    }
    let what =
        format!("format {found} instead of {FORMAT}: drop the collections reprise_* or use another database");
    Err(EngineError::Unusable(format!("Milvus holds vectors in {what}")))
}

fn lost() -> EngineError {
    EngineError::Unusable(format!(
        "the collection {NAME} has vanished from Milvus: restart to fill Milvus again"
    ))
}

async fn put(client: &Client, row: Row<'_>) -> Result<(), EngineError> {
    let columns = vec![
        FieldData::int64(SLOT, vec![row.slot]),
        FieldData::varchar(OWNER, vec![row.owner.to_owned()]),
        FieldData::int64(SHAPE, vec![row.shape]),
        FieldData::int64(SEQ, vec![row.seq]),
        FieldData::int64(FENCE, vec![row.fence]),
        FieldData::float_vector(UNIT, vec![vec![1.0, 0.0]]),
    ];
    client.upsert(NAME, columns).await?.ok_or_else(lost)
}

fn texts<'a>(found: &'a QueryResults, name: &str) -> Result<&'a [String], EngineError> {
    match found.get_output_field(name) {
        Some(FieldData::VarChar { values, .. }) => Ok(values),
        None if found.is_empty() => Ok(&[]),
        _ => Err(odd("rows without a column")),
    }
}
