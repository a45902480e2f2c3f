//! The screen of models: what answers what, adding a model by its name, choosing the one that answers.

use reprise_tests::film::{Store, film};
use serde_json::json;

use crate::Setting;
use crate::library::add;

#[tokio::test]
async fn a_model_is_added_by_its_name_and_made_the_one_that_answers() {
    crate::visit(Setting::default(), async |page, _| {
        page.open("/").await;
        page.until("the notice says what the model knows", "!document.getElementById('model-notice').hidden").await;
        page.choose("Choose a model for your footage").await;
        page.until_heading("Models").await;
        page.until("the model that answers", "document.getElementById('here')?.innerText.includes('tiny, built in')").await;
        page.until_says("Its weights are random").await;
        page.type_into("#model-name", "no model\u{e007}").await;
        page.until("the refusal", "document.querySelector('form + [role=alert]').textContent.startsWith('no model: ')").await;
        page.find("#model-name").await.clear().await.expect("an empty field");
        page.type_into("#model-name", "builtin:sports\u{e007}").await;
        page.until_message("sports, built in is loaded").await;
        let choice = "[...document.querySelectorAll('[aria-label=\"Model for A clip\"] option')]";
        let name = "sports, built in";
        page.until("it can be chosen", &format!("{choice}.some((it) => it.textContent === '{name}' && !it.disabled)")).await;
        let clips = page.find("[aria-label='Model for A clip']").await;
        clips.select_by_label(name).await.expect("a choice");
        page.until_message("sports, built in answers clips now").await;
        page.until("the table says so", "[...document.querySelectorAll('#here tr')].some((it) => /sports.*Answers clips/s.test(it.innerText))").await;
        page.choose("Undo").await;
        page.until("tiny answers again", "[...document.querySelectorAll('#here tr')].some((it) => /tiny[^]*Answers[^]*clips/.test(it.innerText))").await;
        page.picture("models").await;
    })
    .await;
}

#[tokio::test]
async fn a_fill_is_paused_and_resumed_on_the_page() {
    crate::visit(Setting::default(), async |page, folder| {
        add(page, &film(folder, "bars", &["smptebars", "color=c=red"], Store::Lossless)).await;
        let body = json!({"model": "builtin:sports", "fill": "paused"});
        assert_eq!(page.host.server().post("/v1/spaces", &body).await.0, 201);
        page.open("/models").await;
        page.until_says("Waits for you: it has read nothing yet").await;
        page.until_says("Reading the library takes").await;
        page.choose("Start reading by sports, built in").await;
        page.until("all is read", "[...document.querySelectorAll('#here tr')].some((it) => /sports[^]*Has read everything/.test(it.innerText))").await;
    })
    .await;
}

#[tokio::test]
async fn a_model_that_is_added_says_how_long_it_will_read_and_waits_for_a_start() {
    crate::visit(Setting::default(), async |page, folder| {
        add(page, &film(folder, "bars", &["smptebars", "color=c=red"], Store::Lossless)).await;
        page.open("/models").await;
        page.until("models are listed", "!!document.getElementById('recommended')").await;
        page.type_into("#model-name", "builtin:sports\u{e007}").await;
        page.until_message("sports, built in is loaded. Reading the library takes").await;
        let row = "[...document.querySelectorAll('#here tr')].find((it) => it.innerText.includes('sports'))";
        page.until(
            "it waits",
            &format!("/Waits for you[^]*Reading the library takes/.test({row}?.innerText)"),
        )
        .await;
        let server = page.host.server();
        assert_eq!(server.get("/v1/jobs?kind=fill").await.1["items"], json!([]), "nothing has begun");
        // It waits as long as it must.
        page.open("/models").await;
        page.choose("Start reading by sports, built in").await;
        page.until("all is read", &format!("{row}?.innerText.includes('Has read everything')")).await;
        assert_eq!(server.get("/v1/jobs?kind=fill").await.1["items"].as_array().map(Vec::len), Some(1));
    })
    .await;
}

#[tokio::test]
async fn the_models_that_read_are_offered_with_what_they_cost() {
    crate::visit(Setting::default(), async |page, _| {
        page.open("/models").await;
        page.until("models are listed", "!!document.getElementById('recommended')").await;
        for (model, size, licence) in [
            ("Alibaba-NLP/gme-Qwen2-VL-2B-Instruct", "8.8 GB", "Apache-2.0"),
            ("Alibaba-NLP/gme-Qwen2-VL-7B-Instruct", "33 GB", "Apache-2.0"),
            ("Qwen/Qwen3-VL-Embedding-2B", "4.3 GB", "Apache-2.0"),
            ("Qwen/Qwen3-VL-Embedding-8B", "16 GB", "Apache-2.0"),
            ("MCG-NJU/CaRe-7B", "–", "unknown"),
        ] {
            let row = page.text(&format!("[...document.querySelectorAll('#recommended tr')].find((it) => it.innerText.includes('{model}'))?.innerText ?? ''")).await;
            assert!([size, licence, "on a CPU core"].iter().all(|it| row.contains(it)), "{model}: {row}");
        }
        page.until_says("For a clip and a change on real footage: GME or Qwen3-VL-Embedding").await;
    })
    .await;
}

#[tokio::test]
async fn the_page_says_that_the_built_in_model_knows_drawings_only_until_it_is_told_not_to() {
    let setting = Setting { model: Some("builtin:sports"), ..Setting::default() };
    crate::visit(setting, async |page, _| {
        page.open("/").await;
        page.until_says("only knows drawings of sports").await;
        page.choose("Close this line").await;
        page.open("/library").await;
        page.until_says("Nothing here yet").await;
        assert!(page.holds("document.getElementById('model-notice').hidden").await);
    })
    .await;
}
