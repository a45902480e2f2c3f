//! A library with a bit of everything, made over the API, so that no screen is empty.

use std::path::{Path, PathBuf};

use reqwest::StatusCode;
use serde_json::{Value, json};

use crate::films::{self, COLOURS, Recipe};
use crate::page::Page;

/// What is said in [`Library::lecture`], as (second, sentence).
pub(crate) const SAID: [(usize, &str); 6] = [
    (1, "today we look at the bias of an estimator"),
    (3, "a shrunken estimate is often closer to the truth"),
    (5, "the variance falls when there are more samples"),
    (7, "that trade is called the bias variance dilemma"),
    (9, "regularisation moves the balance on purpose"),
    (10, "next week we talk about cross validation"),
];

/// Ids of what is stored.
pub(crate) struct Library {
    /// A film of six scenes.
    pub(crate) film: String,
    /// Three scenes with subtitles, in a folder, tagged.
    pub(crate) lecture: String,
    /// A reel of two ranges.
    pub(crate) reel: String,
}

/// Lines of subtitles as a SubRip file; each lasts two seconds at most.
pub(crate) fn subrip(lines: &[(usize, &str)]) -> String {
    let clock =
        |seconds: usize| format!("{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60);
    let cue = |(number, (start, text)): (usize, &(usize, &str))| {
        let end = lines.get(number + 1).map_or(start + 2, |(next, _)| (*next).min(start + 4));
        format!("{}\n{},000 --> {},000\n{text}\n\n", number + 1, clock(*start), clock(end))
    };
    lines.iter().enumerate().map(cue).collect()
}

/// Adds a film without the page. Returns the video's id.
pub(crate) async fn add(page: &Page, file: &Path) -> String {
    let video = page.host.server().ingest(file).await;
    text(&video["id"])
}

/// Renders a film of these scenes and adds it without the page. Returns its id and its file.
pub(crate) async fn add_film(
    page: &Page,
    folder: &Path,
    recipe: &Recipe,
    colours: &[&str],
) -> Option<(String, PathBuf)> {
    let file = films::make(folder, recipe, colours)?;
    Some((add(page, &file).await, file))
}

/// Adds subtitles to a video without the page.
pub(crate) async fn add_subtitles(page: &Page, id: &str, language: &str, body: String) {
    let server = page.host.server();
    let request = server.request("PUT", &format!("/v1/videos/{id}/subtitles/{language}")).body(body);
    let (status, answer) = server.send(request).await;
    assert_eq!(status, StatusCode::OK, "{answer}");
}

/// Changes tags and folder of a video without the page.
pub(crate) async fn label(page: &Page, id: &str, labels: &Value) {
    let server = page.host.server();
    let request = server.request("PATCH", &format!("/v1/videos/{id}")).json(labels);
    let (status, answer) = server.send(request.header("If-Match", "*")).await;
    assert_eq!(status, StatusCode::OK, "{answer}");
}

/// Stores a reel without the page. Returns its id.
pub(crate) async fn add_reel(page: &Page, name: &str, ranges: Value) -> String {
    let (_, reel) = page.host.server().post("/v1/reels", &json!({"name": name, "ranges": ranges})).await;
    text(&reel["id"])
}

/// Fills the library; `None` if ffmpeg lacks an encoder.
pub(crate) async fn furnish(page: &Page, folder: &Path) -> Option<Library> {
    let (film, _) = add_film(page, folder, &Recipe::plain("long_jump.mp4"), &COLOURS).await?;
    let server = page.host.server();
    let alert = json!({"name": "Blue rooms", "search": {"query": {"text": "a blue room"}}});
    assert_eq!(server.post("/v1/alerts", &alert).await.0, StatusCode::CREATED);
    let name = "a_very_long_name_without_a_single_space_in_it_that_no_line_of_a_phone_can_hold.mp4";
    let (lecture, _) = add_film(page, folder, &Recipe::plain(name), &TWINS).await?;
    add_subtitles(page, &lecture, "en", subrip(&SAID)).await;
    label(page, &lecture, &json!({"tags": ["statistics"], "folder": "lectures/week 6"})).await;
    let range = |id: &str, start: f64| json!({"video_id": id, "start": start, "end": start + 1.5});
    let reel = add_reel(page, "Best of the day", json!([range(&film, 0.0), range(&lecture, 4.0)])).await;
    let (_, export) = server.post("/v1/exports", &json!({"format": "csv", "reel_id": reel})).await;
    assert_eq!(server.job_end(&text(&export["id"])).await["state"], "succeeded");
    let hook = json!({"url": "https://example.com/hooks", "events": ["alert.matched"], "description": "Tells the desk"});
    assert_eq!(server.post("/v1/webhooks", &hook).await.0, StatusCode::CREATED);
    let letter = folder.join("letter.mp4");
    std::fs::write(&letter, "this is no film\n").expect("a text file");
    let (status, refusal) = server.upload(&letter, &[]).await;
    assert_eq!(status, StatusCode::UNSUPPORTED_MEDIA_TYPE, "{refusal}");
    server.search(&json!({"query": {"text": "a yellow room"}, "limit": 10})).await;
    Some(Library { film, lecture, reel })
}

/// Scenes 0 and 3 look alike; the others don't.
pub(crate) const TWINS: [&str; 6] = [COLOURS[0], COLOURS[1], COLOURS[2], COLOURS[0], COLOURS[3], COLOURS[4]];

/// A JSON string's text.
pub(crate) fn text(value: &Value) -> String {
    value.as_str().unwrap_or_else(|| panic!("{value} is no text")).to_owned()
}
