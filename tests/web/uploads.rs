//! Adding files: by dropping and by choosing, what is refused, what is known, names that look like markup.

use serde_json::Value;

use crate::Setting;
use crate::films::{self, COLOURS, Recipe};

#[tokio::test]
async fn a_file_becomes_searchable_without_a_reload_and_its_name_stays_text() {
    crate::visit(Setting::default(), async |page, folder| {
        let recipe = Recipe::plain("tricky <img src=x onerror='ran=1'> & \"quotes\".mp4");
        let scenes: Vec<_> = COLOURS.into_iter().cycle().take(40).collect();
        let Some(file) = films::make(folder, &recipe, &scenes) else { return };
        let subtitles = folder.join("tricky <img src=x onerror='ran=1'> & \"quotes\".srt");
        std::fs::write(&subtitles, "1\n00:00:01,000 --> 00:00:03,000\na <img src=x onerror='ran=1'> of said words\n").expect("a file");
        page.open("/library").await;
        page.until_says("Nothing here yet").await;
        // Records what the tray and the card say between the test's looks.
        page.run("window.loadedOnce = true; window.said = new Set(); new MutationObserver(() => document.querySelectorAll('.tray .up').forEach((it) => said.add(it.innerText))) \
            .observe(document.body, {subtree: true, childList: true, characterData: true})", Value::Null).await;
        page.drop_files(&[&file, &subtitles]).await;
        page.until_added(1).await;
        let said = page.text("[...said].join('; ')").await;
        assert!(said.contains(" frames"), "progress was shown as it went: {said}");
        page.until("its picture", "document.querySelector('.library .card img.front')?.naturalWidth > 0").await;
        page.until_says("40 shots").await;
        let title = "Tricky <img src=x onerror='ran=1'> & \"quotes\"";
        assert_eq!(page.text("document.querySelector('.library .card b').textContent").await, title);
        page.open("/?q=said+words").await;
        page.until_results().await;
        page.until("what was said", "document.querySelector('.snip mark')").await;
        page.click(".results [data-place='0'] a.thumb").await;
        page.player_settled().await;
        page.until_heading(title).await;
        page.open("/activity").await;
        page.until("its job", "document.querySelector('#history tbody tr a')?.innerText.includes('onerror')").await;
        assert!(!page.holds("window.ran").await, "a name or a line became markup");
    })
    .await;
}

#[tokio::test]
async fn what_is_no_video_is_refused_with_a_reason_and_what_is_known_is_called_so() {
    crate::visit(Setting::default(), async |page, folder| {
        let Some(file) = films::make(folder, &Recipe::plain("film.mp4"), &COLOURS[..2]) else { return };
        let letter = folder.join("letter.mp4");
        std::fs::write(&letter, "this is no film\n").expect("a text file");
        let notes = folder.join("notes.txt");
        std::fs::write(&notes, "notes\n").expect("a text file");
        page.open("/").await;
        page.find(".home .drop").await;
        page.choose_files(".home .drop input[accept]", &[&file]).await;
        page.until_added(1).await;
        page.until("the start knows of the first video", "!document.querySelector('.home .drop')").await;
        page.drop_files(&[&letter, &notes, &file]).await;
        let row = |name: &str| format!("[...document.querySelectorAll('.tray .up')].findLast((it) => it.innerText.includes('{name}'))");
        page.until("a refusal", &format!("{}?.dataset.state === 'refused'", row("letter.mp4"))).await;
        let said = page.text(&format!("{}.querySelector('.said').textContent", row("letter.mp4"))).await;
        assert!(said.len() > 10, "the reason is in words: {said}");
        page.until("another", &format!("{}?.innerText.includes('Not a video')", row("notes.txt"))).await;
        page.until("the same film is called so", &format!("{}?.innerText.includes('Was here already')", row("film.mp4"))).await;
        page.picture("uploads-refused").await;
        page.open("/library").await;
        page.until_count(".library .card", 1).await;
    })
    .await;
}
