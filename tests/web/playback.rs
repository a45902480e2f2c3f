//! Every source plays at the right time, with any clock, and with or without browser support for its codec.

use std::path::Path;

use reprise_tests::test_data;

use crate::Setting;
use crate::films::{self, COLOURS, Frame, H264, Recipe, SCENE_FRAMES};
use crate::library;
use crate::page::{LEFT, Page, RIGHT, Shown, frame_at};

/// Largest difference of equal pictures: browsers and ffmpeg convert colours slightly differently.
const SAME: f64 = 2.0;

/// Checks that the player shows the frame at `seconds` of the file, within `slack` frames.
pub(crate) fn check_picture(shown: &Shown, frames: &[Frame], seconds: f64, slack: usize, what: &str) {
    let expected = frame_at(frames, seconds);
    let differences: Vec<f64> =
        frames.iter().map(|frame| films::difference(&frame.picture, &shown.picture)).collect();
    let near = expected.saturating_sub(slack)..=(expected + slack).min(frames.len() - 1);
    let (best, least) = differences
        .iter()
        .copied()
        .enumerate()
        .min_by(|one, other| one.1.total_cmp(&other.1))
        .expect("frames");
    let nearest = differences[near].iter().copied().fold(f64::INFINITY, f64::min);
    assert!(
        nearest <= least + SAME,
        "{what}: at {seconds} s the picture is frame {best} ({least:.1}), not frame {expected} ({nearest:.1})"
    );
}

/// Opens a file at the API's time of each frame and compares the player's picture with that frame.
async fn check(page: &Page, file: &Path, rendition: bool, wanted: &[usize]) {
    let what = file.display().to_string();
    let id = library::add(page, file).await;
    let (offset, frames) = films::frames(file);
    for &frame in wanted {
        let seconds = (frames[frame].seconds * 1000.0 + 1e-6).floor() / 1000.0;
        page.open(&format!("/v/{id}?t={seconds}")).await;
        page.player_settled().await;
        let shown = page.look().await;
        assert_eq!(shown.source.contains("rendition=web"), rendition, "{what}: {}", shown.source);
        // The rendition's clock starts at the first frame; the original has the container's clock.
        let clock = if rendition { shown.element_seconds } else { shown.element_seconds - offset };
        assert!(
            (clock - seconds).abs() < 0.02,
            "{what}: asked for {seconds} s, the player stands at {clock} s"
        );
        check_picture(&shown, &frames, seconds, 0, &what);
        check_timecode(page, seconds, &what).await;
    }
    step_by_frames(page, &id, &frames, &what).await;
}

/// The time below the player is that of the frame on screen. Containers with whole milliseconds round it.
async fn check_timecode(page: &Page, seconds: f64, what: &str) {
    let shown = "document.querySelector('#timecode .at').textContent.split(':').reduce((sum, part) => sum * 60 + Number(part), 0)";
    let near = format!("Math.abs({shown} - {seconds}) < 0.0015");
    page.until(&format!("{what}: the time code of {seconds} s"), &near).await;
}

/// Two steps on and one back show the neighbours of a frame at a cut.
async fn step_by_frames(page: &Page, id: &str, frames: &[Frame], what: &str) {
    let from = (2 * SCENE_FRAMES - 1).min(frames.len() - 4);
    let seconds = |frame: usize| (frames[frame].seconds * 1000.0 + 1e-6).floor() / 1000.0;
    page.open(&format!("/v/{id}?t={}", seconds(from))).await;
    page.player_settled().await;
    for (key, frame) in [(RIGHT, from + 1), (RIGHT, from + 2), (LEFT, from + 1)] {
        page.press(&[key]).await;
        check_timecode(page, seconds(frame), what).await;
        page.player_settled().await;
        check_picture(&page.look().await, frames, seconds(frame), 0, what);
    }
}

/// The first frame, the first and the last frame of a scene, and the middle of the last scene.
const TELLING: [usize; 4] = [0, 2 * SCENE_FRAMES, 3 * SCENE_FRAMES - 1, 5 * SCENE_FRAMES + SCENE_FRAMES / 2];

async fn check_film(recipe: Recipe, rendition: bool) {
    crate::visit(Setting::default(), async |page, folder| {
        let Some(file) = films::make(folder, &recipe, &COLOURS) else { return };
        check(page, &file, rendition, &TELLING).await;
    })
    .await;
}

#[tokio::test]
async fn a_film_that_starts_at_zero_plays_at_the_right_second() {
    check_film(Recipe::plain("plain.mp4"), false).await;
}

#[tokio::test]
async fn a_silent_film_with_a_delayed_start_plays_at_the_right_second() {
    check_film(Recipe { delay: 1.075, ..Recipe::plain("delayed.mp4") }, false).await;
}

#[tokio::test]
async fn a_film_whose_sound_starts_before_its_picture_plays_at_the_right_second() {
    check_film(Recipe { delay: 1.075, sound: true, ..Recipe::plain("sound_first.mp4") }, false).await;
}

#[tokio::test]
async fn a_film_whose_clock_starts_at_an_hour_plays_at_the_right_second() {
    let encoder =
        &["-c:v", "libvpx-vp9", "-deadline", "realtime", "-cpu-used", "8", "-g", "30", "-pix_fmt", "yuv420p"];
    check_film(Recipe { file: "hour.webm", delay: 3600.0, sound: false, encoder }, false).await;
}

#[tokio::test]
async fn a_ten_bit_hevc_film_plays_as_a_rendition_at_the_right_second() {
    let encoder = &[
        "-c:v",
        "libx265",
        "-preset",
        "ultrafast",
        "-x265-params",
        "log-level=none",
        "-pix_fmt",
        "yuv420p10le",
    ];
    check_film(Recipe { file: "ten_bit.mp4", delay: 0.0, sound: false, encoder }, true).await;
}

#[tokio::test]
async fn an_avi_film_plays_as_a_rendition_at_the_right_second() {
    let encoder = &["-c:v", "mpeg4", "-q:v", "2", "-c:a", "pcm_s16le"];
    check_film(Recipe { file: "old.avi", delay: 0.0, sound: true, encoder }, true).await;
}

#[tokio::test]
async fn an_mkv_film_with_a_delayed_start_plays_as_a_rendition_at_the_right_second() {
    check_film(Recipe { file: "delayed.mkv", delay: 1.075, sound: true, encoder: H264 }, true).await;
}

async fn check_real(name: &str, rendition: bool, wanted: &[usize]) {
    let Some(file) = test_data(name) else { return };
    crate::visit(Setting::default(), async |page, _| check(page, &file, rendition, wanted).await).await;
}

#[tokio::test]
async fn a_real_file_with_a_delayed_start_plays_at_the_right_second() {
    check_real("video/odd/psd_delayed_start.mp4", true, &[0, 10, 22]).await;
}

#[tokio::test]
async fn a_real_ten_bit_hevc_file_plays_at_the_right_second() {
    check_real("video/derived/hevc10_coffee.mp4", true, &[0, 45, 114]).await;
}

#[tokio::test]
async fn a_real_avi_file_plays_at_the_right_second() {
    check_real("video/odd/mma_test.avi", true, &[0, 63, 160]).await;
}

/// Checks that a cue of the file appears with its frame, on any clock of the player.
async fn check_captions(recipe: Recipe) {
    crate::visit(Setting::default(), async |page, folder| {
        let delay = recipe.delay;
        let Some(file) = films::make(folder, &recipe, &COLOURS) else { return };
        let id = library::add(page, &file).await;
        let cue = format!("00:{:06.3} --> 00:{:06.3}\nGrüße & <Küsse>", delay + 1.0, delay + 1.5);
        library::add_subtitles(page, &id, "de", cue).await;
        page.open(&format!("/v/{id}?t=0.5")).await;
        page.player_settled().await;
        let shown = page.look().await;
        page.until("captions are offered", "document.querySelector('#player track')").await;
        let track = "document.querySelector('#player').textTracks[0]";
        assert_eq!(page.text(&format!("{track}.kind + ' ' + {track}.language")).await, "captions de");
        page.press(&['t']).await;
        page.until("the captions are there", &format!("{track}.cues && {track}.cues.length === 1")).await;
        let start = page.number(&format!("{track}.cues[0].startTime")).await;
        assert!((start - shown.element_seconds - 0.5).abs() < 0.02, "{start} s beside {shown:?}");
        let text = page.text(&format!("{track}.cues[0].getCueAsHTML().textContent")).await;
        assert_eq!(text, "Grüße & <Küsse>");
    })
    .await;
}

#[tokio::test]
async fn captions_of_a_film_with_a_delayed_start_are_shown_at_the_right_second() {
    check_captions(Recipe { delay: 1.075, ..Recipe::plain("delayed.mp4") }).await;
}

#[tokio::test]
async fn captions_of_a_rendition_are_shown_at_the_right_second() {
    check_captions(Recipe { file: "delayed.mkv", delay: 1.075, sound: true, encoder: H264 }).await;
}
