//! The walk of whoever runs the service: what failed and why, what is slow, what is searched, and the map.

use serde_json::{Value, json};

use crate::Setting;
use crate::films::{COLOURS, Recipe};
use crate::library::{self, text};
use crate::page::Page;

#[tokio::test]
async fn failures_have_reasons_and_remedies_and_one_button() {
    crate::visit(Setting::default(), async |page, folder| {
        let Some((id, _)) = library::add_film(page, folder, &Recipe::plain("film.mp4"), &COLOURS[..2]).await
        else {
            return;
        };
        let letter = folder.join("letter.mp4");
        std::fs::write(&letter, "this is no film\n").expect("a text file");
        page.open("/activity").await;
        page.until_says("added").await;
        page.drop_files(&[&letter]).await;
        page.until(
            "the tray says why",
            "document.querySelector('.tray [data-state=refused]')?.innerText.length > 20",
        )
        .await;
        page.open("/activity").await;
        page.until(
            "the refused file is listed",
            "document.getElementById('failed')?.innerText.includes('letter.mp4')",
        )
        .await;
        let row = page.text("document.querySelector('#failed .job').innerText").await;
        assert!(row.contains("Choose the file again") && row.contains("Check that it is a film"), "{row}");

        // An export of a video whose file is away can't be made.
        let away = hide_file(page);
        let ranges = json!([{"video_id": id, "start": 0, "end": 1}]);
        let export = json!({"format": "mp4", "ranges": ranges, "title": "Highlights"});
        let (_, made) = page.host.server().post("/v1/exports", &export).await;
        let job = page.host.server().job_end(&text(&made["id"])).await;
        assert_eq!(job["state"], "failed", "{job}");
        page.open("/activity?state=failed").await;
        page.until_count("#failed .job", 2).await;
        page.until(
            "the reason",
            "/gone|no range/.test(document.querySelector('#failed .job .bad').textContent)",
        )
        .await;
        page.picture("dashboard-1-failed").await;
        for (hidden, file) in &away {
            std::fs::rename(hidden, file).expect("the file comes back");
        }
        page.choose("Retry").await;
        page.until_message("1 job queued again").await;
        page.until_count("#failed .job", 1).await;
        page.choose("History").await;
        page.until(
            "it is made",
            "[...document.querySelectorAll('#history tr')].some((it) => it.innerText.includes('exported'))",
        )
        .await;
        page.picture("dashboard-2-history").await;
    })
    .await;
}

/// Moves the stored films away. Returns where each is and was.
fn hide_file(page: &Page) -> Vec<(std::path::PathBuf, std::path::PathBuf)> {
    let folder = page.host.data.path().join("videos");
    let files = std::fs::read_dir(folder).expect("a folder of videos");
    let files = files.map(|it| it.expect("a file").path()).filter(|it| it.is_file());
    let hide = |file: std::path::PathBuf| {
        let hidden = page.host.data.path().join(file.file_name().expect("a name"));
        std::fs::rename(&file, &hidden).expect("the file moves");
        (hidden, file)
    };
    files.collect::<Vec<_>>().into_iter().map(hide).collect()
}

#[tokio::test]
async fn insights_show_what_is_searched_what_is_slow_and_the_map() {
    crate::visit(Setting::default(), async |page, folder| {
        for (name, colours) in [("one.mp4", &COLOURS[..]), ("other.mp4", &COLOURS[1..5])] {
            if library::add_film(page, folder, &Recipe::plain(name), colours).await.is_none() {
                return;
            }
        }
        let server = page.host.server();
        for words in ["a yellow room", "a yellow room", "a Yellow  room", "the sea"] {
            server.search(&json!({"query": {"text": words}, "limit": 10})).await;
        }
        server.search(&json!({"query": {"text": "nobody says this"}, "sources": ["spoken"], "limit": 10})).await;
        drop(server);
        page.open("/insights").await;
        let stat = |name: &str| format!("[...document.querySelectorAll('.stat')].find((it) => it.innerText.startsWith('{name}'))?.innerText");
        page.until("the searches are counted", &format!("/Searches\\s+5\\b/.test({})", stat("Searches"))).await;
        page.until("what found nothing", &format!("/20\\s*%/.test({})", stat("Found nothing"))).await;
        page.until("what was added", &format!("/2\\s*videos/.test({})", stat("Added"))).await;
        page.until("the most searched text leads", "document.querySelector('.hbar')?.innerText.toLowerCase().includes('yellow') && document.querySelector('.hbar .count').textContent === '3'").await;
        page.until_says("Engine: built in, up to date").await;
        page.picture("dashboard-3-insights").await;
        see_slow_searches(page).await;
        see_map(page).await;
    })
    .await;
}

async fn see_slow_searches(page: &Page) {
    page.choose("Half are faster than").await;
    page.until_count("#searches tbody tr", 5).await;
    let times = page.get("[...document.querySelectorAll('#searches tbody tr')].map((it) => Number.parseFloat(it.cells[3].textContent.replace(/\\s/g, '')))").await;
    let times: Vec<f64> = times.as_array().expect("times").iter().filter_map(Value::as_f64).collect();
    assert!(times.len() == 5 && times.is_sorted_by(|one, next| one >= next), "the slowest first: {times:?}");
    page.back().await;
    page.until_count("#searches", 0).await;
    page.click(".hbar").await;
    page.until_count("#searches tbody tr", 3).await;
    page.click("#searches tbody a").await;
    page.until_results().await;
    page.back().await;
    page.until_heading("Insights").await;
}

async fn see_map(page: &Page) {
    let said = "document.querySelector('#map canvas') || /could not be made|no shot to lay out/.test(document.getElementById('map')?.innerText)";
    page.until("the map appears, or says why not", said).await;
    assert!(
        page.holds("document.querySelector('#map canvas')").await,
        "{}",
        page.text("document.getElementById('map').innerText").await
    );
    page.click("#map summary").await;
    page.until_count("#map .cols li", 10).await;
    page.picture("dashboard-4-map").await;
    page.click("#map .cols li a").await;
    page.player_settled().await;
}
