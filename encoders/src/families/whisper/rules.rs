//! Which tokens may come next: suppressed ones never, timestamps in pairs that never go back. Without these rules text
//! repeats (arXiv 2212.04356, section 4.5).

use super::tokens::Tokens;

/// The rules of one model.
#[derive(Debug)]
pub(super) struct Rules {
    pub(super) suppressed: Vec<u32>,
    pub(super) suppressed_first: Vec<u32>,
    /// Latest first timestamp, in steps.
    pub(super) latest_first: Option<usize>,
}

impl Rules {
    /// Gives tokens that may not follow `written` minus infinity. `written`: the text so far, without its prompt.
    pub(super) fn apply(&self, scores: &mut [f32], written: &[u32], tokens: &Tokens) {
        let first = if written.is_empty() { &self.suppressed_first[..] } else { &[] };
        for token in self.suppressed.iter().chain(first).chain([&tokens.no_timestamps]) {
            forbid(scores, *token as usize..*token as usize + 1);
        }
        let (end, first_time) = (tokens.end as usize, tokens.first_time() as usize);
        let is_time = |token: &u32| tokens.time(*token).is_some();
        let is_last = written.last().is_some_and(is_time);
        let is_before_last = written.len() < 2 || is_time(&written[written.len() - 2]);
        match (is_last, is_before_last) {
            // Text follows a pair, and the first timestamp.
            (true, true) => forbid(scores, first_time..usize::MAX),
            // A timestamp that ends a segment has a second one or the end behind it.
            (true, false) => forbid(scores, 0..end),
            _ => {}
        }
        if let Some(latest) = written.iter().rev().find(|token| is_time(token)) {
            let may_repeat = is_last && !is_before_last;
            forbid(scores, first_time..*latest as usize + usize::from(!may_repeat));
        }
        if written.is_empty() {
            forbid(scores, 0..first_time);
            if let Some(latest) = self.latest_first {
                forbid(scores, first_time.saturating_add(latest).saturating_add(1)..usize::MAX);
            }
        }
        prefer_times(scores, first_time);
    }
}

fn forbid(scores: &mut [f32], range: std::ops::Range<usize>) {
    let to = range.end.min(scores.len());
    scores[range.start.min(to)..to].fill(f32::NEG_INFINITY);
}

/// Forbids all else if timestamps together are likelier than the likeliest other token.
fn prefer_times(scores: &mut [f32], first_time: usize) {
    let largest = |scores: &[f32]| scores.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let (others, times) = scores.split_at_mut(first_time.min(scores.len()));
    let (other, time) = (largest(others), largest(times));
    if time == f32::NEG_INFINITY {
        return;
    }
    let sum: f32 = times.iter().map(|score| (score - time).exp()).sum();
    if time + sum.ln() > other {
        others.fill(f32::NEG_INFINITY);
    }
}
