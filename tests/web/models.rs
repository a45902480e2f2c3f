//! The models dialog: query kinds of each model, adding a model by name, and choosing the model for a query kind.

use crate::Setting;

/// JavaScript expression for a model's row in the dialog.
fn row(model: &str) -> String {
    format!("[...document.querySelectorAll('.models li')].find((it) => it.textContent.includes('{model}'))")
}

#[tokio::test]
async fn a_model_is_added_by_its_name_and_made_the_one_that_answers() {
    crate::visit(Setting::default(), async |page, _| {
        page.open("/").await;
        page.until("the page knows the models", "document.getElementById('spaces-line').textContent").await;
        page.click("#models-button").await;
        page.until(
            "the model is listed",
            &format!("{}?.textContent.includes('100 % filled')", row("builtin:tiny")),
        )
        .await;
        page.type_into("dialog input", "no model\u{e007}").await;
        page.until(
            "the refusal is shown",
            "document.querySelector('dialog [role=status]').textContent.includes('is no model')",
        )
        .await;
        page.client
            .execute("document.querySelector('dialog input').value = ''", Vec::new())
            .await
            .expect("it runs");
        page.type_into("dialog input", "builtin:sports\u{e007}").await;
        page.until(
            "the model is loaded and answers nothing yet",
            &format!("{}?.textContent.includes('only where it is named')", row("builtin:sports")),
        )
        .await;
        page.click("[data-space^=sports] [data-activate=clip]").await;
        page.until(
            "it answers clips",
            &format!("{}?.textContent.includes('answers clips')", row("builtin:sports")),
        )
        .await;
        page.until(
            "the foot of the page says so",
            "/sports-\\w+: clip/.test(document.getElementById('spaces-line').textContent)",
        )
        .await;
        page.press(&['\u{e00c}']).await;
        page.until("Escape closes", "!document.querySelector('dialog')").await;
    })
    .await;
}
