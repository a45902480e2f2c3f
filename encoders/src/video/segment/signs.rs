//! Measures what tells a gradual transition from movement in a window of frames.
//!
//! A dissolve shows a sum of two pictures, and so does a fade, in whose middle there is little of either. The parts of
//! both in a frame are found by least squares, on coarse pictures without their mean ([`super::grid`]). In a transition,
//! one part rises and the other falls, without a jump, and the sum leaves little of the frame unexplained. In a wipe each
//! block shows one of the two pictures. Frames of a pan or of a moving object are neither, and on their way from one picture to
//! the other they change more than the two pictures differ.

use super::pictures::Pictures;

/// Frames on either side of a window in which the pictures must stay.
pub(super) const AROUND: usize = 6;
/// Number of signs.
pub(super) const SIGNS: usize = 18;

/// Energy of a picture's noise: of the mean square over its blocks, in square luma levels, as all energies.
const NOISE: f32 = 4.0;
/// Least energy of both pictures: a plain one has no shape to find again.
const LEAST_ENERGY: f32 = 28.0;
/// Least mean square difference of the two pictures.
const LEAST_DISTANCE: f32 = 206.0;
/// Largest correlation of the two pictures: of a slow pan it is higher.
const MOST_ALIKE: f32 = 0.5;
/// In the middle of a transition, the two pictures explain all but this part of a frame, or its blocks show one of them but for that
/// part of their difference.
const MOST_REST: f32 = 0.6;
const MOST_NEITHER: f32 = 0.15;
/// Their places among the signs.
const REST: usize = 9;
const NEITHER: usize = 13;

/// The places of the two pictures.
#[derive(Debug, Clone, Copy)]
pub(super) struct Window {
    pub(super) first: usize,
    pub(super) last: usize,
}

/// What was measured of a window.
#[derive(Debug, Clone, Copy)]
pub(super) struct Measured {
    /// The place of the first picture that has more of the later one.
    pub(super) middle: usize,
    /// The input of [`super::judge`], in the order of the functions `of_pair` (4 signs), `of_leads` (3), `of_surroundings` (2),
    /// `of_rests` (3) and `of_blocks` (6): logarithms of sizes and of ratios, correlations and shares.
    pub(super) signs: [f32; SIGNS],
}

/// What a frame has of the two pictures.
#[derive(Debug, Clone, Copy)]
struct Share {
    /// The part of the last less that of the first: from -1 to 1.
    lead: f32,
    /// The sum of both parts.
    sum: f32,
    /// Energy that neither explains.
    rest: f32,
}

/// Two pictures, compared.
#[derive(Debug, Clone, Copy)]
struct Pair {
    energies: [f32; 2],
    both: f32,
    alike: f32,
    distance: f32,
}

impl Pair {
    /// `None` if they are plain or alike, so that nothing shows what comes from which.
    fn of(pictures: &Pictures, Window { first, last }: Window) -> Option<Pair> {
        let energies = [first, last].map(|it| pictures.product(it, it));
        let both = pictures.product(first, last);
        let alike = both / ((energies[0] + NOISE) * (energies[1] + NOISE)).sqrt();
        let distance = pictures.distance(first, last);
        let tells = energies[0].min(energies[1]) >= LEAST_ENERGY && alike <= MOST_ALIKE;
        (tells && distance >= LEAST_DISTANCE).then_some(Pair { energies, both, alike, distance })
    }

    /// The energy that a frame of neither picture would leave unexplained.
    fn scale(&self) -> f32 {
        (0.5 * (self.energies[0] + self.energies[1]) + NOISE) * (1.0 - self.alike).max(0.05)
    }
}

/// Measures windows; keeps its buffer.
#[derive(Debug, Default)]
pub(super) struct Measurer {
    shares: Vec<Share>,
}

impl Measurer {
    /// `None` if the window's pictures are plain or alike, or its middle shows something else. [`AROUND`] frames must
    /// lie on either side of the window, which has at least two frames between its pictures.
    pub(super) fn measure(&mut self, pictures: &Pictures, window: Window) -> Option<Measured> {
        let pair = Pair::of(pictures, window)?;
        self.least_squares(pictures, window, &pair);
        let inside = &self.shares[AROUND..self.shares.len() - AROUND];
        let middle = inside.iter().position(|it| it.lead > 0.0)?.clamp(1, inside.len() - 2);
        let mut signs = [0.0; SIGNS];
        let all = of_pair(window, &pair)
            .into_iter()
            .chain(of_leads(inside, middle))
            .chain(self.of_surroundings(&pair))
            .chain(of_rests(inside, middle, pair.scale()))
            .chain(of_blocks(pictures, window, inside));
        signs.iter_mut().zip(all).for_each(|(sign, value)| *sign = value);
        let shows_others = signs[REST] > log(MOST_REST, 0.02) && signs[NEITHER] > log(MOST_NEITHER, 0.01);
        (!shows_others).then_some(Measured { middle: window.first + middle, signs })
    }

    /// The shares of the window's frames and of those around it.
    fn least_squares(&mut self, pictures: &Pictures, Window { first, last }: Window, pair: &Pair) {
        let ([aa, bb], ab) = (pair.energies, pair.both);
        let (wide_a, wide_b) = (aa + NOISE, bb + NOISE);
        let scale = 1.0 / (wide_a * wide_b - ab * ab).max(1e-3);
        self.shares.clear();
        self.shares.extend((first - AROUND..=last + AROUND).map(|at| {
            let (with_a, with_b) = (pictures.product(at, first), pictures.product(at, last));
            let a = (with_a * wide_b - with_b * ab) * scale;
            let b = (with_b * wide_a - with_a * ab) * scale;
            let explained = 2.0 * (a * with_a + b * with_b) - a * a * aa - b * b * bb - 2.0 * a * b * ab;
            Share { lead: b - a, sum: a + b, rest: pictures.product(at, at) - explained }
        }));
    }

    /// How far the frames before and after the window move away from its pictures.
    fn of_surroundings(&self, pair: &Pair) -> [f32; 2] {
        let end = self.shares.len() - AROUND;
        let sides = [(&self.shares[..AROUND], AROUND), (&self.shares[end..], end - 1)];
        let moves =
            sides.map(|(shares, from)| largest(shares, |it| (it.lead - self.shares[from].lead).abs()));
        let rests = [0, 1].map(|side| largest(sides[side].0, |it| it.rest) / (pair.energies[side] + NOISE));
        [log(moves[0].max(moves[1]), 0.05), log(rests[0].max(rests[1]), 0.02)]
    }
}

/// The window's length, and its two pictures.
fn of_pair(Window { first, last }: Window, pair: &Pair) -> [f32; 4] {
    let least = pair.energies[0].min(pair.energies[1]);
    [((last - first) as f32).ln(), log(least, NOISE), pair.alike, log(pair.distance, 0.0)]
}

/// How steadily one picture gives way to the other.
fn of_leads(inside: &[Share], middle: usize) -> [f32; 3] {
    let steps = || inside.windows(2).map(|it| it[1].lead - it[0].lead);
    let jump = steps().map(f32::abs).fold(0.0, f32::max);
    let back = steps().map(|it| (-it).max(0.0)).sum::<f32>();
    [jump, log(back, 0.05), inside[middle].sum]
}

/// What neither picture explains: near the middle, at most, in the mean.
fn of_rests(inside: &[Share], middle: usize, scale: f32) -> [f32; 3] {
    let interior = &inside[1..inside.len() - 1];
    let near = &interior[middle.saturating_sub(2)..(middle + 1).min(interior.len())];
    let mean = |shares: &[Share]| shares.iter().map(|it| it.rest).sum::<f32>() / shares.len() as f32;
    [mean(near), largest(interior, |it| it.rest), mean(interior)].map(|it| log(it / scale, 0.02))
}

/// What the blocks do: how many change, whether they show one of both pictures, and how much they change on the way.
fn of_blocks(pictures: &Pictures, window: Window, inside: &[Share]) -> [f32; 6] {
    let Window { first, last } = window;
    let net = pictures.difference(first, last);
    let path = pictures.path(first, last);
    let a_frame = path / (last - first) as f32;
    let around = pictures.path(first - AROUND, first).max(pictures.path(last, last + AROUND)) / AROUND as f32;
    let quarters = [-0.5, 0.0, 0.5].map(|lead| inside.iter().position(|it| it.lead >= lead).unwrap_or(0));
    let neither =
        quarters.map(|at| pictures.neither(first + at, first, last)).into_iter().fold(0.0, f32::max);
    [
        net.changed,
        log(neither, 0.01),
        log(path / net.mean.max(0.25), 0.0),
        log(a_frame / (around + 0.2), 0.0),
        log(pictures.largest_change(first, last) / (a_frame + 0.05), 0.0),
        (pictures.mean(first) - pictures.mean(last)).abs() / 50.0,
    ]
}

fn largest(shares: &[Share], of: impl Fn(&Share) -> f32) -> f32 {
    shares.iter().map(of).fold(0.0, f32::max)
}

/// The logarithm of a value that is at least 0 but for rounding. `smallest` keeps apart what is no noise.
fn log(value: f32, smallest: f32) -> f32 {
    (value.max(0.0) + smallest).max(1e-3).ln()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wide::Wide;

    /// Frames of a transition, between two pictures that rest for [`AROUND`] frames more.
    const LENGTH: usize = 9;
    /// Blocks on a side.
    const SIDE: usize = 8;

    /// What is measured where each block's luma goes from the first picture to the last by `luma(block, part)`.
    fn measured(luma: impl Fn(usize, f32) -> f32) -> Option<Measured> {
        let mut pictures = Pictures::new(Wide::detect(), 100);
        let (first, last) = (AROUND, AROUND + LENGTH + 1);
        for at in 0..=last + AROUND {
            let part = (at.clamp(first, last) - first) as f32 / (last - first) as f32;
            let (width, block) = (8 * SIDE, |x: usize, y: usize| y / 8 * SIDE + x / 8);
            let pixels = (0..width * width).map(|it| luma(block(it % width, it / width), part) as u8);
            let frame: Vec<u8> = pixels.collect();
            assert!(pictures.push(at as i64 * 40, width, &frame));
        }
        Measurer::default().measure(&pictures, Window { first, last })
    }

    /// Two pictures that have nothing in common.
    fn pair(block: usize) -> [f32; 2] {
        [40.0 + 120.0 * (block % 2) as f32, 60.0 + 90.0 * (block / SIDE % 2) as f32]
    }

    /// Checks, within 0.1: the energy near the middle that neither picture explains, how much the blocks are neither, and the length
    /// of their way, all logarithms.
    #[track_caller]
    fn check(luma: impl Fn(usize, f32) -> f32, expected: [f32; 3]) {
        let measured = measured(luma).unwrap();
        let found = [REST, NEITHER, NEITHER + 1].map(|it| measured.signs[it]);
        assert!(found.iter().zip(expected).all(|(a, b)| (a - b).abs() < 0.1), "{found:?}, not {expected:?}");
    }

    #[test]
    fn a_dissolve_is_a_sum_and_a_wipe_is_one_or_the_other() {
        let nothing = 0.02_f32.ln();
        let dissolve = |block, part| {
            let [a, b] = pair(block);
            a + (b - a) * part
        };
        check(dissolve, [nothing, (0.4_f32 * 0.4).ln(), 0.0]);
        assert_eq!(measured(dissolve).unwrap().middle, AROUND + 6);
        let wipe = |block, part| pair(block)[usize::from((block % SIDE) as f32 / (SIDE as f32) < part)];
        check(wipe, [0.46_f32.ln(), 0.01_f32.ln(), 0.0]);
    }

    #[test]
    fn pictures_that_are_alike_or_plain_are_not_measured() {
        assert!(measured(|block, part| pair(block)[0] * (1.0 - 0.3 * part)).is_none());
        assert!(measured(|block, part| if part < 0.5 { 100.0 } else { pair(block)[0] }).is_none());
    }
}
