//! Uploads: live progress, files that are not video, duplicates, and deleting videos.

use crate::Setting;
use crate::films::{self, COLOURS, Recipe};

#[tokio::test]
async fn a_file_becomes_searchable_without_a_reload_under_its_own_name() {
    crate::visit(Setting::default(), async |page, folder| {
        let recipe = Recipe::plain("tricky <b>name & 'quotes'.mp4");
        let Some(file) = films::make(folder, &recipe, &COLOURS) else { return };
        page.open("/").await;
        page.until(
            "the library says that it is empty",
            "document.querySelector('.empty')?.checkVisibility()",
        )
        .await;
        page.get("(window.loadedOnce = true)").await;
        page.upload(&file).await;
        assert_eq!(page.get("window.loadedOnce").await, true, "the page was loaded again");
        let clips = page.text("document.querySelector('.card.video .facts').textContent").await;
        assert!(clips.contains("6 clips"), "one a scene: {clips}");
        page.until(
            "the thumbnail is a picture",
            "document.querySelector('.card.video img')?.naturalWidth > 0",
        )
        .await;
        assert_eq!(page.get("document.querySelector('.card.video h3 b')").await, serde_json::Value::Null);
    })
    .await;
}

#[tokio::test]
async fn what_is_no_video_is_refused_with_a_reason_and_what_is_known_is_called_so() {
    crate::visit(Setting::default(), async |page, folder| {
        let Some(file) = films::make(folder, &Recipe::plain("film.mp4"), &COLOURS[..2]) else { return };
        let text = folder.join("letter.mp4");
        std::fs::write(&text, "this is no film\n").expect("a text file");
        page.open("/").await;
        page.upload(&file).await;
        page.type_into("#upload-input", text.to_str().expect("a path")).await;
        page.until("the refusal is shown", "document.querySelector('.upload.bad')?.textContent.includes('letter.mp4')").await;
        let said = page.text("document.querySelector('.upload.bad .message').textContent").await;
        assert!(said.len() > 10, "the reason is in words: {said}");
        page.type_into("#upload-input", file.to_str().expect("a path")).await;
        let known = "[...document.querySelectorAll('.upload')].some((it) => it.textContent.includes('already in the library'))";
        page.until("the duplicate is called so", known).await;
        assert_eq!(page.number("document.querySelectorAll('.card.video').length").await, 1.0);
    })
    .await;
}

#[tokio::test]
async fn a_video_is_deleted_only_after_a_question() {
    crate::visit(Setting::default(), async |page, folder| {
        let Some(file) = films::make(folder, &Recipe::plain("film.mp4"), &COLOURS[..2]) else { return };
        page.open("/").await;
        let id = page.upload(&file).await;
        page.click(".card.video [data-action=delete]").await;
        page.until("the question", "document.querySelector('dialog[open]')").await;
        page.press(&['\u{e00c}']).await;
        page.until("Escape keeps the video", "!document.querySelector('dialog')").await;
        assert_eq!(page.number("document.querySelectorAll('.card.video').length").await, 1.0);
        page.click(".card.video [data-action=delete]").await;
        page.click("dialog [data-confirm]").await;
        page.until("the card is gone", "!document.querySelector('.card.video')").await;
        let answer = reqwest::get(format!("{}/v1/videos/{id}", page.address)).await.expect("an answer");
        assert_eq!(answer.status(), 404);
    })
    .await;
}

#[tokio::test]
async fn a_long_film_shows_its_progress_and_its_hits_come_page_by_page() {
    crate::visit(Setting::default(), async |page, folder| {
        let scenes: Vec<_> = COLOURS.into_iter().cycle().take(60).collect();
        let Some(file) = films::make(folder, &Recipe::plain("long.mp4"), &scenes) else { return };
        page.open("/").await;
        // Records all texts of the card between the test's checks.
        page.client.execute(
            "window.said = new Set(); new MutationObserver(() => document.querySelectorAll('.card .state').forEach((it) => said.add(it.textContent))) \
             .observe(document.body, {subtree: true, childList: true, characterData: true})",
            Vec::new(),
        ).await.expect("an observer");
        page.upload(&file).await;
        let said = page.text("[...said].join('; ')").await;
        assert!(said.contains(" %"), "progress was shown as it went: {said}");

        page.open("/?q=anything").await;
        for expected in [24, 48, 60] {
            let hits = "document.querySelectorAll('#results .hit').length";
            page.until(&format!("{expected} hits"), &format!("{hits} === {expected}")).await;
            if expected < 60 {
                page.client.execute("[...document.querySelectorAll('button')].find((it) => it.textContent === 'Show more').click()", Vec::new()).await.expect("a click");
            }
        }
        let starts = page.number("new Set([...document.querySelectorAll('#results .hit')].map((hit) => hit.dataset.start)).size").await;
        assert_eq!(starts, 60.0, "no hit twice");
        page.until("it says that this is all", "document.body.innerText.includes('That is everything.')").await;
    })
    .await;
}

#[tokio::test]
async fn a_file_dropped_anywhere_is_uploaded() {
    crate::visit(Setting::default(), async |page, folder| {
        let Some(file) = films::make(folder, &Recipe::plain("dropped.mp4"), &COLOURS[..2]) else { return };
        let bytes = std::fs::read(&file).expect("the film");
        page.open("/").await;
        page.until("the library is there", "document.querySelector('.empty')?.checkVisibility()").await;
        let drop = "const transfer = new DataTransfer();
            transfer.items.add(new File([new Uint8Array(arguments[0])], 'dropped.mp4', { type: 'video/mp4' }));
            const event = (name) => new DragEvent(name, { dataTransfer: transfer, bubbles: true, cancelable: true });
            document.body.dispatchEvent(event('dragenter'));
            const hint = !document.getElementById('drop-hint').hidden;
            document.body.dispatchEvent(event('drop'));
            return [hint, document.getElementById('drop-hint').hidden];";
        let hints = page.client.execute(drop, vec![bytes.into()]).await.expect("a drop");
        assert_eq!(hints, serde_json::json!([true, true]), "the hint shows while a file hovers");
        page.ready("dropped").await;
    })
    .await;
}
