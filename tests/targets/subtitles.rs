//! SubRip and WebVTT files.

use reprise_server::subtitles::{Parsed, parse, write_vtt};

/// Cues are in order and finite, and what was read and written is read again.
pub(super) fn run(bytes: &[u8]) {
    let Ok(Parsed { lines, warnings, .. }) = parse(bytes) else { return };
    assert!(!lines.is_empty() && lines.len() <= 100_000 && warnings.len() <= 51);
    assert!(lines.is_sorted_by_key(|line| line.start_ms));
    for line in &lines {
        assert!(0 <= line.start_ms && line.start_ms < line.end_ms, "{line:?}");
        assert!(line.end_ms < 10_001 * 3_600_000 && !line.text.contains('\0'), "{line:?}");
        assert!(!line.text.is_empty() && line.text.chars().count() <= 20_000);
    }
    let again = parse(write_vtt(&lines, 0).as_bytes()).expect("what was written is read");
    assert_eq!(again.lines, lines);
}
