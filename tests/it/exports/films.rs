//! Films: the right frames at every rate, sizes and sounds of several videos, copies, zips.

use std::process::Command;

use reprise_tests::film::ffprobe;
use reprise_tests::numbered::{Numbered, numbers};
use reprise_tests::skip;
use serde_json::{Value, json};

use super::{Studio, VARIABLE, at, named, range};

/// Sound by name, or the video stream.
fn stream(film: &std::path::Path, kind: &str) -> Option<Value> {
    let probed = ffprobe(film);
    probed["streams"].as_array().unwrap().iter().find(|it| it["codec_type"] == kind).cloned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_exact_film_holds_the_asked_frames_at_every_rate() {
    let studio = Studio::open();
    for rate in [(24_000, 1001), (25, 1), (30_000, 1001), (50, 1), (60_000, 1001)] {
        let more = ["-g", "40"];
        let film = Numbered { rate: &named(rate), frames: 200, more: &more, ..Numbered::default() };
        for container in ["mp4", "mkv", "ts"] {
            let name = format!("{}-{container}.{container}", rate.0);
            let video = studio.film(&name, film).await;
            let asked = [(0, 1), (33, 61), (90, 181)];
            let ranges: Vec<Value> =
                asked.iter().map(|&(first, end)| range(&video, at(first, rate), at(end, rate))).collect();
            let made = studio.export(&json!({"format": "mp4", "ranges": ranges})).await;
            let expected: Vec<usize> =
                asked.iter().flat_map(|&(first, end)| first as usize..end as usize).collect();
            assert_eq!(numbers(&made.file), expected, "{name}: {}", made.answer);
            let shown = stream(&made.file, "video").unwrap();
            assert_eq!(shown["avg_frame_rate"], named(rate), "{name}");
            for (place, &(first, end)) in asked.iter().enumerate() {
                let told = &made.answer["ranges"][place];
                assert_eq!(
                    (&told["start"], &told["end"]),
                    (&json!(at(first, rate)), &json!(at(end, rate))),
                    "{name}"
                );
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_exact_film_of_a_variable_rate_is_right_within_a_frame() {
    let studio = Studio::open();
    let video = studio.film("variable.mp4", VARIABLE).await;
    let request = json!({"format": "mp4", "ranges": [range(&video, 1.6, 4.0)], "frame_rate": "25"});
    let made = studio.export(&request).await;
    let shown = numbers(&made.file);
    assert_eq!(shown.len(), 60, "{}", made.answer);
    for (place, number) in shown.into_iter().enumerate() {
        let expected = place + 40;
        let expected = if expected < 50 { expected } else { expected / 5 * 5 };
        assert!(number.abs_diff(expected) <= 1, "frame {place} shows {number}, not {expected}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_copy_goes_from_key_frame_to_key_frame_and_says_so() {
    let studio = Studio::open();
    let more = ["-g", "20", "-keyint_min", "20", "-sc_threshold", "0", "-bf", "2", "-c:a", "aac"];
    for container in ["mp4", "mkv", "ts"] {
        let film = Numbered { frames: 200, sound: true, more: &more, ..Numbered::default() };
        let video = studio.film(&format!("copied-{container}.{container}"), film).await;
        let ranges = [range(&video, 1.0, 1.4), range(&video, 2.4, 3.2), range(&video, 7.6, 99.0)];
        let request = json!({"format": "mp4", "cut": "copy", "files": "each", "ranges": ranges});
        let made = studio.export(&request).await;
        let told: Vec<Value> = made.answer["ranges"]
            .as_array()
            .unwrap()
            .iter()
            .map(|it| json!([it["start"], it["end"]]))
            .collect();
        assert_eq!(told, [json!([0.8, 1.6]), json!([2.4, 3.2]), json!([7.2, 8.0])], "{container}");
        let Some(films) = unzipped(&studio, &made.file) else { return };
        let shown: Vec<(usize, usize)> = films
            .iter()
            .map(|film| {
                let numbers = numbers(film);
                (numbers[0], numbers[numbers.len() - 1])
            })
            .collect();
        assert_eq!(shown, [(20, 39), (60, 79), (180, 199)], "{container}");
        assert!(films.iter().all(|film| stream(film, "audio").is_some()), "{container}");
        let joined = json!({"format": "mp4", "cut": "copy", "ranges": ranges});
        let joined = numbers(&studio.export(&joined).await.file);
        let expected: Vec<usize> = (20..40).chain(60..80).chain(180..200).collect();
        assert_eq!(joined, expected, "{container}");
    }
}

/// The films of a zip, in order of name, as another program unpacks it; `None` after `skip`.
fn unzipped(studio: &Studio, zip: &std::path::Path) -> Option<Vec<std::path::PathBuf>> {
    let folder = tempfile::tempdir_in(studio.folder.path()).unwrap().keep();
    let script = "import sys, zipfile; zipfile.ZipFile(sys.argv[1]).extractall(sys.argv[2])";
    let done = match Command::new("python3").args(["-c", script]).arg(zip).arg(&folder).status() {
        Ok(done) => done,
        Err(error) => {
            skip(&format!("python3, which unpacks zips, does not start: {error}; run make setup"));
            return None;
        }
    };
    assert!(done.success(), "python3 can't unpack {}: {done}", zip.display());
    let mut films: Vec<_> = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    films.sort();
    Some(films)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn videos_of_different_sizes_rates_and_sounds_become_one_film() {
    let studio = Studio::open();
    let quiet = studio.film("quiet.mp4", Numbered { frames: 60, ..Numbered::default() }).await;
    let loud = Numbered { rate: "50", frames: 100, size: "320x180", sound: true, more: &[] };
    let loud = studio.film("loud.mkv", loud).await;
    let flat = Numbered {
        rate: "30000/1001",
        frames: 90,
        size: "96x96",
        sound: false,
        more: &["-pix_fmt", "yuv422p"],
    };
    let flat = studio.film("flat.mp4", flat).await;
    let ranges = [range(&quiet, 0.4, 1.2), range(&loud, 0.4, 1.2), range(&flat, 0.0, 1.0)];
    let made = studio.export(&json!({"format": "mp4", "title": "é/mixed", "ranges": ranges})).await;
    assert_eq!(made.answer["file"]["name"], "é_mixed.mp4");
    let video = stream(&made.file, "video").unwrap();
    assert_eq!((&video["width"], &video["height"]), (&json!(192), &json!(108)));
    assert_eq!(video["avg_frame_rate"], "25/1");
    assert_eq!(video["nb_read_frames"], (20 + 20 + 25).to_string());
    let shown = numbers(&made.file);
    assert_eq!((shown[0], shown[19]), (10, 29));
    assert!((shown[20].abs_diff(20)) <= 1 && shown[39].abs_diff(58) <= 1, "{shown:?}");
    let sound = stream(&made.file, "audio").unwrap();
    let lasts: f64 = sound["duration"].as_str().unwrap().parse().unwrap();
    assert!((lasts - 2.6).abs() < 0.05, "the sound lasts {lasts} s");
    // The tone sounds where the second video is shown, and nowhere else.
    let loudness: Vec<bool> =
        [(0.1, 0.6), (0.9, 1.5), (1.7, 2.5)].map(|span| is_loud(&made.file, span)).into();
    assert_eq!(loudness, [false, true, false]);

    let each = json!({"format": "mp4", "files": "each", "ranges": ranges});
    let Some(films) = unzipped(&studio, &studio.export(&each).await.file) else { return };
    let rates: Vec<Value> =
        films.iter().map(|film| stream(film, "video").unwrap()["avg_frame_rate"].clone()).collect();
    assert_eq!(rates, ["25/1", "50/1", "30000/1001"]);
    assert_eq!(numbers(&films[1]), (20..60).collect::<Vec<usize>>());
}

/// Whether there is sound in a stretch of a film, in seconds.
fn is_loud(film: &std::path::Path, span: (f64, f64)) -> bool {
    let mut command = Command::new("ffmpeg");
    command
        .args(["-v", "error", "-ss", &span.0.to_string(), "-t", &(span.1 - span.0).to_string(), "-i"])
        .arg(film);
    let output = command.args(["-vn", "-f", "s16le", "-ac", "1", "-"]).output().unwrap();
    assert!(output.status.success() && !output.stdout.is_empty());
    output.stdout.chunks_exact(2).any(|pair| i16::from_le_bytes([pair[0], pair[1]]).unsigned_abs() > 1000)
}
