//! Regions of pictures as pages of a TIFF file, which Tesseract reads from a pipe.

/// Grey pixels of a page, row by row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Page {
    pub(super) width: usize,
    pub(super) height: usize,
    /// `width * height` values, 0 for black.
    pub(super) luma: Vec<u8>,
}

/// Text on a ground that is darker than this is inverted: Tesseract is quicker on dark text.
const DARK: u8 = 110;
/// Neighbours in what is drawn evenly differ by less than this.
const EVEN: u8 = 12;
/// Type codes of a TIFF field.
const SHORT: u16 = 3;
const LONG: u16 = 4;

impl Page {
    /// Twice as large, with values between those of its pixels. Tesseract knows letters of 20 pixels and more best.
    pub(super) fn doubled(&self) -> Page {
        let (width, height) = (2 * self.width, 2 * self.height);
        let mut luma = Vec::with_capacity(width * height);
        for y in 0..height {
            let (above, below) = neighbours(y, self.height);
            let (near, far) = (self.row(above), self.row(below));
            for x in 0..width {
                let (left, right) = neighbours(x, self.width);
                let of = |row: &[u8]| 3 * u32::from(row[left]) + u32::from(row[right]);
                luma.push(((3 * of(near) + of(far) + 8) / 16) as u8);
            }
        }
        Page { width, height, luma }
    }

    /// Dark text on a light ground. `ground`: the luma behind the text.
    pub(super) fn light(mut self, ground: u8) -> Page {
        if ground < DARK {
            self.luma.iter_mut().for_each(|it| *it = 255 - *it);
        }
        self
    }

    /// With the ground in place of what surrounds a board: even parts that begin at the border and reach in no further than
    /// `margin` pixels. Tesseract finds no text in a frame.
    pub(super) fn without_surroundings(mut self, ground: u8, margin: usize) -> Page {
        let mut seen = vec![false; self.luma.len()];
        for start in 0..self.luma.len() {
            if self.depth(start) > 0 || seen[start] {
                continue;
            }
            let part = self.even_part(start, &mut seen);
            if part.iter().all(|pixel| self.depth(*pixel) < margin) {
                part.into_iter().for_each(|pixel| self.luma[pixel] = ground);
            }
        }
        self
    }

    /// The pixels that are connected with this one without an edge between them.
    fn even_part(&self, start: usize, seen: &mut [bool]) -> Vec<usize> {
        let mut part = vec![start];
        seen[start] = true;
        let mut at = 0;
        while let Some(&pixel) = part.get(at) {
            at += 1;
            let (x, y) = (pixel % self.width, pixel / self.width);
            let beside = [(x > 0).then(|| pixel - 1), (x + 1 < self.width).then_some(pixel + 1)];
            let above =
                [(y > 0).then(|| pixel - self.width), (y + 1 < self.height).then_some(pixel + self.width)];
            for near in beside.into_iter().chain(above).flatten() {
                if !seen[near] && self.luma[near].abs_diff(self.luma[pixel]) < EVEN {
                    seen[near] = true;
                    part.push(near);
                }
            }
        }
        part
    }

    /// How far a pixel is from the border.
    fn depth(&self, pixel: usize) -> usize {
        let (x, y) = (pixel % self.width, pixel / self.width);
        x.min(y).min(self.width - 1 - x).min(self.height - 1 - y)
    }

    fn row(&self, y: usize) -> &[u8] {
        &self.luma[y * self.width..(y + 1) * self.width]
    }
}

/// The pixel that one of the doubled picture lies in, and the next one that it touches.
fn neighbours(at: usize, length: usize) -> (usize, usize) {
    let nearest = at / 2;
    let next = if at.is_multiple_of(2) { nearest.saturating_sub(1) } else { nearest + 1 };
    (nearest, next.min(length - 1))
}

/// The pages as one uncompressed TIFF file.
pub(super) fn tiff(pages: &[&Page]) -> Vec<u8> {
    let mut file = b"II*\0\0\0\0\0".to_vec();
    let mut link = 4;
    for page in pages {
        let pixels = file.len() as u32;
        file.extend_from_slice(&page.luma);
        file.resize(file.len().next_multiple_of(2), 0);
        let directory = (file.len() as u32).to_le_bytes();
        file[link..link + 4].copy_from_slice(&directory);
        let fields = [
            (256, LONG, page.width as u32),
            (257, LONG, page.height as u32),
            // Bits of a pixel, no compression, black is zero.
            (258, SHORT, 8),
            (259, SHORT, 1),
            (262, SHORT, 1),
            // One strip with all rows.
            (273, LONG, pixels),
            (277, SHORT, 1),
            (278, LONG, page.height as u32),
            (279, LONG, page.luma.len() as u32),
        ];
        file.extend((fields.len() as u16).to_le_bytes());
        for (tag, kind, value) in fields {
            file.extend(u16::to_le_bytes(tag));
            file.extend(kind.to_le_bytes());
            file.extend(1_u32.to_le_bytes());
            file.extend(value.to_le_bytes());
        }
        link = file.len();
        file.extend([0; 4]);
    }
    file
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_doubled_page_keeps_its_flat_parts() {
        let page = Page { width: 2, height: 1, luma: vec![0, 160] };
        let doubled = page.doubled();
        assert_eq!((doubled.width, doubled.height), (4, 2));
        assert_eq!(doubled.luma, [0, 40, 120, 160, 0, 40, 120, 160]);
    }

    #[test]
    fn light_text_on_a_dark_ground_is_inverted() {
        let luma = |ground| Page { width: 2, height: 1, luma: vec![20, 200] }.light(ground).luma;
        assert_eq!(luma(20), [235, 55]);
        assert_eq!(luma(200), [20, 200]);
    }

    /// Draws pixels as characters: `.` ground, `#` text, `s` and `t` the picture around a board.
    #[track_caller]
    fn check(margin: usize, rows: &[&str], expected: &[&str]) {
        let shade =
            |it: char| [('.', 20), ('#', 235), ('s', 150), ('t', 155)].into_iter().find(|(c, _)| *c == it);
        let luma = |rows: &[&str]| -> Vec<u8> {
            rows.iter().flat_map(|row| row.chars()).filter_map(shade).map(|(_, luma)| luma).collect()
        };
        let page = Page { width: rows[0].len(), height: rows.len(), luma: luma(rows) };
        assert_eq!(page.without_surroundings(20, margin).luma, luma(expected), "{rows:?}");
    }

    #[test]
    fn what_surrounds_a_board_becomes_its_ground() {
        check(2, &["sstts", "s...s", "s.#.s", "t...s"], &[".....", ".....", "..#..", "....."]);
        // A letter that the border cuts is no text; what lies around letters stays.
        check(2, &["#....", ".....", "....."], &[".....", ".....", "....."]);
        check(
            2,
            &["sssss", "s#s#s", "sssss", "s#s#s", "sssss"],
            &["sssss", "s#s#s", "sssss", "s#s#s", "sssss"],
        );
    }

    #[test]
    fn each_page_links_to_the_next() {
        let page = Page { width: 3, height: 1, luma: vec![1, 2, 3] };
        let file = tiff(&[&page, &page]);
        let number = |at: usize| u32::from_le_bytes(file[at..at + 4].try_into().unwrap()) as usize;
        let first = number(4);
        assert_eq!(&file[8..11], [1, 2, 3]);
        let second = number(first + 2 + 9 * 12);
        assert!(second > first);
        assert_eq!(number(second + 2 + 9 * 12), 0);
    }
}
