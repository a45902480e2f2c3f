//! The rows of one collection: a key, its video and its vector each.

use std::ops::Range;

use milvus::v2::prelude::{CollectionSchema, DataType, FieldData, FieldSchema};

use super::client::{ANSWER_BYTES, Client, ROWS, UNIT, numbers, odd};
use crate::terms::{Collection, KeySet, Level, SpanKey, UnitVector, VideoNumber, cosine};
use crate::vectors::{EngineError, Put, Scored};

pub(super) const KEY: &str = "key";
pub(super) const VIDEO: &str = "video";
/// Most keys in one filter.
pub(super) const LISTED: usize = 10_000;
/// Most bytes of vectors in one request; Milvus accepts 64 MiB.
pub(super) const REQUEST_BYTES: usize = 8 << 20;

/// Names the collections of one library.
#[derive(Debug, Clone)]
pub(super) struct Names(String);

impl Names {
    /// The last digits are the random ones: ids made in the same minute begin alike.
    pub(super) fn of(library: uuid::Uuid) -> Names {
        let digits = library.simple().to_string();
        Names(format!("reprise_{}_", &digits[digits.len() - 12..]))
    }

    pub(super) fn name(&self, at: Collection) -> String {
        format!("{}{}_{}", self.0, at.space, level_name(at.level))
    }
}

fn level_name(level: Level) -> &'static str {
    match level {
        Level::Video => "video",
        Level::Clip => "clip",
        Level::Moment => "moment",
        Level::Passage => "passage",
    }
}

/// Stores vectors, or replaces those of the same keys; no key twice. Creates the collection if it does not exist.
pub(super) async fn put(client: &Client, name: &str, rows: &[&Put]) -> Result<(), EngineError> {
    let values = rows.first().map_or(0, |row| row.unit.values().len());
    let most = (REQUEST_BYTES / (values * 4 + 16)).max(1);
    for rows in rows.chunks(most) {
        if client.upsert(name, columns(rows)).await?.is_some() {
            continue;
        }
        create(client, name, values).await?;
        client.upsert(name, columns(rows)).await?.ok_or_else(|| odd("no collection after it was created"))?;
    }
    Ok(())
}

fn columns(rows: &[&Put]) -> Vec<FieldData> {
    vec![
        FieldData::int64(KEY, rows.iter().map(|row| id(row.key)).collect()),
        FieldData::int64(VIDEO, rows.iter().map(|row| video_id(row.video)).collect()),
        FieldData::float_vector(UNIT, rows.iter().map(|row| row.unit.values().to_vec()).collect()),
    ]
}

async fn create(client: &Client, name: &str, values: usize) -> Result<(), EngineError> {
    let number = |name| FieldSchema::new().name(name).data_type(DataType::Int64);
    let unit = FieldSchema::new().name(UNIT).data_type(DataType::FloatVector).dimension(values as u32);
    let key = number(KEY).primary_key(true);
    let schema = CollectionSchema::new().add_field(key).add_field(number(VIDEO)).add_field(unit);
    client.create(name, schema).await
}

/// Removes keys.
pub(super) async fn remove(client: &Client, name: &str, keys: &[SpanKey]) -> Result<(), EngineError> {
    for keys in keys.chunks(LISTED) {
        client.delete(name, listed(keys)).await?;
    }
    Ok(())
}

/// The cosines of exactly these keys with each query, in order of key; none without a query.
pub(super) async fn scores(
    client: &Client,
    name: &str,
    keys: &[SpanKey],
    queries: &[UnitVector],
) -> Result<Vec<Scored>, EngineError> {
    let Some(query) = queries.first() else { return Ok(Vec::new()) };
    let values = query.values().len();
    let most = (ANSWER_BYTES / (values * 4 + 32)).clamp(1, LISTED);
    let mut all = Vec::new();
    for keys in keys.chunks(most) {
        let Some(found) = client.query(name, &listed(keys), &[KEY, UNIT], None).await? else { break };
        let ids = numbers(&found, KEY)?;
        let units = match found.get_output_field(UNIT) {
            Some(FieldData::FloatVector { values, .. }) => values.as_slice(),
            None if ids.is_empty() => &[],
            _ => return Err(odd("rows without vectors")),
        };
        all.extend(ids.iter().zip(units).map(|(&id, unit)| Scored {
            key: key(id),
            cosines: queries.iter().map(|query| cosine(query.values(), unit)).collect(),
        }));
    }
    all.sort_by_key(|scored| scored.key);
    // Milvus may return a row twice while it is replaced.
    all.dedup_by_key(|scored| scored.key);
    Ok(all)
}

/// The keys in a range.
pub(super) async fn keys(client: &Client, name: &str, range: Range<SpanKey>) -> Result<KeySet, EngineError> {
    let mut all = KeySet::new();
    let (mut from, to) = (id(range.start), id(range.end));
    while from < to {
        let filter = format!("{KEY} >= {from} and {KEY} < {to}");
        let Some(found) = client.query(name, &filter, &[KEY], Some(ROWS)).await? else { break };
        let ids = numbers(&found, KEY)?;
        all.extend(ids.iter().map(|&id| key(id)));
        match ids.iter().max() {
            Some(last) if ids.len() >= ROWS => from = last.saturating_add(1),
            _ => break,
        }
    }
    Ok(all)
}

/// The filter for exactly these keys.
pub(super) fn listed(keys: &[SpanKey]) -> String {
    among(KEY, keys.iter().map(|key| id(*key)))
}

/// The filter for exactly these videos.
pub(super) fn of_videos(videos: &[VideoNumber]) -> String {
    among(VIDEO, videos.iter().map(|video| video_id(*video)))
}

/// The filter for exactly these numbers in a field.
pub(super) fn among(field: &str, numbers: impl Iterator<Item = i64>) -> String {
    let numbers: Vec<String> = numbers.map(|number| number.to_string()).collect();
    format!("{field} in [{}]", numbers.join(","))
}

/// Milvus has signed keys. Numbers of the catalog are below 2^63; only the ends of ranges lie above.
fn id(key: SpanKey) -> i64 {
    i64::try_from(key.number()).unwrap_or(i64::MAX)
}

fn video_id(video: VideoNumber) -> i64 {
    i64::try_from(video.number()).unwrap_or(i64::MAX)
}

pub(super) fn key(id: i64) -> SpanKey {
    SpanKey::new(id.max(0) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_the_random_digits_of_its_library() {
        let names = Names::of(uuid::Uuid::from_u128(0x0123_4567_89ab_cdef_0123_4567_89ab_cdef));
        assert_eq!(names.name(Collection { space: 3, level: Level::Clip }), "reprise_456789abcdef_3_clip");
    }

    #[test]
    fn a_filter_lists_numbers() {
        assert_eq!(listed(&[SpanKey::new(7), SpanKey::new(1 << 40)]), "key in [7,1099511627776]");
        assert_eq!(of_videos(&[VideoNumber::new(2)]), "video in [2]");
    }
}
