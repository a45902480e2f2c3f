//! Edge maps of pictures and their difference: the edge component of PySceneDetect's content score.
//!
//! Canny's detector as OpenCV computes it (3x3 Sobel, sum of absolute gradients, thresholds at two and four thirds of
//! the median). The edges are then dilated, so that small movements do not count.

/// The edge map of the last picture.
#[derive(Debug, Default)]
pub(super) struct EdgeMap {
    last: Vec<bool>,
}

impl EdgeMap {
    /// Takes the value plane of the next frame; returns the mean absolute difference of the edge maps, 0 to 255. 0 for
    /// the first picture and after a change of size.
    pub(super) fn push(&mut self, width: usize, value: &[u8]) -> f64 {
        let current = widened_edges(width.max(1), value);
        let differing = match self.last.len() == current.len() {
            true => self.last.iter().zip(&current).filter(|(a, b)| a != b).count(),
            false => 0,
        };
        let pixels = current.len().max(1);
        self.last = current;
        255.0 * differing as f64 / pixels as f64
    }
}

fn widened_edges(width: usize, value: &[u8]) -> Vec<bool> {
    let height = value.len() / width;
    let median = median(value);
    let third = 1.0 / 3.0;
    let low = ((1.0 - third) * median) as i32;
    let high = ((1.0 + third) * median).min(255.0) as i32;
    let edges = Gradients::of(width, height, value).edges(low, high);
    widened(width, height, &edges, kernel_size(width, height))
}

/// PySceneDetect's kernel size, odd.
fn kernel_size(width: usize, height: usize) -> usize {
    let size = 4 + ((width as f64 * height as f64).sqrt() / 192.0).round_ties_even() as usize;
    size | 1
}

fn median(plane: &[u8]) -> f64 {
    let mut histogram = [0_usize; 256];
    plane.iter().for_each(|value| histogram[usize::from(*value)] += 1);
    let at = |rank: usize| {
        let mut so_far = 0;
        let found = histogram.iter().position(|count| {
            so_far += count;
            so_far > rank
        });
        found.unwrap_or(0) as f64
    };
    match plane.len() {
        0 => 0.0,
        count => (at((count - 1) / 2) + at(count / 2)) / 2.0,
    }
}

/// Sobel gradients, and their magnitudes with a border of zeros.
struct Gradients {
    width: usize,
    height: usize,
    dx: Vec<i32>,
    dy: Vec<i32>,
    magnitude: Vec<i32>,
}

impl Gradients {
    fn of(width: usize, height: usize, plane: &[u8]) -> Gradients {
        let (mut dx, mut dy) = (vec![0; width * height], vec![0; width * height]);
        let stride = width + 2;
        let mut magnitude = vec![0; stride * (height + 2)];
        for y in 0..height {
            let row = |at: usize| &plane[at * width..(at + 1) * width];
            let [above, here, below] = [row(y.saturating_sub(1)), row(y), row((y + 1).min(height - 1))];
            for x in 0..width {
                let (left, right) = (x.saturating_sub(1), (x + 1).min(width - 1));
                let at = |row: &[u8], x: usize| i32::from(row[x]);
                let horizontal = |row: &[u8]| at(row, right) - at(row, left);
                let vertical = |x: usize| at(below, x) - at(above, x);
                let (gx, gy) = (
                    horizontal(above) + 2 * horizontal(here) + horizontal(below),
                    vertical(left) + 2 * vertical(x) + vertical(right),
                );
                (dx[y * width + x], dy[y * width + x]) = (gx, gy);
                magnitude[(y + 1) * stride + x + 1] = gx.abs() + gy.abs();
            }
        }
        Gradients { width, height, dx, dy, magnitude }
    }

    /// Ridges over `high`, and ridges over `low` that touch them.
    fn edges(&self, low: i32, high: i32) -> Vec<bool> {
        let (width, height) = (self.width, self.height);
        let (mut weak, mut edges) = (vec![false; width * height], vec![false; width * height]);
        let mut strong = Vec::new();
        for y in 0..height {
            for x in 0..width {
                let magnitude = self.magnitude[(y + 1) * (width + 2) + x + 1];
                if magnitude > low && self.is_ridge(x, y) {
                    weak[y * width + x] = true;
                    if magnitude > high {
                        strong.push((x, y));
                    }
                }
            }
        }
        while let Some((x, y)) = strong.pop() {
            if !std::mem::replace(&mut edges[y * width + x], true) {
                for near_y in y.saturating_sub(1)..(y + 2).min(height) {
                    let near = (x.saturating_sub(1)..(x + 2).min(width)).map(|near_x| (near_x, near_y));
                    strong.extend(near.filter(|(x, y)| weak[y * width + x] && !edges[y * width + x]));
                }
            }
        }
        edges
    }

    /// Whether the magnitude is the largest across the edge (non-maximum suppression). Directions in fixed point, as
    /// OpenCV's.
    fn is_ridge(&self, x: usize, y: usize) -> bool {
        const SHIFT: u32 = 15;
        /// tan 22.5 degrees.
        const TANGENT: i64 = 13_573;
        let (gx, gy) = (self.dx[y * self.width + x], self.dy[y * self.width + x]);
        let stride = self.width + 2;
        let at = (y + 1) * stride + x + 1;
        let here = self.magnitude[at];
        let (along, across) = (i64::from(gx.abs()), i64::from(gy.abs()) << SHIFT);
        let flat = along * TANGENT;
        if across < flat {
            return here > self.magnitude[at - 1] && here >= self.magnitude[at + 1];
        }
        if across > flat + (along << (SHIFT + 1)) {
            return here > self.magnitude[at - stride] && here >= self.magnitude[at + stride];
        }
        let (above, below) = match (gx ^ gy) < 0 {
            true => (at - stride + 1, at + stride - 1),
            false => (at - stride - 1, at + stride + 1),
        };
        here > self.magnitude[above] && here > self.magnitude[below]
    }
}

/// Dilation: true where a square of `size` contains a true value.
fn widened(width: usize, height: usize, edges: &[bool], size: usize) -> Vec<bool> {
    let reach = size / 2;
    let mut wide = vec![false; edges.len()];
    for (from, to) in edges.chunks_exact(width).zip(wide.chunks_exact_mut(width)) {
        for x in (0..width).filter(|x| from[*x]) {
            to[x.saturating_sub(reach)..(x + reach + 1).min(width)].fill(true);
        }
    }
    let mut tall = vec![false; edges.len()];
    for y in 0..height {
        let to = &mut tall[y * width..(y + 1) * width];
        for from in y.saturating_sub(reach)..(y + reach + 1).min(height) {
            to.iter_mut().zip(&wide[from * width..(from + 1) * width]).for_each(|(to, from)| *to |= from);
        }
    }
    tall
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A small picture that any language can generate identically.
    fn picture(width: usize, height: usize, seed: usize) -> Vec<u8> {
        let blob = |x: usize, y: usize| (x * x / 7 + y * 5 + (x / 9) * (y / 6) * 40 + seed * 13) % 256;
        (0..width * height).map(|at| blob(at % width, at / width) as u8).collect()
    }

    /// Expected values of `_detect_edges` in PySceneDetect 0.7: the number of edge pixels, and the difference to the
    /// next picture.
    #[track_caller]
    fn check(width: usize, height: usize, edges: usize, difference: f64) {
        let first = widened_edges(width, &picture(width, height, 0));
        assert_eq!(first.iter().filter(|it| **it).count(), edges, "{width}x{height}");
        let mut map = EdgeMap::default();
        assert!(map.push(width, &picture(width, height, 0)).abs() < 1e-12);
        assert!((map.push(width, &picture(width, height, 3)) - difference).abs() < 1e-9);
    }

    #[test]
    fn edges_are_those_of_opencv() {
        check(64, 36, 1874, 7.304_687_5);
        check(256, 144, 35_456, 4.586_181_640_625);
        check(91, 161, 13_190, 10.147_088_935_908_812);
        check(3, 3, 9, 255.0);
    }

    #[test]
    fn a_flat_picture_has_no_edges() {
        assert!(!widened_edges(16, &[77; 16 * 9]).contains(&true));
        assert!(widened_edges(16, &[]).is_empty());
    }
}
