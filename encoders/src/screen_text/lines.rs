//! Joins the sightings of a line: the same text in the same place, over changes of its surroundings.

use super::table::Place;
use super::{STEP_MS, ScreenLine, TextBox};

/// A line that is not seen for longer has gone.
const GAP_MS: i64 = 4 * STEP_MS;
/// The share of letters in which two readings of one line may differ: one in eight.
const MISREAD: usize = 8;
/// The share of two boxes' union that both must cover: two in five.
const OVERLAP: (usize, usize) = (2, 5);
/// Lines that begin within this time of the one before, and of the first, began together: their compression settles at
/// different times.
const NEXT_MS: i64 = STEP_MS + 100;
const TOGETHER_MS: i64 = 3 * STEP_MS + 100;
/// A reading wins over a part of it, even if its confidence is lower by this much.
const WHOLE: f32 = 0.05;
/// Letters and digits of a line that is dropped if it was on screen for no longer than this: footage shows such a pattern now
/// and then, and nobody reads a line so fast.
const FLASH_LETTERS: usize = 3;
const FLASH_MS: i64 = 2 * STEP_MS;
/// The most lines of a video.
const MOST_LINES: usize = 100_000;

/// A line as it was read once, and how long its blocks showed it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Sighting {
    pub(super) start_ms: i64,
    pub(super) end_ms: i64,
    pub(super) text: String,
    pub(super) confidence: f32,
    /// In pixels of the picture.
    pub(super) at: Place,
    /// Width and height of the picture.
    pub(super) picture: (usize, usize),
}

/// A line that may be seen again.
struct Open {
    line: Sighting,
    key: Key,
}

/// What readings of one line have in common: letters may be misread, digits may not, as they are scores and clocks.
struct Key {
    letters: Vec<char>,
    digits: String,
}

/// The lines, by their start, then by rows.
pub(super) fn joined(mut sightings: Vec<Sighting>) -> Vec<ScreenLine> {
    sightings.sort_by_key(|it| (it.start_ms, it.at.top, it.at.left));
    let (mut open, mut done): (Vec<Open>, Vec<Sighting>) = (Vec::new(), Vec::new());
    for sighting in sightings {
        let (gone, still): (Vec<Open>, Vec<Open>) =
            open.into_iter().partition(|it| it.line.end_ms + GAP_MS < sighting.start_ms);
        done.extend(gone.into_iter().map(|it| it.line));
        open = still;
        let key = Key::of(&sighting.text);
        match open.iter_mut().find(|it| it.is_again(&key, &sighting)) {
            Some(same) => same.add(sighting, key),
            None => open.push(Open { line: sighting, key }),
        }
    }
    done.extend(open.into_iter().map(|it| it.line));
    done.retain(|it| !it.is_flash());
    begin_together(&mut done);
    in_rows(&mut done);
    done.truncate(MOST_LINES);
    done.into_iter().map(Sighting::line).collect()
}

/// Gives lines that began together one start: the one that most of them have.
fn begin_together(lines: &mut [Sighting]) {
    lines.sort_by_key(|it| it.start_ms);
    let mut left = lines;
    while let Some(first_ms) = left.first().map(|it| it.start_ms) {
        let is_next = |pair: &[Sighting]| {
            let start_ms = pair[1].start_ms;
            start_ms - pair[0].start_ms <= NEXT_MS && start_ms - first_ms <= TOGETHER_MS
        };
        let count = 1 + left.windows(2).take_while(|pair| is_next(pair)).count();
        let (group, rest) = left.split_at_mut(count);
        let having = |ms: i64| group.iter().filter(|it| it.start_ms == ms).count();
        let start_ms =
            group.iter().map(|it| it.start_ms).max_by_key(|ms| (having(*ms), -ms)).unwrap_or(first_ms);
        group.iter_mut().filter(|it| start_ms < it.end_ms).for_each(|it| it.start_ms = start_ms);
        left = rest;
    }
}

/// Sorts lines by their start, then by rows from top to bottom, and each row from left to right.
fn in_rows(lines: &mut [Sighting]) {
    lines.sort_by_key(|it| (it.start_ms, it.at.top));
    let mut left = lines;
    while let Some(first) = left.first() {
        let (start_ms, middle) = (first.start_ms, first.at.top.midpoint(first.at.bottom));
        let is_beside = |it: &&Sighting| it.start_ms == start_ms && it.at.top <= middle;
        let count = left.iter().take_while(is_beside).count().max(1);
        let (row, rest) = left.split_at_mut(count);
        row.sort_by_key(|it| it.at.left);
        left = rest;
    }
}

impl Open {
    /// Whether this is the same line: it reads alike, or is another reading of what did not change.
    fn is_again(&self, key: &Key, sighting: &Sighting) -> bool {
        let is_unchanged = sighting.start_ms + STEP_MS < self.line.end_ms;
        // The likeness costs far more than the overlap.
        overlap(self.line.at, sighting.at) && (is_unchanged || self.key.is_like(key))
    }

    /// Keeps the reading that Tesseract is surer of; of two of which one lacks words of the other, the longer one counts a
    /// little more.
    fn add(&mut self, again: Sighting, key: Key) {
        self.line.end_ms = self.line.end_ms.max(again.end_ms);
        let part = if self.key.is_part(&key) {
            WHOLE
        } else if key.is_part(&self.key) {
            -WHOLE
        } else {
            0.0
        };
        if again.confidence + part > self.line.confidence {
            self.key = key;
            self.line = Sighting { start_ms: self.line.start_ms, end_ms: self.line.end_ms, ..again };
        }
    }
}

impl Key {
    fn of(text: &str) -> Key {
        let letters = text.chars().flat_map(char::to_lowercase).filter(|c| c.is_alphanumeric());
        Key { letters: letters.collect(), digits: text.chars().filter(|c| c.is_numeric()).collect() }
    }

    /// Whether all that was read here was read there too, and more.
    fn is_part(&self, of: &Key) -> bool {
        let (most, some) = (&of.letters, &self.letters);
        some.len() < most.len() && (most.starts_with(some) || most.ends_with(some))
    }

    fn is_like(&self, other: &Key) -> bool {
        let longer = self.letters.len().max(other.letters.len());
        self.digits == other.digits && differ_by_at_most(&self.letters, &other.letters, longer / MISREAD)
    }
}

/// Whether the edit distance of two texts is at most `most`.
fn differ_by_at_most(a: &[char], b: &[char], most: usize) -> bool {
    if a == b {
        return true;
    }
    if most == 0 || a.len().abs_diff(b.len()) > most {
        return false;
    }
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (number, a) in a.iter().enumerate() {
        let mut diagonal = row[0];
        row[0] = number + 1;
        for (column, b) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(a != b);
            diagonal = row[column + 1];
            row[column + 1] = replaced.min(diagonal + 1).min(row[column] + 1);
        }
    }
    row[b.len()] <= most
}

fn overlap(a: Place, b: Place) -> bool {
    let common = Place {
        left: a.left.max(b.left),
        top: a.top.max(b.top),
        right: a.right.min(b.right),
        bottom: a.bottom.min(b.bottom),
    };
    let common = common.area();
    let union = (a.area() + b.area()).saturating_sub(common);
    common * OVERLAP.1 >= union * OVERLAP.0 && common > 0
}

impl Sighting {
    fn is_flash(&self) -> bool {
        let is_short = self.text.chars().filter(|c| c.is_alphanumeric()).count() <= FLASH_LETTERS;
        is_short && self.end_ms - self.start_ms <= FLASH_MS
    }

    fn line(self) -> ScreenLine {
        let (width, height) = self.picture;
        let share = |part: usize, whole: usize| (part as f32 / whole.max(1) as f32).clamp(0.0, 1.0);
        let region = TextBox {
            left: share(self.at.left, width),
            top: share(self.at.top, height),
            width: share(self.at.right.saturating_sub(self.at.left), width),
            height: share(self.at.bottom.saturating_sub(self.at.top), height),
        };
        ScreenLine {
            start_ms: self.start_ms,
            end_ms: self.end_ms,
            text: self.text,
            confidence: self.confidence,
            region,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sightings as (start, end, left, text); lines as (start, end, text).
    #[track_caller]
    fn check(sightings: &[(i64, i64, usize, &str)], expected: &[(i64, i64, &str)]) {
        let sighting = |(start_ms, end_ms, left, text): &(i64, i64, usize, &str)| Sighting {
            start_ms: *start_ms,
            end_ms: *end_ms,
            text: (*text).into(),
            confidence: 0.9,
            at: Place { left: *left, top: 10, right: left + 100, bottom: 30 },
            picture: (640, 360),
        };
        let lines = joined(sightings.iter().map(sighting).collect());
        let found: Vec<(i64, i64, &str)> =
            lines.iter().map(|it| (it.start_ms, it.end_ms, it.text.as_str())).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn a_line_that_stays_is_one() {
        check(&[(0, 5000, 0, "Hello world"), (3000, 9000, 2, "Hello worid")], &[(0, 9000, "Hello world")]);
        check(&[(0, 5000, 0, "Hello"), (6000, 9000, 0, "Hello")], &[(0, 9000, "Hello")]);
        check(
            &[(0, 5000, 0, "Hello"), (8000, 9000, 0, "Hello")],
            &[(0, 5000, "Hello"), (8000, 9000, "Hello")],
        );
    }

    #[test]
    fn what_did_not_change_is_one_line_however_it_is_read() {
        check(&[(0, 5000, 0, "recurrent"), (0, 9000, 2, "reeunent")], &[(0, 9000, "recurrent")]);
        check(
            &[(0, 5000, 0, "first"), (5000, 9000, 2, "other")],
            &[(0, 5000, "first"), (5000, 9000, "other")],
        );
    }

    #[test]
    fn lines_that_begin_together_keep_their_order_on_screen() {
        check(
            &[(250, 9000, 0, "left"), (750, 9000, 300, "right")],
            &[(250, 9000, "left"), (250, 9000, "right")],
        );
        check(
            &[(750, 9000, 0, "left"), (250, 9000, 300, "right")],
            &[(250, 9000, "left"), (250, 9000, "right")],
        );
    }

    #[test]
    fn a_few_letters_that_flash_up_are_no_line() {
        check(&[(0, 500, 0, "ve,"), (0, 1000, 300, "48")], &[]);
        check(&[(0, 1500, 0, "48"), (0, 500, 300, "12:01")], &[(0, 1500, "48"), (0, 500, "12:01")]);
        check(&[(0, 1000, 0, "48"), (1000, 2000, 0, "48")], &[(0, 2000, "48")]);
    }

    #[test]
    fn another_digit_is_another_line() {
        check(
            &[(0, 1000, 0, "Ghana 1 Brazil 0 12:01"), (1000, 2000, 0, "Ghana 1 Brazil 0 12:02")],
            &[(0, 1000, "Ghana 1 Brazil 0 12:01"), (1000, 2000, "Ghana 1 Brazil 0 12:02")],
        );
    }

    #[test]
    fn the_same_words_elsewhere_are_another_line() {
        check(&[(0, 1000, 0, "Home"), (0, 1000, 300, "Home")], &[(0, 1000, "Home"), (0, 1000, "Home")]);
    }

    #[test]
    fn the_surest_reading_is_kept_and_the_whole_one() {
        let of = |start_ms, confidence, text: &str| Sighting {
            start_ms,
            end_ms: start_ms + 1000,
            text: text.into(),
            confidence,
            at: Place { left: 64, top: 36, right: 192, bottom: 72 },
            picture: (640, 360),
        };
        let lines = joined(vec![of(0, 0.7, "recuIrent net"), of(1000, 0.95, "recurrent net")]);
        let region = TextBox { left: 0.1, top: 0.1, width: 0.2, height: 0.1 };
        let text = "recurrent net".to_owned();
        assert_eq!(lines, [ScreenLine { start_ms: 0, end_ms: 2000, text, confidence: 0.95, region }]);
        for texts in [["NGUYEN 15", "NGUYEN"], ["NGUYEN", "NGUYEN 15"], ["15", "NGUYEN 15"]] {
            let confidence = |text: &str| if text == "NGUYEN 15" { 0.93 } else { 0.96 };
            let lines = joined(texts.map(|text| of(0, confidence(text), text)).to_vec());
            assert_eq!((lines.len(), &*lines[0].text), (1, "NGUYEN 15"), "{texts:?}");
        }
    }
}
