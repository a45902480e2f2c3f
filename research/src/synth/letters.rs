//! Capital letters and digits as strokes.

use super::canvas::{Canvas, Color, Point};

/// Columns and rows of the grid on which the corners of a letter lie, and the columns between two letters and of a space.
const COLUMNS: f64 = 4.0;
const ROWS: f64 = 6.0;
const GAP: f64 = 2.4;
const SPACE: f64 = 0.8;
/// Width of a stroke, in rows.
const STROKE: f64 = 0.95;

/// The strokes of a letter: corners as column and row, strokes apart by `;`. Empty for what has no letter.
fn strokes(letter: char) -> &'static str {
    match letter {
        'A' => "06 20 46;14 34",
        'B' => "06 00 30 41 42 33 03;33 44 45 36 06",
        'C' => "41 30 10 01 05 16 36 45",
        'D' => "06 00 20 42 44 26 06",
        'E' => "40 00 06 46;03 33",
        'F' => "40 00 06;03 33",
        'G' => "41 30 10 01 05 16 36 45 43 23",
        'H' => "00 06;40 46;03 43",
        'I' => "10 30;20 26;16 36",
        'J' => "40 45 36 16 05",
        'K' => "00 06;40 03 46",
        'L' => "00 06 46",
        'M' => "06 00 23 40 46",
        'N' => "06 00 46 40",
        'O' => "10 30 41 45 36 16 05 01 10",
        'P' => "06 00 30 41 42 33 03",
        'R' => "06 00 30 41 42 33 03;23 46",
        'S' => "41 30 10 01 02 13 33 44 45 36 16 05",
        'T' => "00 40;20 26",
        'U' => "00 05 16 36 45 40",
        'V' => "00 26 40",
        'W' => "00 16 23 36 40",
        'Y' => "00 23 40;23 26",
        'Z' => "00 40 06 46",
        '0' => "10 20 31 35 26 16 05 01 10",
        '1' => "11 20 26;16 36",
        '2' => "01 10 30 41 42 06 46",
        '3' => "01 10 30 41 42 33 13;33 44 45 36 16 05",
        '4' => "36 30 04 44",
        '5' => "40 00 03 33 44 45 36 16 06",
        '6' => "40 10 01 05 16 36 45 44 33 03",
        '7' => "00 40 16",
        '8' => "10 30 41 42 33 13 02 01 10;13 04 05 16 36 45 44 33",
        '9' => "43 13 02 01 10 30 41 45 36 06",
        _ => "",
    }
}

/// Writes capital letters and digits, `height` pixels high, from the left upper corner `from` on.
pub(super) fn write(canvas: &mut Canvas, text: &str, from: Point, height: f64, color: Color) {
    let scale = height / ROWS;
    let mut left = from[0];
    for letter in text.chars() {
        for stroke in strokes(letter).split(';') {
            let corners: Vec<Point> =
                stroke.split(' ').filter_map(|it| corner(it, [left, from[1]], scale)).collect();
            for two in corners.windows(2) {
                canvas.line(two[0], two[1], STROKE * scale, color);
            }
        }
        left += advance(letter) * scale;
    }
}

/// Width of a text in pixels.
pub(super) fn width(text: &str, height: f64) -> f64 {
    text.chars().map(advance).sum::<f64>() * height / ROWS
}

/// Columns from a letter to the next one.
fn advance(letter: char) -> f64 {
    GAP + if letter == ' ' { SPACE } else { COLUMNS }
}

fn corner(at: &str, from: Point, scale: f64) -> Option<Point> {
    let mut digits = at.chars().filter_map(|it| it.to_digit(10));
    let (column, row) = (digits.next()?, digits.next()?);
    Some([from[0] + f64::from(column) * scale, from[1] + f64::from(row) * scale])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether a letter draws something; it stays on its grid.
    #[track_caller]
    fn check(letter: char, draws: bool) {
        let mut canvas = Canvas::new(64, 64).unwrap();
        let empty = canvas.rgba().to_vec();
        write(&mut canvas, &letter.to_string(), [8.0, 8.0], 48.0, Color([1.0; 3]));
        assert_eq!(canvas.rgba() != empty, draws, "{letter}");
        let on_grid = |it: char| it.is_ascii_digit() || " ;".contains(it);
        assert!(strokes(letter).chars().all(on_grid), "{letter}");
    }

    #[test]
    fn letters_and_digits_are_drawn_and_nothing_else_is() {
        ('A'..='Z').filter(|it| !"QX".contains(*it)).chain('0'..='9').for_each(|it| check(it, true));
        " é-\u{1f600}".chars().for_each(|it| check(it, false));
    }
}
