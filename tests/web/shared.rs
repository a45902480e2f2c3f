//! What is given to people without a key plays at the right second: shared reels, and code to embed.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::Setting;
use crate::films::{self, COLOURS, H264, Recipe, scene_start};
use crate::library::text;
use crate::page::{ENTER, KEEP_COPIES, Page};
use crate::playback::check_picture;

const KEY: &str = "who-shares";

/// Films whose first frame is late on the container's clock. Browsers play the first; the other has a rendition.
const LATE: [Recipe; 2] = [
    Recipe { delay: 1.075, ..Recipe::plain("late.mp4") },
    Recipe { file: "late_too.mkv", delay: 1.075, sound: true, encoder: H264 },
];

/// The range of each film that is given away: a scene and a half.
const SCENES: [usize; 2] = [2, 4];

struct Film {
    id: String,
    file: PathBuf,
    /// The first frame's time on the container's clock.
    offset: f64,
    start: f64,
    end: f64,
    /// Whether its rendition plays, whose clock starts at the first frame.
    rendition: bool,
}

impl Film {
    /// The first frame's time on the clock of what plays.
    fn clock(&self) -> f64 {
        if self.rendition { 0.0 } else { self.offset }
    }

    /// Checks that a media element shows the first frame of the range.
    async fn check(&self, page: &Page, css: &str) {
        let what = self.file.display().to_string();
        let (_, frames) = films::frames(&self.file);
        let at = self.start + self.clock();
        let shows = format!(
            "((it) => it?.readyState >= 2 && !it.seeking && Math.abs(it.currentTime - {at}) < 0.02)(document.querySelector('{css}'))"
        );
        page.until(&format!("{what} stands at {at} s"), &shows).await;
        let shown = page.look_at(css).await;
        assert_eq!(shown.source.contains("rendition=web"), self.rendition, "{what}: {}", shown.source);
        check_picture(&shown, &frames, self.start, 0, &what);
    }

    /// The code to embed the range, as the page copies it.
    async fn code(&self, page: &Page) -> String {
        page.open(&format!("/v/{}?in={}&out={}", self.id, self.start, self.end)).await;
        page.player_settled().await;
        page.run(KEEP_COPIES, Value::Null).await;
        page.click("#more").await;
        page.choose("Copy code to embed").await;
        page.until("the code is copied", "window.copied").await;
        page.until_message("It works until").await;
        page.text("window.copied").await
    }
}

/// Adds the films through the page, which then has the key.
async fn add(page: &Page, folder: &Path) -> Option<Vec<Film>> {
    let files: Option<Vec<_>> = LATE.iter().map(|recipe| films::make(folder, recipe, &COLOURS)).collect();
    let files = files?;
    page.open("/").await;
    page.type_into("#key-needed #key", &format!("{KEY}{ENTER}")).await;
    page.until_heading("Nothing here yet").await;
    let paths: Vec<&Path> = files.iter().map(PathBuf::as_path).collect();
    page.choose_files(".home .drop input[accept]", &paths).await;
    page.until_added(2).await;
    let stored = with_key(page, "GET", "/v1/videos", &Value::Null).await;
    let film = |(file, scene): (PathBuf, usize)| {
        let name = file.file_name().expect("a name").to_string_lossy().into_owned();
        let videos = stored["items"].as_array().expect("videos");
        let video = videos.iter().find(|it| it["file_name"] == name).expect("it was added");
        let offset = video["media_offset"].as_f64().expect("an offset");
        assert!((1.0..1.1).contains(&offset), "{video}");
        let start = scene_start(scene);
        let rendition = video["plays_in_browsers"] == false;
        Film { id: text(&video["id"]), file, offset, start, end: start + 1.5, rendition }
    };
    let films: Vec<_> = files.into_iter().zip(SCENES).map(film).collect();
    assert_eq!(films.iter().map(|it| it.rendition).collect::<Vec<_>>(), [false, true]);
    Some(films)
}

async fn with_key(page: &Page, method: &str, path: &str, body: &Value) -> Value {
    let server = page.host.server();
    let request = server.request(method, path).bearer_auth(KEY);
    let request = if body.is_null() { request } else { request.json(body) };
    let (status, answer) = server.send(request).await;
    assert!(status.is_success(), "{method} {path}: {status} {answer}");
    answer
}

/// Makes the browser another person's: no key and no cookie.
async fn forget_the_key(page: &Page) {
    page.run("sessionStorage.clear(); localStorage.clear()", Value::Null).await;
    page.client.delete_all_cookies().await.expect("no cookies");
}

#[tokio::test]
async fn late_films_play_at_the_right_second_for_people_without_a_key() {
    crate::visit(Setting { key: Some(KEY), ..Setting::default() }, async |page, folder| {
        let Some(films) = add(page, folder).await else { return };
        let range = |it: &Film| json!({"video_id": it.id, "start": it.start, "end": it.end});
        let reel = json!({"name": "Late", "ranges": films.iter().map(range).collect::<Vec<_>>()});
        let reel = text(&with_key(page, "POST", "/v1/reels", &reel).await["id"]);
        let link = with_key(page, "POST", &format!("/v1/reels/{reel}/links"), &json!({})).await;
        let mut codes = Vec::new();
        for film in &films {
            codes.push(film.code(page).await);
        }
        forget_the_key(page).await;
        page.open(&format!("/shared/{reel}?{}", text(&link["query"]))).await;
        page.until_heading("Late").await;
        films[0].check(page, ".screen video:not(.away)").await;
        page.press(&['n']).await;
        page.until("the second clip", "document.querySelector('.shared-clips li:last-child .reelrow.on')")
            .await;
        films[1].check(page, ".screen video:not(.away)").await;
        for (film, code) in films.iter().zip(&codes) {
            check_embedded(page, film, code).await;
        }
    })
    .await;
}

/// Puts the code on a page that is not of ours and has no key.
async fn check_embedded(page: &Page, film: &Film, code: &str) {
    page.open("/livez").await;
    page.run("document.body.innerHTML = arguments[0]", json!(code)).await;
    film.check(page, "video").await;
    let ends = page.number("Number(document.querySelector('video').src.split(',').at(-1))").await;
    assert!((ends - film.end - film.clock()).abs() < 0.001, "{code}");
}
