//! Tests with whole files: well-formed, damaged, and random.

use proptest::prelude::*;

use super::*;

fn line(start_ms: i64, end_ms: i64, text: &str) -> Line {
    Line { start_ms, end_ms, text: text.to_owned() }
}

/// `lines`: (start, end, text). `warned`: the lines of the file with a warning.
#[track_caller]
fn check(file: &str, lines: &[(i64, i64, &str)], warned: &[usize]) {
    let parsed = parse(file.as_bytes()).unwrap();
    let expected: Vec<Line> = lines.iter().map(|(start, end, text)| line(*start, *end, text)).collect();
    assert_eq!(parsed.lines, expected, "{file}");
    let numbers = parsed.warnings.iter().map(|warning| {
        let number = warning.strip_prefix("line ").and_then(|rest| rest.split_once(':'));
        number.unwrap_or_else(|| panic!("{warning}")).0.parse::<usize>().unwrap()
    });
    assert_eq!(numbers.collect::<Vec<_>>(), warned, "{:?}", parsed.warnings);
}

#[track_caller]
fn check_refused(file: &[u8], line: usize, why: &str) {
    let refused = parse(file).unwrap_err();
    assert!(refused.line == line && refused.why.contains(why), "{refused}");
}

#[test]
fn subrip_is_read() {
    check(
        "\u{feff}1\r\n00:00:05,850 --> 00:00:07,713\r\nWelcome to\r\nthe <i>course</i>.\r\n\r\n\
         2\r\n00:00:07,000 --> 00:00:10,320\r\n{\\an8}It 🤗 is\r\n",
        &[(5850, 7713, "Welcome to\nthe course."), (7000, 10320, "It 🤗 is")],
        &[],
    );
    check("00:01.5 --> 00:02.5 \nno number, no hours", &[(1500, 2500, "no number, no hours")], &[]);
    check("1\r00:00:01,0 --> 00:00:02,0\rold line breaks\r", &[(1000, 2000, "old line breaks")], &[]);
}

#[test]
fn damaged_subrip_is_read_as_far_as_it_can_be() {
    check(
        "1\n00:00:01,000 --> 00:00:02,000\nempty lines\n\n\ninside\n\n2\n\n00:00:03,000 --> 00:00:04,000\n\nand before",
        &[(1000, 2000, "empty lines\ninside"), (3000, 4000, "and before")],
        &[],
    );
    check(
        "1\n00:00:01,000 --> 00:00:02,000\nno empty line\n2\n00:00:03,000 --> 00:00:04,000\nbetween",
        &[(1000, 2000, "no empty line"), (3000, 4000, "between")],
        &[],
    );
    check(
        "subtitles by me\n\n1\n00:00:01,000 --> soon\nlost\n\n2\n00:00:04,000 --> 00:00:03,000\nbackwards\n\n\
         3\n00:00:05,000 --> 00:00:06,000\nkept\n\n4\n00:00:07,000 --> 00:00:08,000\n<i></i>\n",
        &[(5000, 6000, "kept")],
        &[1, 4, 8, 16],
    );
    check(
        "1\n00:00:09,000 --> 00:00:10,000\nlate\n\n2\n00:00:01,000 --> 00:00:10,000\nearly and long\n\n3\n\
         00:00:01,000 --> 00:00:02,000\nat once\n",
        &[(1000, 10000, "early and long"), (1000, 2000, "at once"), (9000, 10000, "late")],
        &[],
    );
    check("1\n00:00:01,000 --> 00:00:02,000\n42", &[(1000, 2000, "42")], &[]);
}

#[test]
fn webvtt_is_read() {
    check(
        "WEBVTT - a title\nKind: captions\n\nSTYLE\n::cue { color: red }\n\nREGION\nid:fred\n\nNOTE\nnot --> said\n\n\
         intro\n00:01.000 --> 00:02.000 line:0 align:start\n<v Ann><c.loud>Hi</c>\n- there &amp; here\n\n\
         00:01.500 --> 01:00:00.000\noverlapping\n",
        &[(1000, 2000, "Hi\n- there & here"), (1500, 3_600_000, "overlapping")],
        &[],
    );
    check(
        "WEBVTT\n00:01.000 --> 00:02.000\nright after the header",
        &[(1000, 2000, "right after the header")],
        &[],
    );
}

#[test]
fn damaged_webvtt_is_read_as_far_as_it_can_be() {
    check(
        "WEBVTT\n\n00:01.000 --> 00:02.000\nfirst\n\ncut off by an empty line\n\n00:03.000 --> 00:04.000\nsecond\n\
         00:05.000 --> 00:06.000\nthird\n\n00:07 -->\nlost\n",
        &[(1000, 2000, "first"), (3000, 4000, "second"), (5000, 6000, "third")],
        &[6, 13],
    );
}

#[test]
fn a_file_of_which_nothing_can_be_read_is_refused_with_the_line() {
    check_refused(b"", 1, "no SubRip or WebVTT file");
    check_refused(b"\n\njust text\n", 3, "no SubRip or WebVTT file");
    check_refused(b"WEBVTT\n\nNOTE nothing\n", 1, "no SubRip or WebVTT file");
    check_refused(b"1\n00:00:01,000 --> never\nx\n", 2, "not one cue could be read: these are no two times");
    check_refused(&[0xFF, 0xFE, 0x00], 1, "no SubRip or WebVTT file");
}

#[test]
fn very_much_is_told_shortly() {
    let bad = "00:00:01,000 --> soon\nx\n\n".repeat(500);
    let parsed =
        parse(format!("{bad}00:00:01,000 --> 00:00:02,000\n{}", "y".repeat(30_000)).as_bytes()).unwrap();
    assert_eq!(parsed.warnings.len(), MAX_WARNINGS + 1);
    assert_eq!(parsed.lines[0].text.len(), MAX_CHARACTERS);
}

#[test]
fn written_times_are_moved_and_cut_at_zero() {
    let lines = [line(0, 500, "gone"), line(500, 1500, "a --> b"), line(61_000, 3_661_001, "<i>")];
    let expected =
        "WEBVTT\n\n00:00:00.000 --> 00:00:00.500\na --&gt; b\n\n00:01:00.000 --> 01:01:00.001\n&lt;i&gt;\n";
    assert_eq!(write_vtt(&lines, -1000), expected);
}

#[test]
fn subrip_is_written_with_numbers_and_commas() {
    let lines = [line(0, 500, "gone"), line(500, 1500, "a --> b"), line(61_000, 3_661_001, "1\n\n<i>")];
    let expected = "1\n00:00:00,000 --> 00:00:00,500\na -- b\n\n2\n00:01:00,000 --> 01:01:00,001\n1\n<i>\n";
    assert_eq!(write_srt(&lines, -1000), expected);
}

#[test]
fn a_large_file_is_refused_and_its_warnings_are_counted() {
    let refusal = |text: String| parse(text.as_bytes()).unwrap_err().why;
    assert_eq!(refusal("\n".repeat(8 << 20)), "the file has more than 1000000 lines");
    assert_eq!(refusal("0:1-->0:2\nx\n".repeat(200_000)), "the file has more than 100000 cues");
    let parsed = parse(format!("{}0:1-->0:2\nx", "-->\n".repeat(10_000)).as_bytes()).unwrap();
    assert_eq!(parsed.warnings.len(), MAX_WARNINGS + 1);
    assert_eq!(parsed.warnings.last().unwrap(), "and 9950 more like these");
}

/// Rows as the parser leaves them: not empty and without surrounding white space.
fn row() -> impl Strategy<Value = String> {
    "[^\\r\\n\\x00]{1,30}"
        .prop_map(|row| row.trim().to_owned())
        .prop_filter("it says something", |row| !row.is_empty())
}

fn cue() -> impl Strategy<Value = Line> {
    (0..1_000_000_i64, 1..100_000_i64, proptest::collection::vec(row(), 1..4))
        .prop_map(|(start_ms, length, rows)| line(start_ms, start_ms + length, &rows.join("\n")))
}

/// Random bytes with pieces of subtitle syntax.
fn noise() -> impl Strategy<Value = Vec<u8>> {
    let pieces = prop_oneof![
        Just(b"WEBVTT\n\n".to_vec()),
        Just(b"00:00:01,000 --> 00:00:02.5\n".to_vec()),
        Just(b"-->".to_vec()),
        Just(b"\r\n\r\n".to_vec()),
        Just(b"NOTE ".to_vec()),
        Just(b"<v &amp{\\".to_vec()),
        Just(b"\xFF\xFE".to_vec()),
        Just(b"17\n".to_vec()),
        proptest::collection::vec(any::<u8>(), 0..20),
    ];
    proptest::collection::vec(pieces, 0..12).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn what_is_written_is_read_again(mut lines in proptest::collection::vec(cue(), 1..8)) {
        lines.sort_by_key(|line| line.start_ms);
        let parsed = parse(write_vtt(&lines, 0).as_bytes()).unwrap();
        prop_assert_eq!(parsed.lines, lines);
        prop_assert!(parsed.warnings.is_empty());
    }

    #[test]
    fn what_is_written_as_subrip_keeps_its_times_and_plain_text(
        mut cues in proptest::collection::vec((0..1_000_000_i64, 1..100_000_i64, "[a-z][a-z ,.']{0,20}[a-z]"), 1..8)
    ) {
        cues.sort_by_key(|(start_ms, _, _)| *start_ms);
        let lines: Vec<Line> =
            cues.iter().map(|(start_ms, length, text)| line(*start_ms, start_ms + length, text)).collect();
        let parsed = parse(write_srt(&lines, 0).as_bytes()).unwrap();
        prop_assert_eq!(parsed.lines, lines);
        prop_assert!(parsed.warnings.is_empty());
    }

    #[test]
    fn no_input_breaks_the_parser_and_what_it_reads_is_sound(bytes in noise()) {
        if let Ok(parsed) = parse(&bytes) {
            prop_assert!(!parsed.lines.is_empty());
            prop_assert!(parsed.lines.is_sorted_by_key(|line| line.start_ms));
            for line in &parsed.lines {
                prop_assert!(0 <= line.start_ms && line.start_ms < line.end_ms, "{line:?}");
                prop_assert!(!line.text.trim().is_empty() && !line.text.contains('\0'), "{line:?}");
            }
            let again = parse(write_vtt(&parsed.lines, 0).as_bytes()).unwrap();
            prop_assert_eq!(again.lines, parsed.lines);
        }
    }
}
