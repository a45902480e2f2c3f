//! Thumbnails: made by the ingest, so that the route only reads files.

use std::path::{Path, PathBuf};

use reprise_tests::numbered::{Numbered, numbered, numbers};
use reprise_tests::server::Server;
use serde_json::{Value, json};

use crate::faults::bed::{Bed, clips, on_both, text, until};

on_both!(
    the_ingest_makes_the_thumbnails_of_all_clips,
    lost_thumbnails_and_those_of_given_clips_are_made_on_request,
    thumbnails_go_with_their_clips,
);

/// Frames per second of [`film`].
const RATE: f64 = 25.0;

/// A film of ten seconds whose frames show their numbers.
fn film(bed: &Bed) -> PathBuf {
    let film = Numbered { frames: 250, size: "640x360", ..Numbered::default() };
    numbered(bed.folder(), "film.mp4", film)
}

fn in_seconds(seconds: f64) -> Value {
    json!({"policy": "fixed", "params": {"every_seconds": seconds}})
}

/// The ids that name the stored thumbnails.
fn stored(bed: &Bed) -> Vec<String> {
    let files = std::fs::read_dir(bed.data().join("thumbnails")).unwrap();
    let name = |file: std::io::Result<std::fs::DirEntry>| file.unwrap().file_name().into_string().unwrap();
    files.map(name).map(|name| name.replace(".jpg", "")).collect()
}

/// Waits until so many thumbnails are stored: they follow the end of the job.
async fn has_stored(bed: &Bed, count: usize) {
    until("the thumbnails are stored", async || (stored(bed).len() == count).then_some(())).await;
}

/// Downloads a thumbnail, and checks that its frame begins half a second and a frame from the middle at most. Returns its file.
async fn check(server: &Server, folder: &Path, path: &str, middle: f64) -> PathBuf {
    let answer = server.request("GET", path).send().await.unwrap();
    assert_eq!(
        (answer.status().as_u16(), &answer.headers()["content-type"]),
        (200, &"image/jpeg".parse().unwrap())
    );
    let file = folder.join("thumbnail.jpg");
    std::fs::write(&file, answer.bytes().await.unwrap()).unwrap();
    let shown = numbers(&file)[0] as f64 / RATE;
    assert!((shown - middle).abs() <= 0.54, "{path}: {shown} s is not near {middle} s");
    file
}

async fn check_clips(server: &Server, bed: &Bed, video: &str) {
    for clip in clips(server, video).await {
        let (start, end) = (clip["start"].as_f64().unwrap(), clip["end"].as_f64().unwrap());
        let path = format!("/v1/clips/{}/thumbnail", text(&clip, "/id"));
        check(server, bed.folder(), &path, (start + end) / 2.0).await;
    }
}

async fn the_ingest_makes_the_thumbnails_of_all_clips(bed: &Bed) {
    let server = bed.start(&[]);
    let video = server.ingest_with(&film(bed), &[("segmentation", in_seconds(1.6))]).await;
    let id = text(&video, "/id");
    let found = clips(&server, id).await.len();
    assert!(found >= 6, "{found} clips");
    has_stored(bed, found + 1).await;
    let before = bed.runs();
    check_clips(&server, bed, id).await;
    let file = check(&server, bed.folder(), &format!("/v1/videos/{id}/thumbnail"), 5.0).await;
    assert_eq!(bed.runs(), before, "the route starts no ffmpeg");
    let stream = &reprise_tests::film::ffprobe(&file)["streams"][0];
    assert_eq!((&stream["width"], &stream["height"]), (&json!(480), &json!(270)));
    assert_eq!(stored(bed).len(), found + 1);
}

async fn lost_thumbnails_and_those_of_given_clips_are_made_on_request(bed: &Bed) {
    let server = bed.start(&[]);
    let video = server.ingest_with(&film(bed), &[("segmentation", in_seconds(2.0))]).await;
    let id = text(&video, "/id");
    has_stored(bed, clips(&server, id).await.len() + 1).await;
    std::fs::remove_dir_all(bed.data().join("thumbnails")).unwrap();
    std::fs::create_dir(bed.data().join("thumbnails")).unwrap();
    let given = json!({"start": 3.0, "end": 4.0});
    let (status, _) = server.post(&format!("/v1/videos/{id}/clips"), &given).await;
    assert_eq!(status, 202);
    let before = bed.runs().len();
    check_clips(&server, bed, id).await;
    let made = clips(&server, id).await.len();
    assert_eq!((stored(bed).len(), bed.runs().len() > before), (made, true));
}

async fn thumbnails_go_with_their_clips(bed: &Bed) {
    let server = bed.start(&[]);
    let video = server.ingest_with(&film(bed), &[("segmentation", in_seconds(1.0))]).await;
    let id = text(&video, "/id");
    has_stored(bed, clips(&server, id).await.len() + 1).await;
    let (status, job) = server.post(&format!("/v1/videos/{id}/resegment"), &in_seconds(4.0)).await;
    assert!(status.is_success(), "{job}");
    let old = stored(bed);
    let job = job["id"].as_str().or(job["job"]["id"].as_str()).unwrap_or_else(|| panic!("no job in {job}"));
    assert_eq!(server.job_end(job).await["state"], "succeeded");
    let gone = async || old.iter().all(|it| it == id || !stored(bed).contains(it)).then_some(());
    until("the thumbnails of the old clips are removed", gone).await;
    check_clips(&server, bed, id).await;
    assert_eq!(server.delete(&format!("/v1/videos/{id}?purge=true")).await.0, 204);
    until("all thumbnails are purged", async || stored(bed).is_empty().then_some(())).await;
}
