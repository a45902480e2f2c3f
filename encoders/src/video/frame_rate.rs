//! Frame rates as ratios of whole numbers: 29.97 frames per second are 30000/1001.

use std::fmt;
use std::ops::Range;

/// A number of frames per second, exactly.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FrameRate {
    num: u32,
    den: u32,
}

/// Rates of editing programs, with their names, ascending.
const STANDARD: [(FrameRate, &str); 8] = [
    (FrameRate { num: 24_000, den: 1001 }, "23.976"),
    (FrameRate { num: 24, den: 1 }, "24"),
    (FrameRate { num: 25, den: 1 }, "25"),
    (FrameRate { num: 30_000, den: 1001 }, "29.97"),
    (FrameRate { num: 30, den: 1 }, "30"),
    (FrameRate { num: 50, den: 1 }, "50"),
    (FrameRate { num: 60_000, den: 1001 }, "59.94"),
    (FrameRate { num: 60, den: 1 }, "60"),
];
/// How far a measured rate may be from a standard one, as a share. 24 and 23.976 are 0.1 % apart.
const TOLERANCE: f64 = 0.0003;
/// The highest rate; faster videos are counted as this.
const FASTEST: f64 = 1000.0;

impl FrameRate {
    /// The standard rates, ascending.
    pub fn standard() -> impl Iterator<Item = FrameRate> {
        STANDARD.iter().map(|(rate, _)| *rate)
    }

    /// The standard rate of this name, such as `29.97`.
    pub fn named(name: &str) -> Option<FrameRate> {
        STANDARD.iter().find(|(_, known)| *known == name).map(|(rate, _)| *rate)
    }

    /// The rate of a video whose frames were counted: a standard one if it is that near, else one in thousandths.
    pub fn measured(per_second: f64) -> FrameRate {
        let near = |rate: &FrameRate| (per_second / rate.per_second() - 1.0).abs() < TOLERANCE;
        if let Some(rate) = FrameRate::standard().find(near) {
            return rate;
        }
        let bounded = if per_second.is_finite() { per_second.clamp(0.001, FASTEST) } else { 25.0 };
        let (num, den) = ((bounded * 1000.0).round() as u32, 1000);
        let common = greatest_divisor(num, den);
        FrameRate { num: num / common, den: den / common }
    }

    /// The standard rate in which a video can be edited: its own, or the next higher one, at most 60.
    pub fn for_editing(self) -> FrameRate {
        let enough = |rate: &FrameRate| rate.per_second() >= self.per_second() * (1.0 - TOLERANCE);
        FrameRate::standard().find(enough).unwrap_or(FrameRate { num: 60, den: 1 })
    }

    /// Frames per second.
    pub fn per_second(self) -> f64 {
        f64::from(self.num) / f64::from(self.den)
    }

    /// Numerator of the ratio, such as 30000.
    pub fn num(self) -> u32 {
        self.num
    }

    /// Denominator of the ratio, such as 1001.
    pub fn den(self) -> u32 {
        self.den
    }

    /// The whole number of frames that timecode counts in a second: 30 for 29.97.
    pub fn nominal(self) -> i64 {
        (i64::from(self.num) + i64::from(self.den) - 1) / i64::from(self.den)
    }

    /// Whether timecode of this rate may drop numbers to follow the clock: 29.97 and 59.94.
    pub fn may_drop(self) -> bool {
        self.den == 1001 && (self.num == 30_000 || self.num == 60_000)
    }

    /// The first frame that begins at `ms` or later. Frame 0 begins at 0.
    pub fn frame_from(self, ms: i64) -> i64 {
        let (num, unit) = (i128::from(self.num), 1000 * i128::from(self.den));
        let frame = -(-i128::from(ms) * num).div_euclid(unit);
        frame.clamp(i128::from(i64::MIN), i128::from(i64::MAX)) as i64
    }

    /// The frame that is shown at `ms`.
    pub fn frame_at(self, ms: i64) -> i64 {
        self.frame_from(ms.saturating_add(1)) - 1
    }

    /// The frames that begin in `[start, end)` milliseconds. Where none begins, the frame that is shown at the start.
    pub fn frames_of(self, span: &Range<i64>) -> Range<i64> {
        let (first, end) = (self.frame_from(span.start), self.frame_from(span.end));
        if first < end {
            return first..end;
        }
        let shown = self.frame_at(span.start);
        shown..shown + 1
    }

    /// The time at which a frame begins, in milliseconds, rounded down.
    pub fn ms(self, frame: i64) -> i64 {
        let ms = (i128::from(frame) * 1000 * i128::from(self.den)).div_euclid(i128::from(self.num));
        ms.clamp(i128::from(i64::MIN), i128::from(i64::MAX)) as i64
    }
}

/// The name of a standard rate, else frames per second with up to three decimals.
impl fmt::Display for FrameRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match STANDARD.iter().find(|(rate, _)| rate == self) {
            Some((_, name)) => f.write_str(name),
            None => write!(f, "{}", (self.per_second() * 1000.0).round() / 1000.0),
        }
    }
}

fn greatest_divisor(a: u32, b: u32) -> u32 {
    if b == 0 { a.max(1) } else { greatest_divisor(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[track_caller]
    fn check(per_second: f64, expected: (&str, &str)) {
        let rate = FrameRate::measured(per_second);
        let edited = rate.for_editing();
        assert_eq!((rate.to_string().as_str(), edited.to_string().as_str()), expected, "{per_second}");
    }

    #[test]
    fn measured_rates_are_named_and_fit_into_an_editor() {
        check(23.976, ("23.976", "23.976"));
        check(24.0, ("24", "24"));
        check(29.97, ("29.97", "29.97"));
        check(30_000.0 / 1001.0, ("29.97", "29.97"));
        check(59.94, ("59.94", "59.94"));
        check(12.5, ("12.5", "23.976"));
        check(15.0, ("15", "23.976"));
        check(26.3, ("26.3", "29.97"));
        check(120.0, ("120", "60"));
        check(f64::NAN, ("25", "25"));
        check(0.0, ("0.001", "23.976"));
    }

    #[test]
    fn timecode_counts_whole_frames_and_follows_the_clock_at_two_rates() {
        for (name, nominal, may_drop) in [
            ("23.976", 24, false),
            ("25", 25, false),
            ("29.97", 30, true),
            ("30", 30, false),
            ("59.94", 60, true),
            ("60", 60, false),
        ] {
            let rate = FrameRate::named(name).unwrap();
            assert_eq!((rate.nominal(), rate.may_drop()), (nominal, may_drop), "{name}");
        }
        assert_eq!(FrameRate::named("59"), None);
        let rate = FrameRate::measured(12.5);
        assert_eq!((rate.num(), rate.den(), rate.nominal()), (25, 2, 13));
    }

    #[test]
    fn a_span_without_a_beginning_frame_shows_the_one_before() {
        let rate = FrameRate::measured(25.0);
        assert_eq!(rate.frames_of(&(0..2000)), 0..50);
        assert_eq!(rate.frames_of(&(41..80)), 1..2);
        assert_eq!(rate.frames_of(&(41..79)), 1..2);
        assert_eq!(rate.frames_of(&(1..40)), 0..1);
    }

    fn standard() -> impl Strategy<Value = FrameRate> {
        (0..STANDARD.len()).prop_map(|place| STANDARD[place].0)
    }

    proptest! {
        #[test]
        fn a_frames_time_leads_back_to_it(rate in standard(), frame in 0_i64..100_000_000) {
            prop_assert_eq!(rate.frame_from(rate.ms(frame)), frame);
            prop_assert_eq!(rate.frame_at(rate.ms(frame) + 1), frame);
        }

        #[test]
        fn frames_are_right_within_one(rate in standard(), start in 0_i64..90_000_000, length in 1_i64..9_000_000) {
            let frames = rate.frames_of(&(start..start + length));
            let frame_ms = 1000.0 / rate.per_second();
            let off = |frame: i64, ms: i64| (frame as f64 * frame_ms - ms as f64).abs();
            prop_assert!(off(frames.start, start) <= frame_ms);
            prop_assert!(off(frames.end, start + length) <= frame_ms);
        }

        #[test]
        fn any_rate_counts(per_second in 0.0_f64..1e6, ms in 0_i64..100_000_000) {
            let rate = FrameRate::measured(per_second);
            prop_assert!(rate.frame_at(ms) >= 0 && rate.nominal() >= 1);
            prop_assert!(rate.ms(rate.frame_at(ms)) <= ms);
        }
    }
}
