//! Edit decision lists (CMX 3600).

use std::fmt::Write;

use super::timeline::{Placed, Timeline, one_line};

/// Events of one list: their numbers have three digits.
pub const MOST_EVENTS: usize = 999;
/// Longest title and name, in characters.
const LONGEST_TEXT: usize = 120;

/// The list. Its one rate is in the title's line and in a comment: the format has no field for it. Timecodes count from the
/// first frame of each file, and from 0 on the timeline.
pub(super) fn write(timeline: &Timeline) -> String {
    let numbering = timeline.numbering();
    let mode = if numbering.is_drop() { "DROP FRAME" } else { "NON-DROP FRAME" };
    let rate = timeline.rate;
    let mut list = format!("TITLE: {} ({rate} FPS)\r\nFCM: {mode}\r\n\r\n", cut(&timeline.title));
    for (number, placed) in timeline.placed().iter().enumerate() {
        event(&mut list, timeline, number + 1, placed);
    }
    list
}

fn event(list: &mut String, timeline: &Timeline, number: usize, placed: &Placed<'_>) {
    let code = |frame: i64| timeline.numbering().timecode(frame);
    let Placed { clip, source, record } = placed;
    let channels = if clip.media.has_audio { "AA/V" } else { "V" };
    // Writing to a string does not fail.
    let _ = write!(
        list,
        "{number:03}  AX       {channels:<4}  C        {} {} {} {}\r\n",
        code(source.start),
        code(source.end),
        code(record.start),
        code(record.end),
    );
    let _ = write!(list, "* FROM CLIP NAME: {}\r\n", cut(&clip.media.file_name));
    let (rate, ratio) = (timeline.rate, (timeline.rate.num(), timeline.rate.den()));
    let _ = write!(list, "* FRAME RATE: {rate} ({}/{})\r\n", ratio.0, ratio.1);
    let note = cut(&clip.note);
    if !note.is_empty() {
        let _ = write!(list, "* COMMENT: {note}\r\n");
    }
    list.push_str("\r\n");
}

fn cut(text: &str) -> String {
    one_line(text).chars().take(LONGEST_TEXT).collect()
}

#[cfg(test)]
mod tests {
    use super::super::timeline::samples::timeline;
    use super::*;

    #[test]
    fn an_event_names_its_times_and_its_rate() {
        let list = write(&timeline("29.97", &[(10_000, 12_000), (60_060, 61_000)]));
        let expected = "TITLE: A reel  of dives (29.97 FPS)\r\nFCM: DROP FRAME\r\n\r\n\
            001  AX       AA/V  C        00:00:10;00 00:00:12;00 00:00:00;00 00:00:02;00\r\n\
            * FROM CLIP NAME: dive one.mp4\r\n* FRAME RATE: 29.97 (30000/1001)\r\n\
            * COMMENT: a note --> with <marks> & more\r\n\r\n\
            002  AX       AA/V  C        00:01:00;02 00:01:01;01 00:00:02;00 00:00:02;29\r\n\
            * FROM CLIP NAME: dive one.mp4\r\n* FRAME RATE: 29.97 (30000/1001)\r\n\
            * COMMENT: a note --> with <marks> & more\r\n\r\n";
        assert_eq!(list, expected);
    }

    #[test]
    fn whole_rates_drop_nothing() {
        let list = write(&timeline("25", &[(0, 1000)]));
        assert!(list.contains("FCM: NON-DROP FRAME") && list.contains("00:00:00:00 00:00:01:00"), "{list}");
    }
}
