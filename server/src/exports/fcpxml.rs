//! Final Cut Pro's XML, version 1.8.

use std::collections::BTreeMap;
use std::fmt::Write;

use reprise_encoders::video::FrameRate;
use uuid::Uuid;

use super::otio::address;
use super::timeline::{Media, Placed, Timeline, one_line};

/// The document: one sequence with a spine of clips. Times are ratios on frames of the sequence; where a clip begins in its
/// file is on a frame of the file.
pub(super) fn write(timeline: &Timeline) -> String {
    let mut text =
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<!DOCTYPE fcpxml>\n<fcpxml version=\"1.8\">\n"
            .to_owned();
    let resources = Resources::of(timeline);
    resources.write(&mut text);
    let title = escaped(&one_line(&timeline.title));
    let counting = if timeline.numbering().is_drop() { "DF" } else { "NDF" };
    // Writing to a string does not fail.
    let _ = writeln!(text, "  <event name=\"{title}\">\n    <project name=\"{title}\">");
    let _ = writeln!(
        text,
        "      <sequence format=\"{}\" duration=\"{}\" tcStart=\"0s\" tcFormat=\"{counting}\">\n        <spine>",
        resources.sequence,
        seconds(timeline.frames(), timeline.rate),
    );
    for placed in timeline.placed() {
        resources.clip(&mut text, timeline, &placed);
    }
    text.push_str("        </spine>\n      </sequence>\n    </project>\n  </event>\n</fcpxml>\n");
    text
}

/// The formats and media of a document, with their ids.
struct Resources<'a> {
    timeline: &'a Timeline,
    /// By rate and size.
    formats: BTreeMap<Format, String>,
    sequence: String,
    /// By video.
    media: BTreeMap<Uuid, Asset<'a>>,
}

struct Asset<'a> {
    media: &'a Media,
    id: String,
}

/// A frame's duration as a ratio, and the size of a picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Format {
    num: u32,
    den: u32,
    width: u32,
    height: u32,
}

impl Format {
    fn of(media: &Media, rate: FrameRate) -> Format {
        Format { num: rate.num(), den: rate.den(), width: media.width, height: media.height }
    }
}

impl<'a> Resources<'a> {
    fn of(timeline: &'a Timeline) -> Resources<'a> {
        let mut resources = Resources {
            timeline,
            formats: BTreeMap::new(),
            sequence: "r0".to_owned(),
            media: BTreeMap::new(),
        };
        if let Some(first) = timeline.clips.first() {
            resources.sequence = resources.format(Format::of(&first.media, timeline.rate));
        }
        for clip in &timeline.clips {
            resources.format(Format::of(&clip.media, clip.media.counted_at(timeline.rate)));
            let id = format!("m{}", resources.media.len() + 1);
            resources.media.entry(clip.media.video).or_insert(Asset { media: &clip.media, id });
        }
        resources
    }

    /// The id of a format, new if it is.
    fn format(&mut self, format: Format) -> String {
        let id = format!("r{}", self.formats.len() + 1);
        self.formats.entry(format).or_insert(id).clone()
    }

    fn write(&self, text: &mut String) {
        text.push_str("  <resources>\n");
        for (Format { num, den, width, height }, id) in &self.formats {
            let _ = writeln!(
                text,
                "    <format id=\"{id}\" frameDuration=\"{den}/{num}s\" width=\"{width}\" height=\"{height}\"/>"
            );
        }
        for Asset { media, id } in self.media.values() {
            let rate = media.counted_at(self.timeline.rate);
            let sound = if media.has_audio { " hasAudio=\"1\" audioSources=\"1\"" } else { "" };
            let _ = writeln!(
                text,
                "    <asset id=\"{id}\" name=\"{}\" src=\"{}\" start=\"0s\" duration=\"{}\" hasVideo=\"1\"{sound} format=\"{}\"/>",
                escaped(&one_line(&media.title)),
                escaped(&format!("file:///{}", address(&media.file_name))),
                seconds(rate.frame_from(media.duration_ms).max(1), rate),
                self.formats.get(&Format::of(media, rate)).map_or("r0", String::as_str),
            );
        }
        text.push_str("  </resources>\n");
    }

    fn clip(&self, text: &mut String, timeline: &Timeline, placed: &Placed<'_>) {
        let (clip, rate) = (placed.clip, timeline.rate);
        let own = clip.media.counted_at(rate);
        let counting = if timeline.drop_frame && own.may_drop() { "DF" } else { "NDF" };
        let _ = writeln!(
            text,
            "          <asset-clip ref=\"{}\" name=\"{}\" offset=\"{}\" start=\"{}\" duration=\"{}\" tcFormat=\"{counting}\">",
            self.media.get(&clip.media.video).map_or("m0", |asset| asset.id.as_str()),
            escaped(&one_line(&clip.media.title)),
            seconds(placed.record.start, rate),
            seconds(own.frames_of(&(clip.start_ms..clip.end_ms)).start, own),
            seconds(placed.record.end - placed.record.start, rate),
        );
        if !clip.note.is_empty() {
            let _ = writeln!(text, "            <note>{}</note>", escaped(&clip.note));
        }
        text.push_str("          </asset-clip>\n");
    }
}

/// Where a frame begins, as a ratio of seconds.
fn seconds(frame: i64, rate: FrameRate) -> String {
    if frame == 0 { "0s".to_owned() } else { format!("{}/{}s", frame * i64::from(rate.den()), rate.num()) }
}

/// A text for an element or an attribute. XML 1.0 can't hold most control characters, not even escaped.
///
/// Five characters need no crate: none for XML is in the tree.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&apos;"),
            '\n' | '\t' => escaped.push(character),
            it if it.is_control() || matches!(it, '\u{fffe}' | '\u{ffff}') => escaped.push(' '),
            it => escaped.push(it),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::super::timeline::samples::timeline;
    use super::*;

    #[test]
    fn times_are_ratios_on_frames() {
        let text = write(&timeline("29.97", &[(10_010, 12_012), (0, 1001)]));
        assert!(text.contains("frameDuration=\"1001/30000s\""), "{text}");
        let first = "offset=\"0s\" start=\"300300/30000s\" duration=\"60060/30000s\" tcFormat=\"DF\"";
        assert!(text.contains(first), "{text}");
        assert!(text.contains("offset=\"60060/30000s\" start=\"0s\" duration=\"30030/30000s\""), "{text}");
        assert!(text.contains("name=\"A dive &lt;1&gt; &amp; &quot;two&quot;\""), "{text}");
        assert_eq!(text.matches("<asset id=").count(), 1);
    }

    #[test]
    fn what_xml_can_not_hold_is_left_out() {
        assert_eq!(escaped("a\u{1}b\u{ffff}<é'>"), "a b &lt;é&apos;&gt;");
    }
}
