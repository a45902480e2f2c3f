//! Tesseract's tab-separated answer as lines of text with their boxes.

/// Words below this confidence, of 100, are noise.
const LEAST_WORD: f32 = 30.0;
/// Lines below this confidence, of 100, are dropped: drawings and faces are read with less.
const LEAST_LINE: f32 = 60.0;
/// What bullets are read as, where they begin a line.
const BULLETS: [&str; 14] = ["*", "•", "¢", "©", "®", "°", "»", "«", "·", "-", "–", "—", "+", ">"];
/// The longest line, in characters; the rest of it is dropped.
const LONGEST_LINE: usize = 1000;
/// The most lines of a page. A page full of small print has some hundred.
const MOST_LINES: usize = 2000;

/// A line that was read on a page.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ReadLine {
    pub(super) text: String,
    /// From 0 to 1: the mean over its characters.
    pub(super) confidence: f32,
    pub(super) at: Place,
}

/// A rectangle in pixels; right and bottom are the first column and row after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) left: usize,
    pub(super) top: usize,
    pub(super) right: usize,
    pub(super) bottom: usize,
}

/// A word's row of the table.
struct Word<'a> {
    page: usize,
    /// Block, paragraph and line.
    line: [u32; 3],
    at: Place,
    confidence: f32,
    text: &'a str,
}

/// The lines of each of `pages` pages, from top to bottom. Rows that can't be read are skipped.
pub(super) fn lines(table: &[u8], pages: usize) -> Vec<Vec<ReadLine>> {
    let table = String::from_utf8_lossy(table);
    let mut found: Vec<Vec<Draft>> = (0..pages).map(|_| Vec::new()).collect();
    let mut last = None;
    for word in table.lines().filter_map(word) {
        let Some(page) = word.page.checked_sub(1).and_then(|page| found.get_mut(page)) else { continue };
        let key = (word.page, word.line);
        if last != Some(key) {
            if page.len() == MOST_LINES {
                continue;
            }
            last = Some(key);
            page.push(Draft::default());
        }
        if let Some(draft) = page.last_mut() {
            draft.add(&word);
        }
    }
    found.into_iter().map(|drafts| drafts.into_iter().filter_map(Draft::finish).collect()).collect()
}

fn word(row: &str) -> Option<Word<'_>> {
    let mut fields = row.splitn(12, '\t');
    if fields.next()? != "5" {
        return None;
    }
    let mut number = || fields.next()?.parse::<u32>().ok();
    let page = number()? as usize;
    let line = [number()?, number()?, number()?];
    let _word = number()?;
    let [left, top, width, height] = [number()?, number()?, number()?, number()?].map(|it| it as usize);
    let confidence = fields.next()?.parse::<f32>().ok().filter(|it| it.is_finite())?;
    let at = Place { left, top, right: left.saturating_add(width), bottom: top.saturating_add(height) };
    let text = fields.next()?.trim();
    let is_word = confidence >= LEAST_WORD && text.chars().any(|c| !c.is_whitespace() && !c.is_control());
    is_word.then_some(Word { page, line, at, confidence, text })
}

/// A line whose words are being added.
#[derive(Default)]
struct Draft {
    text: String,
    characters: usize,
    /// Sum of the confidence over characters.
    confidence: f32,
    at: Option<Place>,
}

impl Draft {
    fn add(&mut self, word: &Word<'_>) {
        let count = word.text.chars().count();
        let is_bullet = self.text.is_empty() && BULLETS.contains(&word.text);
        if is_bullet || self.characters + count > LONGEST_LINE {
            return;
        }
        if !self.text.is_empty() {
            self.text.push(' ');
        }
        self.text.extend(word.text.chars().filter(|c| !c.is_control()));
        self.characters += count;
        self.confidence += word.confidence * count as f32;
        self.at = Some(self.at.map_or(word.at, |at| at.and(word.at)));
    }

    /// The line, unless it is noise: of little confidence, or without a letter or digit.
    fn finish(self) -> Option<ReadLine> {
        let confidence = self.confidence / self.characters.max(1) as f32;
        let letters = self.text.chars().filter(|c| c.is_alphanumeric()).count();
        let is_text = letters > 0 && 2 * letters >= self.characters && confidence >= LEAST_LINE;
        // One letter alone is a stroke of a drawing more often than text; a digit is a score.
        let is_stroke = self.characters < 2 && !self.text.chars().any(|c| c.is_numeric());
        let at = self.at.filter(|_| is_text && !is_stroke)?;
        Some(ReadLine { text: with_zeros(self.text), confidence: (confidence / 100.0).clamp(0.0, 1.0), at })
    }
}

/// In a line with a number, such as a score, a lone `O` is a zero.
fn with_zeros(text: String) -> String {
    let is_number = |word: &str| word.chars().all(|c| c.is_ascii_digit());
    if !text.split(' ').any(is_number) {
        return text;
    }
    let words: Vec<&str> = text.split(' ').map(|word| if word == "O" { "0" } else { word }).collect();
    words.join(" ")
}

impl Place {
    /// The smallest place that holds both.
    pub(super) fn and(self, other: Place) -> Place {
        Place {
            left: self.left.min(other.left),
            top: self.top.min(other.top),
            right: self.right.max(other.right),
            bottom: self.bottom.max(other.bottom),
        }
    }

    /// Whether both have a pixel in common.
    pub(super) fn touches(self, other: Place) -> bool {
        self.left < other.right
            && other.left < self.right
            && self.top < other.bottom
            && other.top < self.bottom
    }

    /// Its pixels.
    pub(super) fn area(self) -> usize {
        self.right.saturating_sub(self.left).saturating_mul(self.bottom.saturating_sub(self.top))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str =
        "level\tpage_num\tblock_num\tpar_num\tline_num\tword_num\tleft\ttop\twidth\theight\tconf\ttext\n";

    /// Words as (page, line, left, confidence, text); lines as (page, text).
    #[track_caller]
    fn check(words: &[(u32, u32, u32, f32, &str)], expected: &[(usize, &str)]) {
        let row = |(page, line, left, confidence, text): &(u32, u32, u32, f32, &str)| {
            format!("5\t{page}\t1\t1\t{line}\t1\t{left}\t10\t30\t20\t{confidence}\t{text}\n")
        };
        let table = format!("{HEAD}{}", words.iter().map(row).collect::<String>());
        let found: Vec<(usize, String)> = (0..)
            .zip(lines(table.as_bytes(), 2))
            .flat_map(|(page, lines)| lines.into_iter().map(move |line| (page, line.text)))
            .collect();
        let expected: Vec<(usize, String)> =
            expected.iter().map(|(page, text)| (*page, (*text).into())).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn words_of_a_line_are_joined() {
        check(
            &[
                (1, 1, 0, 96.0, "Two"),
                (1, 1, 40, 95.0, "words"),
                (1, 2, 0, 90.0, "below"),
                (2, 1, 0, 90.0, "next"),
            ],
            &[(0, "Two words"), (0, "below"), (1, "next")],
        );
        check(
            &[(1, 1, 0, 80.0, "¢"), (1, 1, 40, 95.0, "x"), (1, 1, 80, 95.0, "-"), (1, 1, 99, 95.0, "y")],
            &[(0, "x - y")],
        );
        let table = format!(
            "{HEAD}5\t1\t1\t1\t1\t1\t10\t20\t30\t5\t80\tA\n5\t1\t1\t1\t1\t2\t50\t18\t30\t9\t90\tcat\n"
        );
        let line = lines(table.as_bytes(), 1).remove(0).remove(0);
        assert_eq!(line.at, Place { left: 10, top: 18, right: 80, bottom: 27 });
        assert!((line.confidence - 0.875).abs() < 1e-6, "{}", line.confidence);
    }

    #[test]
    fn lines_beyond_the_most_are_left_out() {
        let most = MOST_LINES as u32;
        let words: Vec<_> = (0..most + 2).map(|line| (1, line, 0, 90.0, "word")).collect();
        check(&words, &vec![(0, "word"); MOST_LINES]);
    }

    #[test]
    fn noise_is_dropped() {
        check(
            &[(1, 1, 0, 20.0, "Xq"), (1, 2, 0, 50.0, "ni"), (1, 3, 0, 90.0, "|—|"), (1, 4, 0, 99.0, "l")],
            &[],
        );
        check(&[(1, 1, 0, 90.0, "3")], &[(0, "3")]);
        check(&[(1, 1, 0, 90.0, "3"), (1, 1, 9, 90.0, "O")], &[(0, "3 0")]);
        check(&[(1, 1, 0, 90.0, "Big"), (1, 1, 9, 90.0, "O")], &[(0, "Big O")]);
    }

    #[test]
    fn strange_tables_break_nothing() {
        for table in [
            "",
            "5\t1",
            "5\t9\t1\t1\t1\t1\t0\t0\t1\t1\t90\tfar",
            "5\t0\t1\t1\t1\t1\t0\t0\t1\t1\t90\tx y",
            "\u{0}",
        ] {
            assert!(lines(table.as_bytes(), 1).iter().all(Vec::is_empty), "{table:?}");
        }
        assert!(lines(&[0xff, b'5', b'\t'], 1)[0].is_empty());
    }
}
