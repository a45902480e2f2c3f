//! Ranges of videos in requests and answers.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use super::error::ApiError;
use super::extract;
use super::search::seconds;
use crate::catalog::{LONGEST_NAME, LONGEST_NOTE, MOST_RANGES, ReelRange};

/// A time range of a video, in seconds, end exclusive.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Range)]
pub(super) struct RangeBody {
    /// Id of the video.
    video_id: Uuid,
    /// Start, in seconds, 0 to 10000000.
    #[schema(minimum = 0, maximum = 10_000_000)]
    start: f64,
    /// End, in seconds, exclusive, 0 to 10000000. May lie after the video's end.
    #[schema(minimum = 0, maximum = 10_000_000)]
    end: f64,
    /// At most 1000 characters; default none.
    #[serde(default)]
    note: String,
}

impl From<ReelRange> for RangeBody {
    fn from(range: ReelRange) -> RangeBody {
        let ReelRange { video, start_ms, end_ms, note } = range;
        RangeBody { video_id: video, start: seconds(start_ms), end: seconds(end_ms), note }
    }
}

/// Checks 1 to [`MOST_RANGES`] ranges at `/ranges` of the request.
pub(super) fn checked(ranges: Vec<RangeBody>) -> Result<Vec<ReelRange>, ApiError> {
    if !(1..=MOST_RANGES).contains(&ranges.len()) {
        return Err(ApiError::invalid("/ranges", format!("name 1 to {MOST_RANGES} ranges")));
    }
    ranges.into_iter().enumerate().map(|(place, range)| checked_one(place, range)).collect()
}

fn checked_one(place: usize, range: RangeBody) -> Result<ReelRange, ApiError> {
    let pointer = format!("/ranges/{place}");
    let (start_ms, end_ms) = extract::stretch(range.start, range.end, &pointer)?;
    if range.note.chars().count() > LONGEST_NOTE || range.note.contains('\0') {
        let detail = format!("a note has at most {LONGEST_NOTE} characters, and no NUL");
        return Err(ApiError::invalid(format!("{pointer}/note"), detail));
    }
    Ok(ReelRange { video: range.video_id, start_ms, end_ms, note: range.note })
}

/// Checks a name of 1 to [`LONGEST_NAME`] characters.
pub(super) fn checked_name(name: String, pointer: &str) -> Result<String, ApiError> {
    let is_sound = !name.trim().is_empty() && name.chars().count() <= LONGEST_NAME && !name.contains('\0');
    if is_sound {
        return Ok(name);
    }
    Err(ApiError::invalid(pointer, format!("must have 1 to {LONGEST_NAME} characters, and no NUL")))
}
