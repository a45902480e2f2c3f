//! SMPTE timecode: frames counted as hours, minutes, seconds and frames.
//!
//! At 29.97 frames per second, 30 numbers a second run behind the clock. Drop-frame timecode skips the numbers 0 and 1
//! (0 to 3 at 59.94) of each minute that is not the tenth; it skips no picture.

use std::fmt;

use reprise_encoders::video::FrameRate;

/// How frames are numbered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Numbering {
    /// Frames counted in a second.
    nominal: i64,
    /// Numbers skipped in a minute; 0 without drop-frame.
    skipped: i64,
}

/// The number of a frame. After 24 hours it begins anew.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Timecode {
    hours: i64,
    minutes: i64,
    seconds: i64,
    frames: i64,
    is_drop: bool,
}

impl Numbering {
    /// The numbering of a rate. `drop` counts only where [`FrameRate::may_drop`].
    pub(super) fn new(rate: FrameRate, drop: bool) -> Numbering {
        let nominal = rate.nominal();
        let skipped = if drop && rate.may_drop() { nominal / 15 } else { 0 };
        Numbering { nominal, skipped }
    }

    /// Whether it skips numbers.
    pub(super) fn is_drop(self) -> bool {
        self.skipped > 0
    }

    /// Frames in 24 hours.
    pub(super) fn frames_a_day(self) -> i64 {
        self.in_ten_minutes() * 6 * 24
    }

    fn in_ten_minutes(self) -> i64 {
        600 * self.nominal - 9 * self.skipped
    }

    /// The number of a frame, counted from 0.
    pub(super) fn timecode(self, frame: i64) -> Timecode {
        let frame = frame.rem_euclid(self.frames_a_day());
        let (tens, rest) = (frame / self.in_ten_minutes(), frame % self.in_ten_minutes());
        let in_minute = 60 * self.nominal - self.skipped;
        // The first minute of ten is longer: it skips nothing.
        let minutes = (rest - self.skipped).max(0) / in_minute;
        let number = frame + self.skipped * (9 * tens + minutes);
        let (seconds, frames) = (number / self.nominal, number % self.nominal);
        Timecode {
            hours: seconds / 3600,
            minutes: seconds / 60 % 60,
            seconds: seconds % 60,
            frames,
            is_drop: self.is_drop(),
        }
    }
}

impl fmt::Display for Timecode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let separator = if self.is_drop { ';' } else { ':' };
        let Timecode { hours, minutes, seconds, frames, .. } = self;
        write!(f, "{hours:02}:{minutes:02}:{seconds:02}{separator}{frames:02}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[track_caller]
    fn check(rate: &str, frame: i64, expected: &str) {
        let rate = FrameRate::named(rate).unwrap();
        assert_eq!(Numbering::new(rate, true).timecode(frame).to_string(), expected, "{rate}: {frame}");
    }

    #[test]
    fn frames_have_their_numbers() {
        check("25", 0, "00:00:00:00");
        check("25", 25 * 3600 + 26, "01:00:01:01");
        check("23.976", 24 * 60, "00:01:00:00");
        check("50", 49, "00:00:00:49");
        check("60", 60 * 60, "00:01:00:00");
        check("25", 25 * 86_400, "00:00:00:00");
        check("25", -1, "23:59:59:24");
    }

    #[test]
    fn drop_frame_skips_numbers_but_for_each_tenth_minute() {
        check("29.97", 1799, "00:00:59;29");
        check("29.97", 1800, "00:01:00;02");
        check("29.97", 17_981, "00:09:59;29");
        check("29.97", 17_982, "00:10:00;00");
        check("29.97", 107_892, "01:00:00;00");
        check("29.97", 2_589_407, "23:59:59;29");
        check("59.94", 3599, "00:00:59;59");
        check("59.94", 3600, "00:01:00;04");
        check("59.94", 35_964, "00:10:00;00");
    }

    /// The frame of a number, by counting what is skipped before it.
    fn frame(numbering: Numbering, code: Timecode) -> i64 {
        let minutes = code.hours * 60 + code.minutes;
        let number = (minutes * 60 + code.seconds) * numbering.nominal + code.frames;
        number - numbering.skipped * (minutes - minutes / 10)
    }

    fn numbering() -> impl Strategy<Value = Numbering> {
        let rates: Vec<FrameRate> = FrameRate::standard().collect();
        (0..rates.len(), any::<bool>()).prop_map(move |(place, drop)| Numbering::new(rates[place], drop))
    }

    proptest! {
        #[test]
        fn a_number_leads_back_to_its_frame(numbering in numbering(), at in 0_i64..6_000_000) {
            let at = at % numbering.frames_a_day();
            let code = numbering.timecode(at);
            prop_assert_eq!(frame(numbering, code), at);
            prop_assert!(code.hours < 24 && code.minutes < 60 && code.seconds < 60 && code.frames < numbering.nominal);
            let skipped = code.seconds == 0 && code.minutes % 10 != 0 && code.frames < numbering.skipped;
            prop_assert!(!skipped, "{} is skipped", code);
        }

        #[test]
        fn drop_frame_follows_the_clock(at in 0_i64..2_589_407) {
            let rate = FrameRate::named("29.97").unwrap();
            let code = Numbering::new(rate, true).timecode(at);
            let shown_ms = (code.hours * 3600 + code.minutes * 60 + code.seconds) * 1000 + code.frames * 1000 / 30;
            // Two numbers until the next drop, and 86 ms in a day.
            prop_assert!((shown_ms - rate.ms(at)).abs() <= 200, "{} at {} ms", code, rate.ms(at));
        }
    }
}
