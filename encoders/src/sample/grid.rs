//! Sampling at a rate: which frame represents each interval of 1 / rate seconds.
//!
//! One rule wherever frames are sampled by rate. For each interval middle (i + 0.5) / rate, it takes the frame on
//! screen: the last frame whose time lies before the middle. A frame that stays on screen over several middles (slides,
//! still scenes) is taken once. The last frame's duration is the shorter of the two spacings before it. A video that
//! ends before its first middle gives its last frame.
//!
//! Why not the nearest frame: with uneven spacing, it may belong to the next shot. And the last picture before a long
//! pause, the finished slide, would be skipped.

use std::collections::VecDeque;

/// Frames per second, as a fraction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Rate {
    pub(crate) num: i64,
    pub(crate) den: i64,
}

impl Rate {
    /// The fraction nearest to `rate` with a denominator of at most 1000. Rates are clamped to 0.01 ..= 240; NaN
    /// becomes 1.
    pub(crate) fn new(rate: f64) -> Rate {
        let rate = if rate.is_nan() { 1.0 } else { rate.clamp(0.01, 240.0) };
        let error = |den: &i64| ((rate * *den as f64).round() / *den as f64 - rate).abs();
        let den = (1..=1000).min_by(|a, b| error(a).total_cmp(&error(b))).unwrap_or(1);
        Rate { num: ((rate * den as f64).round() as i64).max(1), den }
    }

    /// The interval with the first middle after `ms`.
    fn interval(self, ms: i64) -> i64 {
        let (num, den) = (i128::from(self.num), i128::from(self.den));
        ((2 * i128::from(ms) * num + 1000 * den).div_euclid(2000 * den)) as i64
    }

    /// The middle of `interval` in milliseconds, rounded down.
    pub(crate) fn middle_ms(self, interval: i64) -> i64 {
        let middle = (2 * i128::from(interval) + 1) * 1000 * i128::from(self.den);
        middle.div_euclid(2 * i128::from(self.num)) as i64
    }

    /// Whether the middle of `interval` is at most `ms`.
    fn middle_is_within(self, interval: i64, ms: i64) -> bool {
        (2 * i128::from(interval) + 1) * 1000 * i128::from(self.den)
            <= 2 * i128::from(self.num) * i128::from(ms)
    }
}

/// A taken frame and the intervals that it represents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Taken {
    /// The frame's index.
    pub(crate) index: usize,
    /// Its time.
    pub(crate) time_ms: i64,
    /// The first interval.
    pub(crate) first: i64,
    /// The end of the intervals (exclusive).
    pub(crate) end: i64,
}

/// Selects the frames of a video to sample, one frame at a time.
#[derive(Debug)]
pub(crate) struct Grid {
    rate: Rate,
    next: i64,
    frames: usize,
    current: Option<i64>,
    /// Milliseconds between the last three frames, the latest interval first.
    spacings: [i64; 2],
    any: bool,
}

impl Grid {
    pub(crate) fn new(rate: Rate) -> Grid {
        Grid { rate, next: 0, frames: 0, current: None, spacings: [0, i64::MAX], any: false }
    }

    /// Adds the next frame; returns the one before it, if that is taken.
    pub(crate) fn push(&mut self, time_ms: i64) -> Option<Taken> {
        let interval = self.rate.interval(time_ms);
        let before = self.current.replace(time_ms);
        self.frames += 1;
        let Some(before) = before else {
            self.next = self.next.max(interval);
            return None;
        };
        let earlier = if self.frames > 2 { self.spacings[0] } else { i64::MAX };
        self.spacings = [time_ms - before, earlier];
        (interval > self.next).then(|| {
            let taken = Taken { index: self.frames - 2, time_ms: before, first: self.next, end: interval };
            self.next = interval;
            self.any = true;
            taken
        })
    }

    /// Ends the video; returns the last frame, if it is taken.
    pub(crate) fn end(&self) -> Option<Taken> {
        let time_ms = self.current?;
        let length = self.spacings[0].min(self.spacings[1]).max(0);
        (self.rate.middle_is_within(self.next, time_ms + length) || !self.any).then_some(Taken {
            index: self.frames - 1,
            time_ms,
            first: self.next,
            end: i64::MAX,
        })
    }
}

/// A picture, for [`Matcher`].
pub(crate) trait Pixels {
    /// Whether both pictures show the same.
    fn shows_as(&self, other: &Self) -> bool;
    /// The memory of one picture, in bytes.
    fn bytes(&self) -> usize;
}

/// A picture that the `fps` filter repeated for each interval of a run.
#[derive(Debug)]
struct Run<T> {
    first: i64,
    last: i64,
    picture: T,
}

/// Matches the pictures of ffmpeg's `fps` filter, one per interval, with the frames that they show.
///
/// Pictures may come long before the frame that decides about them: through a gap between two frames the filter repeats
/// one picture. Repeated pictures are kept once.
#[derive(Debug)]
pub(crate) struct Matcher<T> {
    grid: Grid,
    taken: VecDeque<Taken>,
    waiting: VecDeque<Run<T>>,
    waiting_bytes: usize,
    last_interval: i64,
}

impl<T: Pixels + Clone> Matcher<T> {
    pub(crate) fn new(rate: Rate) -> Matcher<T> {
        Matcher {
            grid: Grid::new(rate),
            taken: VecDeque::new(),
            waiting: VecDeque::new(),
            waiting_bytes: 0,
            last_interval: -1,
        }
    }

    /// Adds the next frame's time.
    pub(crate) fn frame(&mut self, time_ms: i64) {
        self.taken.extend(self.grid.push(time_ms));
    }

    /// Adds the picture of an interval; intervals ascend.
    pub(crate) fn picture(&mut self, interval: i64, picture: T) {
        match self.waiting.back_mut() {
            Some(run) if run.picture.shows_as(&picture) => run.last = interval,
            _ => {
                self.waiting_bytes += picture.bytes();
                self.waiting.push_back(Run { first: interval, last: interval, picture });
            }
        }
    }

    /// The memory of the pictures that wait for their frames, in bytes.
    pub(crate) fn waiting_bytes(&self) -> usize {
        self.waiting_bytes
    }

    /// Ends frames and pictures.
    pub(crate) fn end(&mut self) {
        self.taken.extend(self.grid.end());
    }

    /// After the end: the time of a last taken frame without a picture. ffmpeg leaves it out if the file states an
    /// earlier end.
    pub(crate) fn unmet(&self) -> Option<i64> {
        self.taken.back().map(|taken| taken.time_ms)
    }

    /// The next taken frame whose picture has arrived, with its time.
    pub(crate) fn next(&mut self) -> Option<(i64, T)> {
        loop {
            let (taken, run) = (*self.taken.front()?, self.waiting.front()?);
            if run.first >= taken.end {
                // ffmpeg returned no picture of this frame.
                self.taken.pop_front();
            } else if run.last < taken.first || run.last <= self.last_interval {
                self.waiting_bytes -= run.picture.bytes();
                self.waiting.pop_front();
            } else {
                self.last_interval = run.first.max(taken.first);
                self.taken.pop_front();
                return Some((taken.time_ms, run.picture.clone()));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(rate: f64, times: &[i64], expected: &[i64]) {
        let mut grid = Grid::new(Rate::new(rate));
        let mut taken: Vec<i64> = times.iter().filter_map(|&t| grid.push(t)).map(|t| t.time_ms).collect();
        taken.extend(grid.end().map(|t| t.time_ms));
        assert_eq!(taken, expected);
    }

    #[test]
    fn the_frame_on_the_screen_at_each_middle_is_taken() {
        check(2.0, &[0, 100, 200, 300, 400, 500, 600, 700, 800, 900], &[200, 700]);
        check(1.0, &[0, 40, 80], &[80]);
        check(1.0, &[0], &[0]);
        check(1.0, &[], &[]);
    }

    #[test]
    fn a_frame_that_stays_is_taken_once_and_the_last_before_a_pause_is_not_lost() {
        check(2.0, &[0, 10_000, 20_000], &[0, 10_000, 20_000]);
        check(2.0, &[0, 40, 80, 9_000, 9_040], &[80]);
        check(2.0, &[0, 40, 80, 9_000, 9_300], &[80, 9_000]);
    }

    #[test]
    fn rates_become_fractions() {
        for (rate, num, den) in
            [(8.0, 8, 1), (0.5, 1, 2), (30_000.0 / 1001.0, 29_970, 1000), (f64::NAN, 1, 1), (-3.0, 1, 100)]
        {
            let found = Rate::new(rate);
            assert!(
                (found.num as f64 / found.den as f64 - num as f64 / den as f64).abs() < 1e-3,
                "{rate}: {found:?}"
            );
        }
    }

    impl Pixels for char {
        fn shows_as(&self, other: &char) -> bool {
            self == other
        }

        fn bytes(&self) -> usize {
            1
        }
    }

    #[test]
    fn a_picture_that_is_repeated_through_a_gap_is_kept_once() {
        let mut matcher = Matcher::new(Rate::new(2.0));
        matcher.frame(0);
        (0..1_000_000).for_each(|interval| matcher.picture(interval, 'a'));
        assert_eq!(matcher.waiting_bytes(), 1);
        matcher.frame(500_000_000);
        matcher.picture(1_000_000, 'b');
        matcher.end();
        assert_eq!(matcher.next(), Some((0, 'a')));
        assert_eq!(matcher.next(), Some((500_000_000, 'b')));
        assert_eq!((matcher.next(), matcher.unmet()), (None, None));
    }

    #[test]
    fn equal_pictures_of_two_frames_meet_both() {
        let mut matcher = Matcher::new(Rate::new(1.0));
        (0..4).for_each(|interval| matcher.picture(interval, 'a'));
        [0, 1400, 2600, 3800].into_iter().for_each(|time_ms| matcher.frame(time_ms));
        matcher.end();
        let met: Vec<_> = std::iter::from_fn(|| matcher.next()).collect();
        assert_eq!(met, [(0, 'a'), (1400, 'a'), (2600, 'a')]);
    }

    #[test]
    fn pictures_meet_their_frames_in_any_order_of_arrival() {
        let mut matcher = Matcher::new(Rate::new(2.0));
        matcher.picture(0, 'a');
        assert_eq!(matcher.next(), None);
        for time in [0, 100, 200, 300] {
            matcher.frame(time);
        }
        assert_eq!(matcher.next(), Some((200, 'a')));
        matcher.frame(2000);
        matcher.picture(1, 'b');
        matcher.picture(2, 'b');
        matcher.picture(3, 'b');
        assert_eq!(matcher.next(), Some((300, 'b')));
        assert_eq!(matcher.next(), None);
        matcher.frame(3700);
        matcher.picture(4, 'c');
        matcher.picture(5, 'c');
        assert_eq!(matcher.next(), Some((2000, 'c')));
        assert_eq!(matcher.next(), None);
        matcher.end();
        assert_eq!(matcher.unmet(), Some(3700));
        matcher.picture(7, 'd');
        assert_eq!(matcher.next(), Some((3700, 'd')));
        assert_eq!((matcher.next(), matcher.unmet()), (None, None));
    }
}
