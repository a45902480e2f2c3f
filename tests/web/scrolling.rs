//! What waits while the window scrolls fast.

use serde_json::json;

use crate::Setting;

/// Scrolls at 20,000 pixels a second, asks for three things meanwhile, and lists what was done until the window rested.
const SCROLL: &str = "const [done] = arguments;
import('/static/js/core/scrolling.js').then(async ({ onRest, whenSlow }) => {
    document.body.style.height = '1000000px';
    const add = () => document.body.appendChild(document.createElement('i'));
    const [kept, gone, said] = [add(), add(), []];
    whenSlow(kept, () => said.push('at once'));
    const began = performance.now();
    const isFast = new Promise((fast) => document.addEventListener('scroll', () => {
        if (performance.now() - began > 300) fast();
    }));
    isFast.then(() => {
        whenSlow(kept, () => said.push('later'));
        whenSlow(gone, () => said.push('never'));
        gone.remove();
        said.push('fast');
        onRest(() => { said.push('at rest'); done(said); });
    });
    while (!said.includes('fast')) {
        scrollTo(0, 20 * (performance.now() - began));
        await new Promise(requestAnimationFrame);
    }
}).catch((error) => done(String(error)))";

#[tokio::test]
async fn what_costs_time_waits_until_the_window_is_at_rest() {
    crate::visit(Setting::default(), async |page, _| {
        page.open("/models").await;
        let said = page.client.execute_async(SCROLL, Vec::new()).await;
        assert_eq!(said.expect("an answer"), json!(["at once", "fast", "later", "at rest"]));
    })
    .await;
}
