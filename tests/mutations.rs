//! Hostile inputs from good ones: random changes that a seed number repeats.

/// Longest input.
const LONGEST: usize = 1 << 16;
/// Numbers at which programs go wrong.
const NUMBERS: [u64; 12] =
    [0, 1, 0x7f, 0xff, 0x7fff, 0xffff, 0x7fff_ffff, 0xffff_ffff, 1 << 32, 1 << 62, i64::MAX as u64, u64::MAX];
/// Numbers as text, and pieces at which parsers of text go wrong.
const TEXTS: [&str; 24] = [
    "-1",
    "1e999",
    "-0",
    "NaN",
    "9223372036854775807",
    "9223372036854775808",
    "18446744073709551616",
    "0.0000001",
    "null",
    "\"\"",
    "{}",
    "[]",
    "\0",
    "\u{feff}",
    "\u{fdfa}",
    "\n\n",
    "\r",
    "-->",
    "<",
    "&",
    "\\",
    "\"",
    "%00",
    ":",
];

/// A source of random numbers: SplitMix64.
#[derive(Debug, Clone)]
pub struct Dice(u64);

impl Dice {
    /// Numbers that depend on `seed` alone.
    pub fn new(seed: u64) -> Dice {
        Dice(seed)
    }

    /// The next number.
    pub fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `end`; 0 if `end` is 0.
    pub fn below(&mut self, end: usize) -> usize {
        (self.roll() % end.max(1) as u64) as usize
    }

    /// A range within `length`, often short.
    fn range(&mut self, length: usize) -> std::ops::Range<usize> {
        let start = self.below(length);
        let longest = if self.below(4) == 0 { length - start } else { 16.min(length - start) };
        start..start + self.below(longest + 1)
    }
}

/// One of `seeds` with one to six changes.
///
/// # Panics
/// Without a seed.
pub fn mutated(seeds: &[Vec<u8>], dice: &mut Dice) -> Vec<u8> {
    let mut bytes = seeds[dice.below(seeds.len())].clone();
    for _ in 0..=dice.below(6) {
        change(&mut bytes, seeds, dice);
        bytes.truncate(LONGEST.max(seeds[0].len()));
    }
    bytes
}

fn change(bytes: &mut Vec<u8>, seeds: &[Vec<u8>], dice: &mut Dice) {
    let length = bytes.len();
    match dice.below(12) {
        0 | 1 if length > 0 => bytes[dice.below(length)] ^= 1 << dice.below(8),
        2 if length > 0 => bytes[dice.below(length)] = dice.roll() as u8,
        3 => bytes.truncate(dice.below(length + 1)),
        4 => drop(bytes.drain(dice.range(length))),
        5 => {
            let piece = bytes[dice.range(length)].to_vec();
            let times = [1, 2, 50, 1000][dice.below(4)];
            insert(bytes, &piece.repeat(times)[..(piece.len() * times).min(LONGEST)], dice);
        }
        6 => {
            let other = &seeds[dice.below(seeds.len())];
            let piece = other[dice.range(other.len())].to_vec();
            insert(bytes, &piece, dice);
        }
        7 => {
            let other = &seeds[dice.below(seeds.len())];
            bytes.truncate(dice.below(length + 1));
            bytes.extend(&other[dice.below(other.len() + 1)..]);
        }
        8 | 9 => number(bytes, dice),
        10 => insert(bytes, TEXTS[dice.below(TEXTS.len())].as_bytes(), dice),
        _ => text_number(bytes, dice),
    }
}

fn insert(bytes: &mut Vec<u8>, piece: &[u8], dice: &mut Dice) {
    let at = dice.below(bytes.len() + 1);
    bytes.splice(at..at, piece.iter().copied());
}

/// Writes a binary number over the bytes.
fn number(bytes: &mut [u8], dice: &mut Dice) {
    let number = NUMBERS[dice.below(NUMBERS.len())];
    let width = [1, 2, 4, 8][dice.below(4)];
    let at = dice.below(bytes.len());
    let (small, large) = (number.to_le_bytes(), number.to_be_bytes());
    let written = if dice.below(2) == 0 { &small[..width] } else { &large[8 - width..] };
    bytes.iter_mut().skip(at).zip(written).for_each(|(byte, new)| *byte = *new);
}

/// Replaces a number in a text.
fn text_number(bytes: &mut Vec<u8>, dice: &mut Dice) {
    let from = dice.below(bytes.len());
    let Some(start) = bytes[from..].iter().position(u8::is_ascii_digit).map(|at| from + at) else { return };
    let digits = bytes[start..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    let text = TEXTS[dice.below(8)];
    bytes.splice(start..start + digits, text.bytes());
}
