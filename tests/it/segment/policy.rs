//! Every policy of segmentation, on made-up scores: exact tables, and invariants on random videos.

use proptest::prelude::*;
use reprise_encoders::video::segment::{
    AdaptiveSettings, ClipRange, ContentSettings, Curve, CurveWriter, DetectorSettings, FrameScores,
    MinSceneLen, Segmentation, Segmenter, Settled, ThresholdSettings,
};

fn seconds(ms: i64) -> f64 {
    ms as f64 / 1000.0
}

fn content(max_clip_ms: i64) -> Segmentation {
    Segmentation::content(seconds(max_clip_ms))
}

fn hybrid(min_clip_ms: i64, max_clip_ms: i64) -> Segmentation {
    let (min_clip_seconds, max_clip_seconds) = (seconds(min_clip_ms), seconds(max_clip_ms));
    let detector = DetectorSettings::default();
    let (slide_area_percent, gradual) = (1.0, true);
    Segmentation::Hybrid { detector, slide_area_percent, gradual, min_clip_seconds, max_clip_seconds }
}

fn subtitle(min_clip_ms: i64, max_clip_ms: i64) -> Segmentation {
    let (min_clip_seconds, max_clip_seconds) = (seconds(min_clip_ms), seconds(max_clip_ms));
    Segmentation::Subtitle { pause_seconds: 0.7, min_clip_seconds, max_clip_seconds }
}

/// One frame per time. `cuts` and `changes` are indices of frames: `cuts` are cuts, `changes` begin a new slide.
fn scores(times: &[i64], cuts: &[usize], changes: &[usize]) -> Vec<FrameScores> {
    let mut waiting: Vec<i64> = changes.iter().filter_map(|at| times.get(*at).copied()).collect();
    waiting.reverse();
    let frame = |(at, &time_ms): (usize, &i64)| {
        let difference = if cuts.contains(&at) { 90.0 } else { 0.5 };
        let due = waiting.last().is_some_and(|began| began + 900 <= time_ms);
        let settled = if due { waiting.pop() } else { None };
        FrameScores {
            time_ms,
            hue: difference,
            saturation: difference,
            value: difference,
            settled: settled.map(|began_ms| Settled { area: 300, began_ms }),
            ..FrameScores::default()
        }
    };
    times.iter().enumerate().map(frame).collect()
}

fn segment(
    settings: Segmentation,
    cues: &[ClipRange],
    scores: &[FrameScores],
    duration_ms: i64,
) -> (Vec<ClipRange>, Vec<u64>) {
    let mut segmenter = Segmenter::with_cues(settings, cues);
    let mut clips: Vec<ClipRange> = scores.iter().flat_map(|it| segmenter.push(it)).collect();
    clips.extend(segmenter.finish(duration_ms));
    (clips, segmenter.cuts().iter().map(|cut| cut.0).collect())
}

/// 25 frames a second.
#[track_caller]
fn check(
    settings: Segmentation,
    frames: i64,
    (cuts, changes): (&[usize], &[usize]),
    cues: &[(i64, i64)],
    expected: &[i64],
) {
    let times: Vec<i64> = (0..frames).map(|at| at * 40).collect();
    let cues: Vec<ClipRange> =
        cues.iter().map(|&(start_ms, end_ms)| ClipRange { start_ms, end_ms }).collect();
    let (clips, _) = segment(settings, &cues, &scores(&times, cuts, changes), frames * 40);
    let mut bounds: Vec<i64> = clips.iter().map(|clip| clip.start_ms).collect();
    bounds.extend(clips.last().map(|clip| clip.end_ms));
    assert_eq!(bounds, expected);
}

#[test]
fn scenes_become_clips() {
    for settings in [content(60_000), hybrid(500, 60_000)] {
        check(settings, 100, (&[], &[]), &[], &[0, 4000]);
        check(settings, 100, (&[30, 60], &[]), &[], &[0, 1200, 2400, 4000]);
        check(settings, 0, (&[], &[]), &[], &[]);
    }
}

#[test]
fn long_scenes_are_split_without_slivers() {
    check(content(2000), 75, (&[], &[]), &[], &[0, 1480, 3000]);
    check(content(2000), 101, (&[], &[]), &[], &[0, 2000, 3000, 4040]);
    check(content(2000), 250, (&[], &[]), &[], &[0, 2000, 4000, 6000, 8000, 10_000]);
    check(content(2000), 255, (&[], &[]), &[], &[0, 2000, 4000, 6000, 8000, 9080, 10_200]);
    check(hybrid(500, 2000), 75, (&[], &[]), &[], &[0, 1480, 3000]);
}

#[test]
fn a_last_scene_below_the_minimum_belongs_to_the_clip_before() {
    check(content(60_000), 100, (&[95], &[]), &[], &[0, 4000]);
    check(hybrid(500, 60_000), 100, (&[95], &[]), &[], &[0, 4000]);
    check(hybrid(200, 60_000), 100, (&[95], &[]), &[], &[0, 3800, 4000]);
    let times: Vec<i64> = (0..100).map(|i| i * 40).collect();
    assert_eq!(segment(content(60_000), &[], &scores(&times, &[95], &[]), 4000).1, [95]);
}

#[test]
fn fixed_clips_are_as_long_as_was_said() {
    let fixed = Segmentation::Fixed { every_seconds: 1.5 };
    check(fixed, 100, (&[30], &[60]), &[(0, 700)], &[0, 1500, 3000, 4000]);
    check(fixed, 75, (&[], &[]), &[], &[0, 1500, 3000]);
}

#[test]
fn slides_end_clips_and_cuts_outrank_them() {
    check(hybrid(500, 60_000), 250, (&[], &[100]), &[], &[0, 4000, 10_000]);
    check(hybrid(500, 60_000), 250, (&[105], &[100]), &[], &[0, 4200, 10_000]);
    check(hybrid(500, 60_000), 250, (&[100], &[105]), &[], &[0, 4000, 10_000]);
    check(hybrid(500, 60_000), 250, (&[100], &[100]), &[], &[0, 4000, 10_000]);
    check(content(60_000), 250, (&[], &[100]), &[], &[0, 10_000]);
}

#[test]
fn with_cues_long_clips_are_split_where_nobody_speaks() {
    let cues = [(0, 3100), (3900, 9900)];
    check(hybrid(500, 8000), 250, (&[], &[]), &cues, &[0, 3900, 10_000]);
    check(hybrid(500, 8000), 250, (&[], &[]), &[], &[0, 5000, 10_000]);
}

#[test]
fn subtitles_make_clips_of_what_is_said_together() {
    let cues = [(500, 1500), (1600, 2500), (4000, 5000), (5800, 7000)];
    check(subtitle(1000, 60_000), 250, (&[30], &[60]), &cues, &[0, 2500, 4000, 5800, 7000, 10_000]);
    check(subtitle(2000, 60_000), 250, (&[], &[]), &cues, &[0, 4000, 7000, 10_000]);
    check(subtitle(1000, 4000), 250, (&[], &[]), &[], &[0, 4000, 7000, 10_000]);
}

#[test]
fn a_picture_that_stays_is_split_where_no_frame_is() {
    let (clips, _) = segment(content(2000), &[], &scores(&[0, 40, 10_000], &[], &[]), 10_040);
    assert_eq!(clips.first(), Some(&ClipRange { start_ms: 0, end_ms: 2000 }));
    assert!(clips.iter().all(|clip| clip.end_ms - clip.start_ms <= 2000), "{clips:?}");
}

/// Times of frames, and the indices of cuts and of slide changes.
type Video = (Vec<i64>, Vec<usize>, Vec<usize>);

fn any_video() -> impl Strategy<Value = Video> {
    let gap = prop_oneof![6 => Just(40_i64), 2 => 1_i64..400, 1 => 1_i64..9000];
    prop::collection::vec((gap, prop::bool::weighted(0.05), prop::bool::weighted(0.03)), 1..400).prop_map(
        |gaps| {
            let mut time = -gaps[0].0;
            let times = gaps.iter().map(|it| {
                time += it.0;
                time
            });
            let which = |of: fn(&(i64, bool, bool)) -> bool| {
                gaps.iter().enumerate().filter(|it| of(it.1)).map(|it| it.0).collect()
            };
            (times.collect(), which(|it| it.1), which(|it| it.2))
        },
    )
}

fn any_cues() -> impl Strategy<Value = Vec<ClipRange>> {
    let cue = (0_i64..120_000, -10_i64..7000)
        .prop_map(|(start_ms, length)| ClipRange { start_ms, end_ms: start_ms + length });
    prop::collection::vec(cue, 0..40)
}

fn any_settings() -> impl Strategy<Value = Segmentation> {
    let min_scene_len = prop_oneof![
        (0_u64..40).prop_map(MinSceneLen::Frames),
        (0_i64..5000).prop_map(|ms| MinSceneLen::Seconds(seconds(ms)))
    ];
    let detector = (min_scene_len, 0..3).prop_map(|(min_scene_len, which)| match which {
        0 => DetectorSettings::Content(ContentSettings { min_scene_len, ..ContentSettings::default() }),
        1 => DetectorSettings::Adaptive(AdaptiveSettings { min_scene_len, ..AdaptiveSettings::default() }),
        _ => DetectorSettings::Threshold(ThresholdSettings {
            min_scene_len,
            add_final_scene: true,
            ..ThresholdSettings::default()
        }),
    });
    let slide_area_percent = prop_oneof![Just(0.0), 0.01..5.0];
    let lengths = [1_i64..30_000, 0_i64..9000, 0_i64..3000].map(|ms| ms.prop_map(seconds));
    (detector, lengths, slide_area_percent, 0..5).prop_map(
        |(detector, [max_clip_seconds, min_clip_seconds, pause_seconds], slide_area_percent, which)| {
            match which {
                0 => Segmentation::Content { preset: None, detector, max_clip_seconds },
                1 => Segmentation::Fixed { every_seconds: max_clip_seconds },
                2 => Segmentation::Subtitle { pause_seconds, min_clip_seconds, max_clip_seconds },
                _ => {
                    let gradual = which > 3;
                    Segmentation::Hybrid {
                        detector,
                        slide_area_percent,
                        gradual,
                        min_clip_seconds,
                        max_clip_seconds,
                    }
                }
            }
        },
    )
}

proptest! {
    #[test]
    fn clips_cover_the_video_exactly_and_none_is_too_long(
        (times, cuts, changes) in any_video(), settings in any_settings(), cues in any_cues(), tail in 1_i64..500,
    ) {
        let duration = times.last().unwrap() + tail;
        let (clips, _) = segment(settings, &cues, &scores(&times, &cuts, &changes), duration);
        prop_assert_eq!(clips.first().map(|c| c.start_ms), Some(0));
        prop_assert_eq!(clips.last().map(|c| c.end_ms), Some(duration));
        prop_assert!(clips.windows(2).all(|pair| pair[0].end_ms == pair[1].start_ms));
        let longest = settings.max_clip_ms();
        prop_assert!(clips.iter().all(|c| c.end_ms > c.start_ms && c.end_ms - c.start_ms <= longest));
    }

    #[test]
    fn with_a_minimum_no_clip_is_shorter(
        (times, cuts, changes) in any_video(), cues in any_cues(), tail in 1_i64..500,
        max_clip_ms in 1000_i64..30_000, part in 4_i64..20, speech: bool,
    ) {
        let duration = times.last().unwrap() + tail;
        let min_clip_ms = max_clip_ms / part;
        let settings = if speech { subtitle(min_clip_ms, max_clip_ms) } else { hybrid(min_clip_ms, max_clip_ms) };
        let (clips, _) = segment(settings, &cues, &scores(&times, &cuts, &changes), duration);
        let shortest = clips.iter().map(|c| c.end_ms - c.start_ms).min().unwrap();
        prop_assert!(clips.len() == 1 || shortest >= min_clip_ms, "{clips:?}");
    }

    #[test]
    fn what_was_kept_gives_the_same_clips(
        (times, cuts, changes) in any_video(), settings in any_settings(), cues in any_cues(), tail in 1_i64..500,
    ) {
        let duration = times.last().unwrap() + tail;
        let scores = scores(&times, &cuts, &changes);
        let mut writer = CurveWriter::new(false);
        scores.iter().for_each(|it| writer.push(it));
        let curve = Curve::read(&writer.finish(duration)).unwrap();
        prop_assert_eq!(curve.clips(settings, &cues), segment(settings, &cues, &scores, duration).0);
    }

    #[test]
    fn subtitles_never_cut_through_a_cue_where_there_is_a_pause_in_reach(
        gaps in prop::collection::vec((0_i64..3000, 300_i64..4000), 1..60), tail in 1_i64..9000,
    ) {
        let mut at = 0;
        let cues: Vec<ClipRange> = gaps.iter().map(|&(gap, length)| {
            let start_ms = at + gap;
            at = start_ms + length;
            ClipRange { start_ms, end_ms: at }
        }).collect();
        let duration = at + tail;
        let times: Vec<i64> = (0..duration).step_by(500).collect();
        let (clips, _) = segment(subtitle(1000, 20_000), &cues, &scores(&times, &[], &[]), duration);
        let inside = |at: i64| cues.iter().any(|cue| cue.start_ms < at && at < cue.end_ms);
        prop_assert!(clips.iter().all(|clip| !inside(clip.start_ms)), "{clips:?}");
    }

    #[test]
    fn without_cuts_no_clip_is_shorter_than_half_the_maximum(
        frames in 1_i64..2000, spacing in 1_i64..100, max_clip_ms in 1000_i64..30_000,
    ) {
        let times: Vec<i64> = (0..frames).map(|i| i * spacing).collect();
        let (clips, _) = segment(content(max_clip_ms), &[], &scores(&times, &[], &[]), frames * spacing);
        let shortest = clips.iter().map(|c| c.end_ms - c.start_ms).min().unwrap();
        prop_assert!(clips.len() == 1 || shortest >= max_clip_ms / 2 - spacing, "{clips:?}");
    }
}
