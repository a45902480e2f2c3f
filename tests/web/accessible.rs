//! axe-core on every screen, in both themes: no violation of any impact.

use std::path::Path;

use crate::page::Page;
use crate::{Setting, library, screens};

/// Runs in every document from its start, so that no screen waits for it.
fn axe() -> Option<String> {
    let tools = reprise_tests::contract_tools();
    let source = tools.map(|folder| folder.join("node/node_modules/axe-core/axe.min.js"));
    let source = source.and_then(|file| std::fs::read_to_string(file).ok());
    if source.is_none() {
        reprise_tests::skip("axe-core is not installed; run scripts/contract.sh");
    }
    source
}

/// Violations on the page as it is, one a line.
async fn violations(page: &Page) -> String {
    let script = "const [done] = arguments;
        axe.run(document, { resultTypes: ['violations'] }).then(({ violations }) => done(violations.flatMap(({ id, impact, nodes }) =>
            nodes.slice(0, 4).map(({ html, any, all, none }) => `${id} (${impact}): ${html.slice(0, 160)} ${[...any, ...all, ...none].map(({ message }) => message).join('; ').slice(0, 200)}`)).join('\\n')),
            (error) => done(String(error)))";
    let found = page.client.execute_async(script, Vec::new()).await.expect("axe runs");
    found.as_str().unwrap_or_default().to_owned()
}

async fn check_all(theme: &'static str) {
    let Some(axe) = axe() else { return };
    crate::visit(Setting::default(), async |page, folder: &Path| {
        let Some(library) = library::furnish(page, folder).await else { return };
        page.prefer(&[("prefers-color-scheme", theme), ("prefers-reduced-motion", "reduce")]).await;
        page.run_at_start(&axe).await;
        let mut found = Vec::new();
        for screen in screens::all(page, &library).await {
            screen.open(page).await;
            page.picture(&format!("{theme}-{}", screen.name)).await;
            let text = violations(page).await;
            if !text.is_empty() {
                found.push(format!("{} ({}):\n{text}", screen.name, screen.path));
            }
        }
        assert!(found.is_empty(), "{}", found.join("\n\n"));
    })
    .await;
}

#[tokio::test]
async fn every_screen_is_accessible_in_the_light_theme() {
    check_all("light").await;
}

#[tokio::test]
async fn every_screen_is_accessible_in_the_dark_theme() {
    check_all("dark").await;
}

#[tokio::test]
async fn the_first_start_and_the_question_for_a_key_are_accessible() {
    let Some(axe) = axe() else { return };
    for (key, ready) in [(None, ".home .drop"), (Some("a key"), "#key-needed #key")] {
        crate::visit(Setting { key, ..Setting::default() }, async |page, _| {
            page.run_at_start(&axe).await;
            for theme in ["light", "dark"] {
                page.prefer(&[("prefers-color-scheme", theme), ("prefers-reduced-motion", "reduce")]).await;
                page.open("/").await;
                page.find(ready).await;
                assert_eq!(violations(page).await, "", "{theme}: {ready}");
            }
        })
        .await;
    }
}
