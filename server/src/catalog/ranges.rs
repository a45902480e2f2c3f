//! Checks of ranges that a caller names.

use std::collections::HashMap;

use uuid::Uuid;

use super::database::{Tx, values};
use super::error::{CatalogError, RangeFault};
use super::types::ReelRange;

/// Checks that the caller sees the videos, and that each range begins before its video's end.
///
/// # Errors
/// [`CatalogError::Range`] for the first wrong one.
pub(super) async fn check(tx: &mut Tx, ranges: &[ReelRange]) -> Result<(), CatalogError> {
    // The length of each video; `None` while it is not known.
    let mut lengths: HashMap<Uuid, Option<i64>> = HashMap::new();
    for (place, range) in ranges.iter().enumerate() {
        let fault = |fault| CatalogError::Range { place, fault };
        let length = match lengths.get(&range.video) {
            Some(length) => *length,
            None => {
                let sql = "SELECT v.duration_ms FROM visible_videos v WHERE v.id = $1";
                let row = tx.visible_row(sql, values![range.video]).await?;
                let row = row.ok_or_else(|| fault(RangeFault::NoVideo(range.video)))?;
                let length = row.get("duration_ms")?;
                lengths.insert(range.video, length);
                length
            }
        };
        if length.is_some_and(|length| range.start_ms >= length) {
            return Err(fault(RangeFault::AfterEnd));
        }
    }
    Ok(())
}
