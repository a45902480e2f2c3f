//! The scores of every frame as CSV, for choosing a threshold.

use std::collections::BTreeSet;
use std::path::Path;

use reprise_encoders::video::segment::scores::WHOLE;
use reprise_encoders::video::segment::{DetectorSettings, FrameScores};

const HEADER: [&str; 11] = [
    "frame",
    "seconds",
    "score",
    "hue",
    "saturation",
    "value",
    "edges",
    "brightness",
    "moving",
    "settled",
    "cut",
];

/// Writes one line per frame. `score` is the value that the detector compares with its threshold; `moving` and
/// `settled` are shares of the picture; `cut` is 1 at the detector's cuts.
///
/// # Errors
/// The file can't be written.
pub(crate) fn write(
    path: &Path,
    scores: &[FrameScores],
    detector: &DetectorSettings,
    cuts: &[(u64, i64)],
) -> anyhow::Result<()> {
    let cuts: BTreeSet<u64> = cuts.iter().map(|cut| cut.0).collect();
    let mut csv = csv::Writer::from_path(path)?;
    csv.write_record(HEADER)?;
    for (frame, it) in scores.iter().enumerate() {
        let share = |parts: u16| format!("{:.4}", f64::from(parts) / f64::from(WHOLE));
        csv.write_record([
            frame.to_string(),
            format!("{:.3}", it.time_ms as f64 / 1000.0),
            format!("{:.4}", detector.score(it).0),
            format!("{:.4}", it.hue),
            format!("{:.4}", it.saturation),
            format!("{:.4}", it.value),
            it.edges.map(|edges| format!("{edges:.4}")).unwrap_or_default(),
            format!("{:.4}", it.brightness),
            share(it.moving),
            share(it.settled.map_or(0, |settled| settled.area)),
            u8::from(cuts.contains(&(frame as u64))).to_string(),
        ])?;
    }
    csv.flush()?;
    Ok(())
}
