//! An hour of slides on which only text changes.

use std::io::Write;
use std::path::Path;
use std::process::Stdio;

use reprise_encoders::video::segment::{
    ClipRange, Curve, CurveWriter, DetectorSettings, Meter, Segmenter, SegmenterSettings,
};
use reprise_encoders::video::{Event, Limits, Request, decode, probe};
use reprise_tests::film::ffmpeg;

const WIDTH: usize = 320;
const HEIGHT: usize = 180;
const SECONDS: usize = 3600;
const MAX_CLIP_MS: i64 = 30_000;

/// splitmix64: the same numbers in every run.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) % limit as u64) as usize
    }
}

/// A line of something like letters, in place of the old one.
fn write_line(page: &mut [u8], line: usize, random: &mut Random) {
    let top = 30 + line * 14;
    for y in top..top + 12 {
        page[y * WIDTH + 20..(y + 1) * WIDTH - 20].fill(240);
    }
    let letters = 12 + random.below(24);
    for letter in 0..letters {
        let (left, shape) = (22 + letter * 7, random.below(1 << 15));
        for (row, column) in (0..5).flat_map(|row| (0..3).map(move |column| (row, column))) {
            if shape >> (row * 3 + column) & 1 == 1 {
                let at = (top + 1 + row * 2) * WIDTH + left + column * 2;
                [at, at + 1, at + WIDTH, at + WIDTH + 1].into_iter().for_each(|at| page[at] = 25);
            }
        }
    }
}

/// Writes an hour of slides, a frame a second, and a pointer that wanders over them; returns when they change,
/// in milliseconds, and the largest part of the picture that a change changes.
fn lecture(path: &Path) -> (Vec<i64>, f64) {
    let mut encoder = ffmpeg();
    let size = format!("{WIDTH}x{HEIGHT}");
    encoder
        .args(["-f", "rawvideo", "-pix_fmt", "gray", "-s", &size, "-r", "1", "-i", "-"])
        .args(["-c:v", "libx264", "-preset", "ultrafast", "-crf", "28", "-pix_fmt", "yuv420p"])
        .arg(path)
        .stdin(Stdio::piped());
    let mut child = encoder.spawn().expect("ffmpeg is installed");
    let mut pipe = child.stdin.take().unwrap();
    let mut random = Random(5);
    let mut page = vec![240; WIDTH * HEIGHT];
    page[..24 * WIDTH].fill(60);
    (0..10).for_each(|line| write_line(&mut page, line, &mut random));
    let (mut changes, mut largest, mut left) = (Vec::new(), 0.0_f64, 20);
    for second in 0..SECONDS {
        if left == 0 {
            let before = page.clone();
            let (lines, first) = (1 + random.below(6), random.below(10));
            (first..first + lines).for_each(|line| write_line(&mut page, line % 10, &mut random));
            let differing = page.iter().zip(&before).filter(|(a, b)| a != b).count();
            largest = largest.max(differing as f64 / page.len() as f64);
            changes.push(second as i64 * 1000);
            left = 5 + random.below(60);
        }
        left -= 1;
        let mut shown = page.clone();
        if second % 7 < 3 {
            let (x, y) = (random.below(WIDTH - 4), random.below(HEIGHT - 6));
            (y..y + 6).for_each(|y| shown[y * WIDTH + x..][..4].fill(0));
        }
        pipe.write_all(&shown).unwrap();
    }
    drop(pipe);
    assert!(child.wait().unwrap().success());
    (changes, largest)
}

fn measured(path: &Path) -> Curve {
    let limits = Limits::default();
    let probe = probe(path, &limits).unwrap();
    let mut meter = Meter::new(false);
    let mut writer = CurveWriter::new(false);
    let mut decoder =
        decode(path, &probe, Request { detect_width: Some(256), outputs: vec![] }, &limits).unwrap();
    for event in decoder.by_ref() {
        if let Event::Detect(frame) = event.unwrap() {
            writer.push(&meter.measure(&frame));
        }
    }
    Curve::read(&writer.finish(decoder.summary().duration_ms)).unwrap()
}

fn is_near(times: &[i64], at: i64) -> bool {
    times.iter().any(|time| (time - at).abs() <= 1000)
}

/// Boundaries that lie near no change, beyond those that a stretch without changes needs for its length.
fn extra(boundaries: &[i64], changes: &[i64]) -> usize {
    let ends = [&[0], changes, &[SECONDS as i64 * 1000]].concat();
    let needed: i64 = ends.windows(2).map(|it| (it[1] - it[0] - 1) / MAX_CLIP_MS).sum();
    let elsewhere = boundaries.iter().filter(|at| !is_near(changes, **at)).count();
    elsewhere.saturating_sub(needed as usize)
}

#[test]
fn an_hour_of_slides_is_cut_where_the_slides_change() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("lecture.mp4");
    let (changes, largest) = lecture(&path);
    assert!(changes.len() >= 80 && largest < 0.12, "{} changes of at most {largest}", changes.len());
    let curve = measured(&path);
    let duration_ms = SECONDS as i64 * 1000;
    assert_eq!(curve.duration_ms, duration_ms);

    let detector = DetectorSettings::default();
    let mut cuts = Segmenter::new(SegmenterSettings::Content { detector, max_clip_ms: MAX_CLIP_MS });
    curve.scores.iter().for_each(|it| drop(cuts.push(it)));
    assert_eq!(cuts.cuts(), [], "no change reaches the content threshold");

    let hybrid = SegmenterSettings::Hybrid {
        detector,
        slide_area: Some(100),
        min_clip_ms: 500,
        max_clip_ms: MAX_CLIP_MS,
    };
    let clips: Vec<ClipRange> = curve.clips(hybrid, &[]);
    assert_eq!((clips[0].start_ms, clips[clips.len() - 1].end_ms), (0, duration_ms));
    assert!(clips.windows(2).all(|pair| pair[0].end_ms == pair[1].start_ms));
    assert!(clips.iter().all(|clip| (1..=MAX_CLIP_MS).contains(&(clip.end_ms - clip.start_ms))));
    let boundaries: Vec<i64> = clips[1..].iter().map(|clip| clip.start_ms).collect();
    let found = changes.iter().filter(|at| is_near(&boundaries, **at)).count();
    let extra = extra(&boundaries, &changes);
    println!("{} changes, {found} found, {extra} extra boundaries of {}", changes.len(), boundaries.len());
    assert!(found * 10 >= changes.len() * 9, "{found} of {} changes", changes.len());
    assert!(extra * 10 <= boundaries.len(), "{extra} extra boundaries of {}", boundaries.len());
}
