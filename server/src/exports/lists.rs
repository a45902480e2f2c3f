//! Ranges as CSV, JSON and chapters in WebVTT.

use std::fmt::Write;

use serde::Serialize;
use uuid::Uuid;

use super::timeline::{Placed, Timeline, one_line};

/// One range, as CSV and JSON name it. Times are seconds; record times count on the timeline.
#[derive(Debug, Serialize)]
struct Line<'a> {
    number: usize,
    video_id: Uuid,
    title: &'a str,
    file_name: &'a str,
    start: f64,
    end: f64,
    start_timecode: String,
    end_timecode: String,
    record_start: f64,
    record_end: f64,
    record_start_timecode: String,
    record_end_timecode: String,
    note: &'a str,
}

#[derive(Serialize)]
struct Document<'a> {
    title: &'a str,
    frame_rate: String,
    drop_frame: bool,
    ranges: Vec<Line<'a>>,
}

fn lines<'a>(timeline: &'a Timeline) -> Vec<Line<'a>> {
    let numbering = timeline.numbering();
    let code = |frame: i64| numbering.timecode(frame).to_string();
    let seconds = |ms: i64| ms as f64 / 1000.0;
    let line = |(place, placed): (usize, Placed<'a>)| {
        let clip = placed.clip;
        Line {
            number: place + 1,
            video_id: clip.media.video,
            title: &clip.media.title,
            file_name: &clip.media.file_name,
            start: seconds(clip.start_ms),
            end: seconds(clip.end_ms),
            start_timecode: code(placed.source.start),
            end_timecode: code(placed.source.end),
            record_start: seconds(timeline.rate.ms(placed.record.start)),
            record_end: seconds(timeline.rate.ms(placed.record.end)),
            record_start_timecode: code(placed.record.start),
            record_end_timecode: code(placed.record.end),
            note: &clip.note,
        }
    };
    timeline.placed().into_iter().enumerate().map(line).collect()
}

/// A table with a head, separated by commas (RFC 4180).
///
/// # Errors
/// A row can't be written; never, as it goes to memory.
pub(super) fn csv(timeline: &Timeline) -> Result<Vec<u8>, csv::Error> {
    let mut table = csv::WriterBuilder::new().terminator(csv::Terminator::CRLF).from_writer(Vec::new());
    for line in lines(timeline) {
        table.serialize(line)?;
    }
    table.into_inner().map_err(|error| error.into_error().into())
}

/// The same as JSON, with the timeline's title and rate.
///
/// # Errors
/// A value can't be written; never, as all are finite.
pub(super) fn json(timeline: &Timeline) -> serde_json::Result<Vec<u8>> {
    let document = Document {
        title: &timeline.title,
        frame_rate: timeline.rate.to_string(),
        drop_frame: timeline.numbering().is_drop(),
        ranges: lines(timeline),
    };
    serde_json::to_vec_pretty(&document)
}

/// A chapter for each range, on the timeline's clock: that of the exported MP4.
pub(super) fn chapters(timeline: &Timeline) -> String {
    let mut text = "WEBVTT\n".to_owned();
    for (place, placed) in timeline.placed().iter().enumerate() {
        let (clip, rate) = (placed.clip, timeline.rate);
        let note = if clip.note.is_empty() { &clip.media.title } else { &clip.note };
        // Writing to a string does not fail.
        let _ = write!(
            text,
            "\n{}\n{} --> {}\n{}\n",
            place + 1,
            clock(rate.ms(placed.record.start)),
            clock(rate.ms(placed.record.end)),
            plain(note),
        );
    }
    text
}

/// `00:01:02.345`.
fn clock(ms: i64) -> String {
    let (seconds, ms) = (ms / 1000, ms % 1000);
    format!("{:02}:{:02}:{:02}.{ms:03}", seconds / 3600, seconds / 60 % 60, seconds % 60)
}

/// A line of a cue. An empty one would end the cue.
fn plain(text: &str) -> String {
    let line = one_line(text).replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    if line.is_empty() { "-".to_owned() } else { line }
}

#[cfg(test)]
mod tests {
    use super::super::timeline::samples::timeline;
    use super::*;

    #[test]
    fn a_table_quotes_what_it_must() {
        let text = String::from_utf8(csv(&timeline("25", &[(1000, 3000)])).unwrap()).unwrap();
        let (head, row) = text.split_once("\r\n").unwrap();
        assert!(head.starts_with("number,video_id,title,file_name,start,end,"), "{head}");
        assert!(
            row.contains(
                ",\"A dive <1> & \"\"two\"\"\",dive one.mp4,1.0,3.0,00:00:01:00,00:00:03:00,0.0,2.0,"
            ),
            "{row}"
        );
    }

    #[test]
    fn chapters_stand_on_the_timelines_clock() {
        let text = chapters(&timeline("25", &[(1000, 3000), (3_600_000, 7_201_480)]));
        let note = "a note --&gt; with &lt;marks&gt; &amp; more";
        let expected = format!(
            "WEBVTT\n\n1\n00:00:00.000 --> 00:00:02.000\n{note}\n\n2\n00:00:02.000 --> 01:00:03.480\n{note}\n"
        );
        assert_eq!(text, expected);
    }

    #[test]
    fn json_names_the_rate() {
        let sample = timeline("59.94", &[(0, 1001)]);
        let read: serde_json::Value = serde_json::from_slice(&json(&sample).unwrap()).unwrap();
        assert_eq!((&read["frame_rate"], &read["drop_frame"]), (&"59.94".into(), &true.into()));
        assert_eq!(read["ranges"][0]["end_timecode"], "00:00:01;00");
    }
}
