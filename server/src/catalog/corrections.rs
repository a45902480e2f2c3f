//! Lines of tracks that somebody corrects, one at a time.

use uuid::Uuid;

use super::cues::{self, Ledger};
use super::database::values;
use super::error::CatalogError;
use super::tables::{tracks, videos};
use super::types::*;
use super::view::View;
use crate::subtitles::words::words;

/// Follows the provenance of a track that somebody has corrected.
const CORRECTED: &str = ", corrected";

/// The line `$1` of the video `$2`, which a join may narrow.
macro_rules! found {
    ($join:literal) => {
        concat!(
            "SELECT c.track, c.place, c.words, c.start_ms, c.end_ms, c.text, c.box_left, c.box_top, c.box_width, \
             c.box_height, t.kind, t.language, t.provenance, t.machine FROM cues c JOIN tracks t ON t.key = c.track ",
            $join,
            " WHERE c.id = $1 AND t.video = $2"
        )
    };
}

impl View<'_> {
    /// A line of a video; `None` if it has no such line.
    pub async fn line(&self, video: Uuid, line: Uuid) -> Result<Option<Cue>, CatalogError> {
        let sql = found!("JOIN visible_videos v ON v.id = t.video");
        let Some(row) = self.row(sql, values![line, video]).await? else { return Ok(None) };
        let (track, region) = (tracks::from_row(&row)?, tracks::region(&row)?);
        Ok(Some(Cue { id: line, track, line: tracks::line(&row)?, region }))
    }

    /// Replaces the text of a line, and returns the line; it keeps its id, its times and its place. Its track counts as a person's
    /// from then on. `None` if the video has no such line.
    ///
    /// # Errors
    /// [`CatalogError::Stale`] if the line has another text than the change expects.
    pub async fn correct_line(
        &self,
        video: Uuid,
        line: Uuid,
        change: &LineChange,
    ) -> Result<Option<Cue>, CatalogError> {
        let text = change.text.as_str();
        let mut tx = self.begin().await?;
        if !videos::lock(&mut tx, video).await? {
            return Ok(None);
        }
        let Some(row) = tx.row(found!(""), values![line, video]).await? else { return Ok(None) };
        let (track, before): (i64, Track) = (row.get("track")?, tracks::from_row(&row)?);
        let (place, times): (i64, Line) = (row.get("place")?, tracks::line(&row)?);
        let region = tracks::region(&row)?;
        if change.expected.as_ref().is_some_and(|expected| *expected != times.text) {
            return Err(CatalogError::Stale);
        }
        let folded = words(text).join(" ");
        let mut ledger = Ledger::default();
        ledger.count(&row.get::<String>("words")?, -1);
        ledger.count(&folded, 1);
        // The index of words follows lines that come and go.
        tx.execute("DELETE FROM cues WHERE id = $1", values![line]).await?;
        let sql = "INSERT INTO cues (id, track, place, start_ms, end_ms, text, words, box_left, box_top, \
                   box_width, box_height) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)";
        let mut of_line = values![line, track, place, times.start_ms, times.end_ms, text, folded];
        of_line.extend(cues::sides(region));
        tx.execute(sql, of_line).await?;
        let now = corrected(before);
        let sql = "UPDATE tracks SET machine = $2, provenance = $3 WHERE key = $1";
        tx.execute(sql, values![track, now.is_machine, now.provenance.as_str()]).await?;
        ledger.forget_passages(&mut tx, track).await?;
        ledger.apply(&mut tx, video).await?;
        tx.commit().await?;
        Ok(Some(Cue { id: line, track: now, line: Line { text: text.to_owned(), ..times }, region }))
    }
}

/// The track as a person's.
fn corrected(track: Track) -> Track {
    let source = track.provenance.trim_end_matches(CORRECTED);
    Track { provenance: format!("{source}{CORRECTED}"), is_machine: false, ..track }
}
