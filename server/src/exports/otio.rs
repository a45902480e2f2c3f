//! OpenTimelineIO's JSON: a timeline with a track of pictures and, if there is sound, one of sound.

use std::ops::Range;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use reprise_encoders::video::FrameRate;
use serde_json::{Value, json};

use super::timeline::{Clip, Timeline, one_line};

/// What stands in an address as it is.
const PLAIN: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

/// The timeline. Times of a clip are frames of its file, at the file's rate; at the timeline's, if that varies.
pub(super) fn write(timeline: &Timeline) -> Value {
    let mut tracks = vec![track(timeline, "Video")];
    if timeline.clips.iter().any(|clip| clip.media.has_audio) {
        tracks.push(track(timeline, "Audio"));
    }
    json!({
        "OTIO_SCHEMA": "Timeline.1",
        "name": one_line(&timeline.title),
        "metadata": {"reprise": {"frame_rate": timeline.rate.to_string(), "drop_frame": timeline.numbering().is_drop()}},
        "global_start_time": time(0, timeline.rate),
        "tracks": {
            "OTIO_SCHEMA": "Stack.1", "name": "tracks", "metadata": {}, "source_range": null, "effects": [],
            "markers": [], "enabled": true, "children": tracks,
        },
    })
}

fn track(timeline: &Timeline, kind: &str) -> Value {
    let is_shown = |clip: &Clip| kind == "Video" || clip.media.has_audio;
    let child = |clip: &Clip| if is_shown(clip) { item(timeline, clip) } else { gap(timeline, clip) };
    json!({
        "OTIO_SCHEMA": "Track.1", "name": kind, "kind": kind, "metadata": {}, "source_range": null, "effects": [],
        "markers": [], "enabled": true, "children": timeline.clips.iter().map(child).collect::<Vec<Value>>(),
    })
}

fn item(timeline: &Timeline, clip: &Clip) -> Value {
    let media = &clip.media;
    let rate = media.counted_at(timeline.rate);
    json!({
        "OTIO_SCHEMA": "Clip.1", "name": one_line(&media.title), "effects": [], "markers": [], "enabled": true,
        "metadata": {"reprise": {"video_id": media.video, "note": clip.note}},
        "source_range": range(rate.frames_of(&(clip.start_ms..clip.end_ms)), rate),
        "media_reference": {
            "OTIO_SCHEMA": "ExternalReference.1", "name": media.file_name, "metadata": {},
            "target_url": address(&media.file_name),
            "available_range": range(0..rate.frame_from(media.duration_ms).max(1), rate),
        },
    })
}

fn gap(timeline: &Timeline, clip: &Clip) -> Value {
    let rate = clip.media.counted_at(timeline.rate);
    let frames = rate.frames_of(&(clip.start_ms..clip.end_ms));
    json!({
        "OTIO_SCHEMA": "Gap.1", "name": "", "effects": [], "markers": [], "enabled": true, "metadata": {},
        "source_range": range(0..frames.end - frames.start, rate),
    })
}

fn range(frames: Range<i64>, rate: FrameRate) -> Value {
    json!({
        "OTIO_SCHEMA": "TimeRange.1",
        "start_time": time(frames.start, rate),
        "duration": time(frames.end - frames.start, rate),
    })
}

fn time(frame: i64, rate: FrameRate) -> Value {
    json!({"OTIO_SCHEMA": "RationalTime.1", "rate": rate.per_second(), "value": frame as f64})
}

/// A file's name as a relative address. An editor finds the file by it.
pub(super) fn address(file_name: &str) -> String {
    utf8_percent_encode(file_name, PLAIN).to_string()
}

#[cfg(test)]
mod tests {
    use super::super::timeline::samples::timeline;
    use super::*;

    #[test]
    fn clips_have_frames_of_their_own_rate() {
        let mut sample = timeline("25", &[(1000, 3000)]);
        sample.rate = FrameRate::named("50").unwrap();
        let written = write(&sample);
        let clip = &written["tracks"]["children"][0]["children"][0];
        assert_eq!(clip["source_range"]["start_time"]["value"], 25.0);
        assert_eq!(clip["source_range"]["duration"]["rate"], 25.0);
        sample.clips[0].media.is_variable = true;
        let clip = &write(&sample)["tracks"]["children"][1]["children"][0];
        assert_eq!(clip["source_range"]["start_time"]["value"], 50.0);
        assert_eq!(clip["media_reference"]["target_url"], "dive%20one.mp4");
    }
}
