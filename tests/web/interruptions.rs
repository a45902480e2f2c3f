//! A server that dies under the page, and comes back.

use std::path::{Path, PathBuf};

use reprise_tests::film::{ffmpeg, run};
use serde_json::{Value, json};

use crate::Setting;
use crate::films::{COLOURS, Recipe};
use crate::library;
use crate::page::{ENTER, Page};

/// Bytes a second that the browser sends, so that an upload takes some seconds.
const SLOW: u32 = 1_500_000;

/// A film of noise, which no encoder makes small. Returns it, some megabytes long.
fn large_film(folder: &Path) -> PathBuf {
    let file = folder.join("large.mp4");
    let noise = "color=c=gray:s=320x180:r=25:d=6,noise=alls=90:allf=t+u";
    run(ffmpeg()
        .args([
            "-f",
            "lavfi",
            "-i",
            noise,
            "-c:v",
            "libx264",
            "-preset",
            "ultrafast",
            "-qp",
            "12",
            "-pix_fmt",
            "yuv420p",
        ])
        .arg(&file));
    let bytes = std::fs::metadata(&file).expect("the film").len();
    assert!(bytes > 5_000_000, "{bytes} bytes are sent too soon");
    file
}

async fn send_at(page: &Page, bytes_a_second: i64) {
    page.tell_browser("Network.enable", json!({})).await;
    let conditions =
        json!({"offline": false, "latency": 0, "downloadThroughput": -1, "uploadThroughput": bytes_a_second});
    page.tell_browser("Network.emulateNetworkConditions", conditions).await;
}

/// Bytes that the server has of the only upload.
const SENT: &str = "(() => { const said = document.querySelector('.tray .up .said')?.textContent ?? ''; return /^[1-9]/.test(said) && !/^0 B/.test(said); })()";

#[tokio::test]
async fn an_upload_goes_on_where_it_was_when_the_server_is_back() {
    crate::visit(Setting::default(), async |page, folder| {
        let file = large_film(folder);
        page.open("/library").await;
        page.until_says("Nothing here yet").await;
        send_at(page, SLOW.into()).await;
        page.run("window.loadedOnce = true; window.begun = 0; const real = window.fetch;
            window.fetch = (path, options) => { if (options?.method === 'POST' && path === '/v1/uploads') begun += 1; return real(path, options); }", Value::Null).await;
        page.drop_files(&[&file]).await;
        page.until("a part is sent", SENT).await;
        page.host.kill();
        page.until("the upload waits", "document.querySelector('.tray [data-state=retrying]')").await;
        page.until("the page says that the server is away", "document.querySelector('.notice.away')?.checkVisibility()").await;
        page.picture("interruption-1-away").await;
        send_at(page, -1).await;
        page.host.restart();
        page.until("and that it is back", "!document.querySelector('.notice.away')?.checkVisibility()").await;
        page.until_added(1).await;
        page.until_count(".library .card[data-state=ready]", 1).await;
        assert!(page.holds("window.loadedOnce").await, "the page was loaded again");
        assert_eq!(page.number("begun").await, 1.0, "it was begun once");
        page.picture("interruption-2-added").await;
    })
    .await;
}

#[tokio::test]
async fn an_upload_goes_on_after_a_reload_with_the_same_file() {
    crate::visit(Setting::default(), async |page, folder| {
        let file = large_film(folder);
        page.open("/library").await;
        page.until_says("Nothing here yet").await;
        send_at(page, SLOW.into()).await;
        page.drop_files(&[&file]).await;
        page.until("a part is sent", SENT).await;
        page.choose("Pause:").await;
        page.until("it stands still", "document.querySelector('.tray [data-state=paused]')").await;
        page.open("/activity").await;
        page.until_says("Choose the same file again to go on").await;
        send_at(page, -1).await;
        page.drop_files(&[&file]).await;
        page.until_added(1).await;
    })
    .await;
}

/// Whether the browser would ask before it leaves the page.
const ASKS: &str = "(() => { const leaving = new Event('beforeunload', { cancelable: true }); dispatchEvent(leaving); return leaving.defaultPrevented; })()";

#[tokio::test]
async fn leaving_the_page_warns_while_an_upload_would_stop() {
    crate::visit(Setting::default(), async |page, folder| {
        let file = large_film(folder);
        page.open("/library").await;
        page.until_says("Nothing here yet").await;
        assert!(!page.holds(ASKS).await, "nothing is sent");
        send_at(page, SLOW.into()).await;
        page.drop_files(&[&file]).await;
        page.until("a part is sent", SENT).await;
        assert!(page.holds(ASKS).await, "an upload runs");
        page.choose("Pause:").await;
        page.until("it stands still", "document.querySelector('.tray [data-state=paused]')").await;
        assert!(!page.holds(ASKS).await, "a paused one goes on after a reload");
        page.choose("Resume:").await;
        page.until("it asks again", ASKS).await;
        send_at(page, -1).await;
        page.until_added(1).await;
        assert!(!page.holds(ASKS).await, "all is sent");
    })
    .await;
}

#[tokio::test]
async fn a_search_outlives_the_server() {
    crate::visit(Setting::default(), async |page, folder| {
        if library::add_film(page, folder, &Recipe::plain("film.mp4"), &COLOURS).await.is_none() {
            return;
        }
        page.open("/?q=a+yellow+room").await;
        page.until_results().await;
        page.press(&['/']).await;
        page.host.kill();
        page.type_keys("a red room").await;
        page.press(&[ENTER]).await;
        page.until(
            "the page says that the server is away",
            "document.querySelector('.notice.away')?.checkVisibility()",
        )
        .await;
        assert_eq!(page.count(".results .card[data-place]").await, 6, "the old results stay");
        page.picture("interruption-3-search").await;
        page.host.restart();
        page.until_address("/?q=a+red+room").await;
        page.until(
            "the search runs when the server is back",
            "document.querySelectorAll('.results .card[data-place]').length === 6",
        )
        .await;
        page.until("its line goes", "!document.querySelector('.notice.away')?.checkVisibility()").await;
    })
    .await;
}
