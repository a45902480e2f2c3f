//! The clock of one video: from a stream's integer timestamps to milliseconds since its first frame.

use serde::{Deserialize, Serialize};

/// A stream's time base and the timestamp of its first presented frame. All conversions are exact.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Clock {
    /// Numerator of the time base, in seconds per tick; positive.
    pub num: i64,
    /// Denominator of the time base; positive.
    pub den: i64,
    /// Timestamp of the first presented frame, in ticks.
    pub origin: i64,
}

impl Clock {
    /// Milliseconds since the first frame, rounded down.
    #[must_use]
    pub fn ms(&self, pts: i64) -> i64 {
        self.floor_ms(i128::from(pts) - i128::from(self.origin))
    }

    /// Milliseconds on the container's clock, rounded down.
    #[must_use]
    pub fn container_ms(&self, pts: i64) -> i64 {
        self.floor_ms(i128::from(pts))
    }

    /// The smallest timestamp whose [`Clock::ms`] is at least `ms`.
    #[must_use]
    pub fn pts_at(&self, ms: i64) -> i64 {
        let unit = 1000 * i128::from(self.num);
        let ticks = -(-(i128::from(ms) * i128::from(self.den))).div_euclid(unit);
        saturate(i128::from(self.origin) + ticks)
    }

    /// Ticks in `seconds`, rounded down, plus one.
    pub(super) fn ticks(&self, seconds: i64) -> i64 {
        saturate((i128::from(seconds) * i128::from(self.den)).div_euclid(i128::from(self.num)) + 1)
    }

    /// Time `ms` on the container's clock, in seconds, for ffmpeg's options.
    pub(super) fn container_seconds(&self, ms: i64) -> f64 {
        self.origin as f64 * self.num as f64 / self.den as f64 + ms as f64 / 1000.0
    }

    fn floor_ms(&self, ticks: i128) -> i64 {
        saturate((ticks * 1000 * i128::from(self.num)).div_euclid(i128::from(self.den)))
    }
}

fn saturate(value: i128) -> i64 {
    i64::try_from(value).unwrap_or(if value < 0 { i64::MIN } else { i64::MAX })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[track_caller]
    fn check(clock: (i64, i64, i64), pts: i64, expected_ms: i64) {
        let clock = Clock { num: clock.0, den: clock.1, origin: clock.2 };
        assert_eq!(clock.ms(pts), expected_ms);
    }

    #[test]
    fn times_are_rounded_down_from_the_first_frame() {
        check((1, 12_800, 13_760), 13_760, 0);
        check((1, 12_800, 13_760), 13_760 + 512, 40);
        check((1001, 30_000, 0), 1, 33);
        check((1001, 30_000, 0), 3, 100);
        check((1, 90_000, 324_126_000), 324_126_000 + 3003, 33);
        check((1, 1000, -80), -80, 0);
        check((1, 1000, 0), -1, -1);
    }

    #[test]
    fn times_are_told_on_the_containers_clock() {
        let (ticks, frames) =
            (Clock { num: 1, den: 1000, origin: 5000 }, Clock { num: 1001, den: 30_000, origin: 30_000 });
        assert_eq!((ticks.container_ms(40), frames.container_ms(3)), (40, 100));
        assert_eq!((ticks.container_seconds(250), frames.container_seconds(1000)), (5.25, 1002.0));
        assert_eq!((ticks.ticks(2), frames.ticks(2)), (2001, 60));
        let far = Clock { num: 1000, den: 1, origin: i64::MIN };
        assert_eq!((far.ms(i64::MAX), far.container_ms(i64::MIN)), (i64::MAX, i64::MIN));
    }

    proptest! {
        #[test]
        fn pts_at_is_the_first_tick_of_its_millisecond(
            num in 1_i64..2000, den in 1_i64..10_000_000, origin in -1_000_000_000_i64..1_000_000_000, ms in -10_000_i64..10_000_000,
        ) {
            let clock = Clock { num, den, origin };
            let pts = clock.pts_at(ms);
            prop_assert!(clock.ms(pts) >= ms);
            prop_assert!(clock.ms(pts - 1) < ms);
        }
    }
}
