//! Rows of `tracks` and `cues`: reading.

use super::stored::named;
use crate::catalog::database::Row;
use crate::catalog::error::CatalogError;
use crate::catalog::types::*;

pub(in crate::catalog) fn from_row(row: &Row) -> Result<Track, CatalogError> {
    let (kind, language, provenance) = (cue_kind(row)?, row.get("language")?, row.get("provenance")?);
    Ok(Track { kind, language, provenance, is_machine: row.get("machine")? })
}

fn cue_kind(row: &Row) -> Result<CueKind, CatalogError> {
    let names = [CueKind::Speech, CueKind::Caption, CueKind::Ocr].map(|kind| (kind, cue_kind_name(kind)));
    named(&row.get::<String>("kind")?, &names)
}

pub(in crate::catalog) fn cue_kind_name(kind: CueKind) -> &'static str {
    match kind {
        CueKind::Speech => "speech",
        CueKind::Caption => "caption",
        CueKind::Ocr => "ocr",
    }
}

/// Where the line of a row with the columns `box_…` stands.
pub(in crate::catalog) fn region(row: &Row) -> Result<Option<CueBox>, CatalogError> {
    let [left, top, width, height]: [Option<f64>; 4] =
        [row.get("box_left")?, row.get("box_top")?, row.get("box_width")?, row.get("box_height")?];
    let sides = left.zip(top).zip(width.zip(height));
    Ok(sides.map(|((left, top), (width, height))| CueBox { left, top, width, height }))
}

pub(in crate::catalog) fn line(row: &Row) -> Result<Line, CatalogError> {
    Ok(Line { start_ms: row.get("start_ms")?, end_ms: row.get("end_ms")?, text: row.get("text")? })
}
