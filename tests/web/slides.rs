//! A lecture of slides on the page: its titles are chapters of the transcript.

use reprise_tests::written::{Look, Slide, can_read, written};
use serde_json::json;

use crate::Setting;
use crate::page::Page;

/// Slides of a title and three lines, each shown for [`SECONDS`].
const SLIDES: [[&str; 4]; 3] = [
    ["Gradient descent", "Follow the slope downhill", "Small steps are slow", "Large steps overshoot"],
    ["Regularisation", "Punish large weights", "Stop training early", "Drop some neurons"],
    ["Cross validation", "Divide the data in five", "Train on four parts", "Judge on the last one"],
];
const SECONDS: u32 = 4;

#[tokio::test]
async fn titles_of_slides_are_chapters() {
    if !can_read() {
        return reprise_tests::skip("needs tesseract with English, and an ffmpeg that draws text");
    }
    crate::visit(Setting::default(), async |page, folder| {
        let slides = SLIDES.each_ref().map(|lines| Slide { lines, seconds: SECONDS });
        let film = written(folder, "slides", &Look { size: (640, 360), ..Look::default() }, &slides);
        let id = read(page, &film).await;
        page.open(&format!("/v/{id}?tab=transcript")).await;
        page.player_settled().await;
        chapters(page).await;
    })
    .await;
}

/// Adds the film and reads it; returns its id.
async fn read(page: &Page, film: &std::path::Path) -> String {
    let server = page.host.server();
    let id = server.ingest(film).await["id"].as_str().expect("an id").to_owned();
    let (_, asked) = server.post(&format!("/v1/videos/{id}/read-text"), &json!({})).await;
    let ended = server.job_end(asked["job"]["id"].as_str().expect("a job")).await;
    assert_eq!(ended["state"], "succeeded", "{ended}");
    id
}

async fn chapters(page: &Page) {
    page.until_count("#transcript .cue[data-place]", SLIDES.len() * SLIDES[0].len()).await;
    let titles = "[...document.querySelectorAll('#transcript h2 .cue')].map((it) => it.lastElementChild.textContent).join('; ')";
    assert_eq!(page.text(titles).await, "Gradient descent; Regularisation; Cross validation");
    page.click("#transcript h2:last-of-type .cue").await;
    let start = f64::from(2 * SECONDS);
    page.until("the chapter begins", &format!("Math.abs(player.currentTime - {start}) < 1")).await;
    page.picture("slides-chapters").await;
}
