//! Reads the text on screen in a video.

use std::sync::Arc;

use reprise_encoders::screen_text::{
    Next, ReadTextError, ScreenLine, ScreenText, Tesseract, TesseractError, TextBox, read_text,
};

use super::error::{IngestError, Stop};
use super::source::Source;
use crate::catalog::{CueBox, CueKind, Line, ReadText, ScreenCue, Track};
use crate::subtitles::language;

/// The installed reader of these languages, by Tesseract's names.
///
/// # Errors
/// It is not installed, or lacks a language.
pub async fn text_reader(languages: &str) -> Result<Tesseract, TesseractError> {
    let languages = languages.to_owned();
    let found = tokio::task::spawn_blocking(move || Tesseract::find(&languages)).await;
    found.unwrap_or_else(|panic| Err(TesseractError::Failed(panic.into())))
}

/// Reads the text on screen in a video.
///
/// # Errors
/// [`IngestError`]. The catalog then stores nothing.
pub async fn text_on_screen(source: Source<'_>) -> Result<ReadText, IngestError> {
    let tesseract = text_reader(&source.app.config.screen_text.text_languages).await?;
    let track = Track {
        kind: CueKind::Ocr,
        language: tag(tesseract.languages()),
        provenance: tesseract.name(),
        is_machine: true,
    };
    let media = source.media().await?;
    source.progress.stage("read");
    let progress = Arc::clone(&source.progress);
    let offset_ms = source.video.facts.as_ref().map_or(0, |facts| facts.media_offset_ms);
    let reading = tokio::task::spawn_blocking(move || {
        let at = |time_ms| {
            progress.frame(time_ms);
            if progress.stopped().is_some() { Next::Stop } else { Next::Go }
        };
        read_text(&media.path, &media.probe, &tesseract, &media.limits, at)
    });
    let ScreenText { lines, warnings, .. } = reading.await?.map_err(|error| match error {
        ReadTextError::Video(error) => error.into(),
        ReadTextError::Tesseract(error) => error.into(),
        ReadTextError::Stopped => IngestError::Stopped(source.progress.stopped().unwrap_or(Stop::Lost)),
    })?;
    source.progress.stage("finish");
    let cues = lines.into_iter().map(|line| cue(line, offset_ms)).collect();
    Ok(ReadText { track, cues, warnings })
}

/// A line as a cue, whose times are on the container's clock.
fn cue(line: ScreenLine, offset_ms: i64) -> ScreenCue {
    let ScreenLine { start_ms, end_ms, text, region: TextBox { left, top, width, height }, .. } = line;
    let start_ms = (start_ms + offset_ms).max(0);
    let line = Line { start_ms, end_ms: (end_ms + offset_ms).max(start_ms + 1), text };
    let [left, top, width, height] = [left, top, width, height].map(f64::from);
    ScreenCue { line, region: CueBox { left, top, width, height } }
}

/// The tag of a track in these languages: that of the only one, such as `en` for `eng`, else `und`.
fn tag(languages: &str) -> String {
    let only = (!languages.contains('+')).then(|| languages.rsplit('/').next()).flatten();
    let name = only.map(|name| match name {
        "chi_sim" | "chi_sim_vert" => "zh-Hans",
        "chi_tra" | "chi_tra_vert" => "zh-Hant",
        name => name.split('_').next().unwrap_or(name),
    });
    name.and_then(language::tag).unwrap_or_else(|| language::UNDETERMINED.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_language_gives_the_tag() {
        for (languages, expected) in [
            ("eng", "en"),
            ("chi_tra", "zh-Hant"),
            ("jpn_vert", "ja"),
            ("best/deu", "de"),
            ("eng+deu", "und"),
            ("script/Latin", "und"),
        ] {
            assert_eq!(tag(languages), expected, "{languages}");
        }
    }
}
