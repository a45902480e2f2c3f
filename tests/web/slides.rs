//! A lecture of slides on the page: its titles are chapters of the transcript, and what is found is framed.

use reprise_tests::written::{Look, Slide, can_read, written};
use serde_json::{Value, json};

use crate::Setting;
use crate::page::{ENTER, Page};

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

/// How far a frame may be off, in pixels of the window.
const OFF: f64 = 3.0;
/// The frame around a line, the picture inside the player as (left, top, width, height), the letters inside the frame, and
/// those under its border, in pixels of the picture.
const FRAMED: &str = "(() => {
    const frames = document.querySelectorAll('.text-boxes > i');
    if (frames.length !== 1) return null;
    const [frame, outer] = [frames[0].getBoundingClientRect(), player.getBoundingClientRect()];
    const scale = Math.min(outer.width / player.videoWidth, outer.height / player.videoHeight);
    const [width, height] = [player.videoWidth * scale, player.videoHeight * scale];
    const [left, top] = [outer.left + (outer.width - width) / 2, outer.top + (outer.height - height) / 2];
    const canvas = document.createElement('canvas');
    [canvas.width, canvas.height] = [player.videoWidth, player.videoHeight];
    const context = canvas.getContext('2d');
    context.drawImage(player, 0, 0);
    const [x, y] = [(frame.left - left) / scale, (frame.top - top) / scale].map(Math.round);
    const [wide, high] = [frame.width / scale, frame.height / scale].map(Math.round);
    const { data } = context.getImageData(x, y, wide, high);
    const dark = (column, row) => data[4 * (row * wide + column)] < 100;
    let [inside, border] = [0, 0];
    for (let row = 0; row < high; row += 1) for (let column = 0; column < wide; column += 1) {
        if (!dark(column, row)) continue;
        inside += 1;
        if (row === 0 || column === 0 || row === high - 1 || column === wide - 1) border += 1;
    }
    return { frame: [frame.left, frame.top, frame.width, frame.height], picture: [left, top, width, height], inside, border };
})()";

#[tokio::test]
async fn a_line_that_was_found_is_framed_where_it_stands() {
    if !can_read() {
        return reprise_tests::skip("needs tesseract with English, and an ffmpeg that draws text");
    }
    crate::visit(Setting::default(), async |page, folder| {
        let slides = SLIDES.each_ref().map(|lines| Slide { lines, seconds: SECONDS });
        let film = written(folder, "slides", &Look { size: (640, 360), ..Look::default() }, &slides);
        read(page, &film).await;
        let asked = json!({"query": {"text": "punish"}, "sources": ["screen"]});
        let evidence = page.host.server().search_hits(asked).await[0]["evidence"][0].clone();
        let start = evidence["start"].as_f64().expect("a time");
        page.open("/").await;
        page.until("the box has the focus", "document.activeElement.matches('.ask textarea')").await;
        page.choose("Everywhere").await;
        page.choose("Written").await;
        page.click(".home .ask textarea").await;
        page.type_keys("punish").await;
        page.press(&[ENTER]).await;
        page.until_results().await;
        page.until_address("&sources=screen").await;
        page.until("the line is quoted", "document.querySelector('[data-place=\"0\"] .snip mark')").await;
        page.click(".results [data-place='0'] a.thumb").await;
        page.player_settled().await;
        page.until("the hit is listed", "document.querySelector('#hits .hitrow')").await;
        page.press(&['1']).await;
        page.until("the slide begins", &format!("Math.abs(player.currentTime - {start}) < 0.05")).await;
        page.player_settled().await;
        until_framed(page, &evidence).await;
        page.picture("slides-framed").await;
        for (width, height) in [(1100, 1000), (1500, 800)] {
            page.client.set_window_size(width, height).await.expect("another size");
            until_framed(page, &evidence).await;
        }
    })
    .await;
}

/// Waits until the frame lies around the line of the evidence, as far as the picture is large.
async fn until_framed(page: &Page, evidence: &Value) {
    let side = |name: &str| evidence["box"][name].as_f64().expect("a side");
    let [left, top, width, height] = ["left", "top", "width", "height"].map(side);
    let near = format!(
        "(({{ frame, picture: [left, top, width, height] }}) => {{
            const margin = {height} * height * 0.2;
            const place = [left + {left} * width - margin, top + {top} * height - margin,
                {width} * width + 2 * margin, {height} * height + 2 * margin];
            return place.every((side, at) => Math.abs(side - frame[at]) <= {OFF});
        }})({FRAMED} ?? {{ frame: [], picture: [] }})"
    );
    page.until("the frame lies around the line", &near).await;
    let framed = page.get(FRAMED).await;
    assert!(framed["inside"].as_f64() > Some(100.0), "it frames no letters: {framed}");
    assert_eq!(framed["border"], 0, "it cuts letters: {framed}");
}
