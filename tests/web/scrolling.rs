//! What waits while the window scrolls fast.

use serde_json::json;

use crate::Setting;

/// Scrolls at 4,000 pixels a second, asks for something meanwhile, and lists what was done until the window rested.
const SCROLL: &str = "const [done] = arguments;
import('/static/js/core/scrolling.js').then(async ({ onRest, whenSlow }) => {
    document.body.style.height = '1000000px';
    const said = [];
    whenSlow(() => said.push('at once'), () => true);
    const began = performance.now();
    let [events, before] = [0, began];
    document.addEventListener('scroll', ({ timeStamp }) => {
        // After a pause a step may be as long as a jump.
        const isSteady = timeStamp - before < 150;
        [events, before] = [events + 1, timeStamp];
        if (!isSteady || events < 5 || timeStamp - began < 400 || said.includes('fast')) return;
        whenSlow(() => said.push('later'), () => true);
        whenSlow(() => said.push('no longer wanted'), () => false);
        said.push('fast');
        onRest(() => { said.push('at rest'); done(said); });
    });
    while (!said.includes('fast')) {
        scrollTo(0, 4 * (performance.now() - began));
        await new Promise(requestAnimationFrame);
    }
}).catch((error) => done(String(error)))";

/// Jumps far, and asks for something there.
const JUMP: &str = "const [done] = arguments;
import('/static/js/core/scrolling.js').then(async ({ whenSlow }) => {
    const said = [];
    document.addEventListener('scroll', () => {
        whenSlow(() => said.push('at once'), () => true);
        done(said);
    }, { once: true });
    scrollTo(0, 500000);
}).catch((error) => done(String(error)))";

#[tokio::test]
async fn what_costs_time_waits_while_the_window_scrolls_fast() {
    crate::visit(Setting::default(), async |page, _| {
        page.open("/models").await;
        for (script, expected) in
            [(SCROLL, json!(["at once", "fast", "later", "at rest"])), (JUMP, json!(["at once"]))]
        {
            let said = page.client.execute_async(script, Vec::new()).await;
            assert_eq!(said.expect("an answer"), expected);
        }
    })
    .await;
}
