//! When each word was spoken: the cross-attention of some heads follows the sound, and dynamic time warping finds the path
//! (as the reference's token timestamps).

use candle_core::{Result, Tensor};

use super::tokens::Tokens;
use crate::EncodeError;

/// Languages that put no spaces between words: each letter or syllable is a word.
const WITHOUT_SPACES: [&str; 6] = ["zh", "ja", "th", "lo", "my", "yue"];
/// Behind a space they belong to the next word.
const OPENING: &str = "\"'“¡¿([{-";
/// They belong to the word before.
const CLOSING: &str = "\"'.。,，!！?？:：”)]}、";
/// What the tokenizer gives for bytes that are no letter.
const NO_LETTER: char = '\u{fffd}';

/// The step at which each token begins. `weights`: cross-attention of heads, each (tokens, positions), of which `steps`
/// positions hold sound.
pub(super) fn token_steps(weights: &[Tensor], steps: usize, median: usize) -> Result<Vec<u32>> {
    let Some(first) = weights.first() else { return Ok(Vec::new()) };
    let (tokens, positions) = first.dims2()?;
    let steps = steps.clamp(1, positions);
    let mut sum = vec![0.0; tokens * steps];
    for head in weights {
        let values = head.narrow(1, 0, steps)?.contiguous()?.flatten_all()?.to_vec1::<f32>()?;
        for (sum, value) in sum.iter_mut().zip(smoothed(&normalised(&values, steps), steps, median)) {
            *sum += value;
        }
    }
    let cost: Vec<f64> = sum.iter().map(|value| -f64::from(*value) / weights.len() as f64).collect();
    Ok(path(&cost, steps))
}

/// Mean 0 and deviation 1 over the tokens, at each step.
fn normalised(values: &[f32], steps: usize) -> Vec<f32> {
    let tokens = values.len() / steps;
    let mut normalised = vec![0.0; values.len()];
    for step in 0..steps {
        let column = || (0..tokens).map(|token| f64::from(values[token * steps + step]));
        let mean = column().sum::<f64>() / tokens as f64;
        let variance = column().map(|value| (value - mean).powi(2)).sum::<f64>() / tokens as f64;
        for token in 0..tokens {
            let value = (f64::from(values[token * steps + step]) - mean) / variance.sqrt();
            normalised[token * steps + step] = if value.is_finite() { value as f32 } else { 0.0 };
        }
    }
    normalised
}

/// Each value becomes the median of `width` neighbours in time, mirrored at the ends.
fn smoothed(values: &[f32], steps: usize, width: usize) -> Vec<f32> {
    let half = width / 2;
    if steps <= half {
        return values.to_vec();
    }
    let mut smoothed = Vec::with_capacity(values.len());
    let mut near = Vec::with_capacity(width);
    for row in values.chunks_exact(steps) {
        for step in 0..steps {
            near.clear();
            near.extend((0..2 * half + 1).map(|offset| {
                let place = (step + offset).abs_diff(half);
                row[if place < steps { place } else { 2 * (steps - 1) - place }]
            }));
            near.sort_unstable_by(f32::total_cmp);
            smoothed.push(near[half]);
        }
    }
    smoothed
}

/// Dynamic time warping: the cheapest monotonic path through `cost`, row by row of `steps` columns. Gives the column at
/// which the path enters each row.
fn path(cost: &[f64], steps: usize) -> Vec<u32> {
    let rows = cost.len() / steps;
    let across = steps + 1;
    let mut sums = vec![f32::INFINITY; (rows + 1) * across];
    let mut from = vec![Move::Left; (rows + 1) * across];
    sums[0] = 0.0;
    for step in 1..=steps {
        for row in 1..=rows {
            let (corner, up, left) = (
                sums[(row - 1) * across + step - 1],
                sums[(row - 1) * across + step],
                sums[row * across + step - 1],
            );
            let (least, way) = match (corner < up && corner < left, up < corner && up < left) {
                (true, _) => (corner, Move::Corner),
                (_, true) => (up, Move::Up),
                _ => (left, Move::Left),
            };
            sums[row * across + step] = (cost[(row - 1) * steps + step - 1] + f64::from(least)) as f32;
            from[row * across + step] = way;
        }
    }
    let (mut row, mut step) = (rows, steps);
    let mut entered = vec![0; rows];
    while row > 0 && step > 0 {
        entered[row - 1] = step as u32 - 1;
        match from[row * across + step] {
            Move::Corner => (row, step) = (row - 1, step - 1),
            Move::Up => row -= 1,
            Move::Left => step -= 1,
        }
    }
    entered
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Move {
    Corner,
    Up,
    Left,
}

/// Some of a segment's tokens that make a word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct WordTokens {
    /// The first token and the one behind the last, by their places in `ids`.
    pub(super) first: usize,
    pub(super) behind: usize,
    pub(super) text: String,
}

/// The words of a segment's tokens; timestamps belong to none. As the reference's, but what stands together without a
/// space is one word.
///
/// # Errors
/// [`EncodeError::Failed`] for ids that the tokenizer can't turn into text.
pub(super) fn words(
    ids: &[u32],
    language: Option<&str>,
    tokens: &Tokens,
) -> std::result::Result<Vec<WordTokens>, EncodeError> {
    let has_spaces = !language.is_some_and(|language| WITHOUT_SPACES.contains(&language));
    let (mut words, mut first) = (Vec::new(), 0);
    for run in ids.chunk_by(|one, next| (*one < tokens.end) == (*next < tokens.end)) {
        if run[0] < tokens.end {
            words.extend(joined(pieces(run, first, tokens)?, has_spaces));
        }
        first += run.len();
    }
    words.retain(|word| !word.text.trim().is_empty());
    Ok(words)
}

/// The shortest runs of tokens that are whole letters. A letter may need several tokens; until all are there the tokenizer
/// gives a replacement character, where the whole text has none. `first`: the place of the first id.
fn pieces(ids: &[u32], first: usize, tokens: &Tokens) -> std::result::Result<Vec<WordTokens>, EncodeError> {
    let whole: Vec<char> = tokens.text(ids)?.chars().collect();
    let (mut pieces, mut from, mut letters) = (Vec::new(), 0, 0);
    for behind in 1..=ids.len() {
        let text = tokens.text(&ids[from..behind])?;
        let broken = text.chars().position(|letter| letter == NO_LETTER);
        let is_open = broken.is_some_and(|at| whole.get(letters + at).is_some_and(|it| *it != NO_LETTER));
        if is_open && behind < ids.len() {
            continue;
        }
        letters += text.chars().count();
        pieces.push(WordTokens { first: first + from, behind: first + behind, text });
        from = behind;
    }
    Ok(pieces)
}

/// Joins pieces to words at spaces, or else punctuation with its word.
fn joined(pieces: Vec<WordTokens>, has_spaces: bool) -> Vec<WordTokens> {
    let mut words: Vec<WordTokens> = Vec::with_capacity(pieces.len());
    let mut opens = false;
    for piece in pieces {
        let continues = |word: &WordTokens| match has_spaces {
            true => !piece.text.starts_with(' '),
            false => CLOSING.contains(&piece.text) && !word.text.ends_with(' '),
        };
        let opens_next = piece.text.starts_with(' ') && OPENING.contains(piece.text.trim());
        match words.last_mut().filter(|word| opens || continues(word)) {
            Some(word) => {
                word.text.push_str(&piece.text);
                word.behind = piece.behind;
            }
            None => words.push(piece),
        }
        opens = opens_next;
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_path_is_the_cheapest() {
        // Three tokens over six steps.
        let cheap = [0, 0, 0, 1, 2, 2];
        let cost: Vec<f64> = (0..18).map(|at| if cheap[at % 6] == at / 6 { -1.0 } else { 1.0 }).collect();
        assert_eq!(path(&cost, 6), [0, 3, 4]);
        assert_eq!(path(&[1.0, 1.0], 1), [0, 0]);
    }

    #[test]
    fn a_median_drops_what_stands_out() {
        assert_eq!(smoothed(&[0.0, 0.0, 9.0, 0.0, 0.0], 5, 3), [0.0; 5]);
        assert_eq!(smoothed(&[1.0, 2.0], 2, 7), [1.0, 2.0]);
    }

    #[test]
    fn each_step_is_normalised_over_the_tokens() {
        assert_eq!(normalised(&[1.0, 5.0, 3.0, 5.0], 2), [-1.0, 0.0, 1.0, 0.0]);
    }
}
