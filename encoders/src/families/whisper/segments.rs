//! Cuts a window's tokens into segments at pairs of timestamps.

use std::ops::Range;

use super::tokens::Tokens;

/// A segment: a range of the tokens, and its times in steps from the window's start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Cut {
    pub(super) tokens: Range<usize>,
    pub(super) start: u32,
    pub(super) end: u32,
}

/// The segments of a window.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Cuts {
    pub(super) segments: Vec<Cut>,
    /// Steps that are done; `None` for the whole window. What is behind them is heard again.
    pub(super) done: Option<u32>,
}

/// Cuts tokens as the reference does. A window without pairs is one segment, of `steps` steps.
pub(super) fn cut(written: &[u32], steps: u32, tokens: &Tokens) -> Cuts {
    let times: Vec<Option<u32>> = written.iter().map(|token| tokens.time(*token)).collect();
    let is_pair = |at: &usize| times[at - 1].is_some() && times[*at].is_some();
    let mut ends: Vec<usize> = (1..times.len()).filter(is_pair).collect();
    if ends.is_empty() {
        let last = times.iter().flatten().next_back().copied().filter(|time| *time > 0);
        let whole = Cut { tokens: 0..written.len(), start: 0, end: last.unwrap_or(steps) };
        return Cuts { segments: vec![whole], done: None };
    }
    // A single timestamp at the end: nobody speaks after it.
    let is_single = times.len() >= 2 && times[times.len() - 2].is_none() && times[times.len() - 1].is_some();
    let done = match (is_single, ends.last()) {
        (false, Some(last)) => times[last - 1],
        _ => None,
    };
    if is_single {
        ends.push(written.len());
    }
    let (mut segments, mut first) = (Vec::new(), 0);
    for end in ends {
        let start = times[first].unwrap_or(0);
        segments.push(Cut { tokens: first..end, start, end: times[end - 1].unwrap_or(start) });
        first = end;
    }
    Cuts { segments, done }
}
