//! ffprobe's answers about a file. Their reader is private: its source is compiled here once more.

use reprise_encoders::video::{Limits, VideoError, clock};

/// Stands for the table of colour matrices, which is private too.
mod colour {
    /// A matrix by ffprobe's name.
    pub(super) struct Matrix(String);

    impl Matrix {
        pub(super) fn named(name: &str) -> Matrix {
            Matrix(name.to_owned())
        }

        /// Length of the name.
        pub(super) fn length(&self) -> usize {
            self.0.len()
        }
    }
}

#[path = "../../encoders/src/video/answer.rs"]
#[allow(dead_code, unreachable_pub, reason = "a probe needs more of it than this target")]
mod answer;

use answer::{Answer, Stream};

/// Facts of an accepted stream are finite and within the limits.
pub(super) fn run(bytes: &[u8]) {
    let Ok(answer) = serde_json::from_slice::<Answer>(bytes) else { return };
    answer.subtitles();
    if let Ok(stream) = answer.default_video() {
        check(&answer, stream);
    }
}

fn check(answer: &Answer, stream: &Stream) {
    let limits = Limits::default();
    let (Ok(clock), Ok((width, height))) = (stream.clock(0), answer::shown_size(stream, &limits)) else {
        return;
    };
    assert!(width > 0 && height > 0);
    assert!(stream.matrix().is_none_or(|matrix| matrix.length() == stream.color_space.len()));
    let times = answer.times(stream.index);
    assert!(times.is_sorted() && times.len() <= answer.packets.len());
    let origin = answer.certain_start(stream.index, &times).or(stream.start_pts).unwrap_or(0);
    let clock = clock::Clock { origin, ..clock };
    let frame_rate = answer::frame_rate(stream, &times, &clock);
    assert!(frame_rate.is_finite() && frame_rate > 0.0, "{frame_rate}");
    answer::is_variable(&times, &clock);
    let duration_ms = answer::known_duration_ms(stream, &answer.format, &clock);
    assert!(duration_ms.is_none_or(|ms| ms > 0));
    if answer::check_times(&times, &clock, &limits).is_ok() {
        assert!(times.windows(2).all(|pair| clock.ms(pair[1]) - clock.ms(pair[0]) <= 3_600_000));
    }
}
