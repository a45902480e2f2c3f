//! Stores the subtitles embedded in a video's file.

use std::collections::HashMap;

use reprise_encoders::video::{self, SubtitleStream, VideoError};
use uuid::Uuid;

use super::error::IngestError;
use super::pass::Media;
use crate::app::App;
use crate::catalog::{CueKind, EMBEDDED, Line, Subtitles, Track};
use crate::subtitles::{self, language};

/// Replaces the embedded tracks with the file's text streams. A user's own track of the same language stays. Returns a
/// warning for each unreadable stream.
///
/// # Errors
/// The catalog failed. An unreadable stream is only a warning.
pub(super) async fn take(app: &App, video: Uuid, media: &Media) -> Result<Vec<String>, IngestError> {
    let mut streams: Vec<SubtitleStream> =
        media.probe.subtitles.iter().filter(|it| video::is_text(it)).cloned().collect();
    // Of two streams in one language, the default one gets the plain tag.
    streams.sort_by_key(|it| (!it.is_default, it.index));
    let (media, wanted) = (media.clone(), streams.clone());
    let extracted = tokio::task::spawn_blocking(move || extract(&media, &wanted)).await;
    let extracted = extracted.map_err(IngestError::Panicked)?;
    let mut warnings = Vec::new();
    let mut read = Vec::new();
    for (stream, file) in streams.into_iter().zip(extracted) {
        match file {
            // A stream without a cue is skipped.
            Ok(file) => read.extend(subtitles::parse(&file).ok().map(|parsed| (stream, parsed.lines))),
            Err(error) => {
                warnings.push(format!("the subtitles in stream {} can't be read: {error}", stream.index));
            }
        }
    }
    app.catalog.keep_embedded(video, &tracks(read)).await?;
    Ok(warnings)
}

/// Extracts all streams in one call. If that fails, extracts each alone.
fn extract(media: &Media, streams: &[SubtitleStream]) -> Vec<Result<Vec<u8>, VideoError>> {
    let some = |streams: &[SubtitleStream]| video::subtitles_as_vtt(&media.path, streams, &media.limits);
    if let Ok(all) = some(streams) {
        return all.into_iter().map(Ok).collect();
    }
    let one = |stream: &SubtitleStream| {
        let files = some(std::slice::from_ref(stream))?;
        Ok(files.into_iter().next().unwrap_or_default())
    };
    streams.iter().map(one).collect()
}

/// One track per language and text. A stream with the same text is skipped. One with another text gets its own tag
/// (`en-x-2`).
fn tracks(streams: Vec<(SubtitleStream, Vec<Line>)>) -> Vec<Subtitles> {
    let mut by_language: HashMap<String, Vec<Vec<Line>>> = HashMap::new();
    let mut tracks = Vec::new();
    for (stream, lines) in streams {
        let told = stream.language.as_deref().and_then(language::tag);
        let language = told.unwrap_or_else(|| language::UNDETERMINED.to_owned());
        let known = by_language.entry(language.clone()).or_default();
        if known.contains(&lines) {
            continue;
        }
        known.push(lines.clone());
        let language = if known.len() == 1 { language } else { format!("{language}-x-{}", known.len()) };
        let provenance = EMBEDDED.to_owned();
        let track = Track { kind: CueKind::Speech, language, provenance, is_machine: false };
        tracks.push(Subtitles { track, lines, warnings: Vec::new() });
    }
    tracks
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Streams as (language, text), tracks as (tag, text).
    #[track_caller]
    fn check(streams: &[(Option<&str>, &str)], expected: &[(&str, &str)]) {
        let stream = |(language, text): &(Option<&str>, &str)| {
            let language = language.map(str::to_owned);
            let stream =
                SubtitleStream { index: 2, codec: "mov_text".to_owned(), language, is_default: true };
            (stream, vec![Line { start_ms: 0, end_ms: 1, text: (*text).to_owned() }])
        };
        let got = tracks(streams.iter().map(stream).collect());
        let got: Vec<(&str, &str)> =
            got.iter().map(|it| (it.track.language.as_str(), it.lines[0].text.as_str())).collect();
        assert_eq!(got, expected);
    }

    #[test]
    fn each_language_and_text_is_one_track() {
        check(&[(Some("eng"), "a"), (Some("eng"), "a"), (Some("ger"), "a")], &[("en", "a"), ("de", "a")]);
        check(&[(Some("eng"), "a"), (Some("eng"), "b")], &[("en", "a"), ("en-x-2", "b")]);
        check(&[(None, "a"), (Some("???"), "b")], &[("und", "a"), ("und-x-2", "b")]);
        check(&[], &[]);
    }
}
