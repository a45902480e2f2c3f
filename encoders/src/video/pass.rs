//! One run of ffmpeg over a video: a filter graph with one decoder and several branches. Their pictures come through
//! one pipe with exact times.

use std::io::BufReader;
use std::path::Path;
use std::sync::Arc;

use super::clock::Clock;
use super::colour::{Chroma, Matrix, ToRgb};
use super::ffmpeg;
use super::nut::Demuxer;
use super::probe::Probe;
use super::run::Run;
use super::running::{Finished, Output, Running};
use super::threads::Decoding;
use super::{Limits, VideoError};
use crate::preprocess::Resampling;
use crate::sample::grid::{Pixels, Rate};

/// Seconds added to all times, so that none is negative in the pipe: the first frame may lie before the one that the
/// probe found.
const BIAS_SECONDS: i64 = 100;

/// How a branch scales its pictures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scale {
    /// Crops to two by two pixels: only the times matter.
    Nothing,
    /// Unchanged: for the shot detector, for small videos. With a matrix, luma and chroma come through the pipe.
    Whole(Option<Matrix>),
    /// At most this wide, in the video's aspect ratio, fast: for the shot detector. With a matrix, luma and chroma come
    /// through the pipe.
    Detect(u32, Option<Matrix>),
    /// Exactly this size, fast, with the detector's scaling.
    Rough(u32, u32),
    /// Exactly this size, with swscale's best quality: for encoders.
    Fine(u32, u32, Resampling),
    /// Exactly this size, luma alone: for readers of text.
    Luma(u32, u32),
}

/// Selection of the frames that a branch passes on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Which {
    /// Every frame.
    Every,
    /// Every frame from this millisecond on.
    From(i64),
    /// The frames with these timestamps on the stream's own clock.
    These(Vec<i64>),
    /// The picture on screen at the middle of each interval. A picture may repeat.
    Grid(Rate),
}

/// One output stream of the pass.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Branch {
    pub(super) which: Which,
    pub(super) scale: Scale,
}

/// The parameters of a pass.
#[derive(Debug, Clone)]
pub(super) struct Plan<'a> {
    pub(super) path: &'a Path,
    /// The facts of the file: the pass reads its video stream, and times are on that stream's clock.
    pub(super) probe: &'a Probe,
    /// Seeks to the key frame before this time.
    pub(super) seek_ms: Option<i64>,
    /// Stops before this time.
    pub(super) until_ms: Option<i64>,
    pub(super) branches: &'a [Branch],
}

/// A picture of one branch.
#[derive(Debug, Clone)]
pub(super) struct Picture {
    /// Index of its branch.
    pub(super) branch: usize,
    /// For [`Which::Grid`] the interval, otherwise the timestamp on the stream's own clock.
    pub(super) at: i64,
    pub(super) width: u32,
    pub(super) height: u32,
    /// Of a branch with [`Scale::Luma`]: one byte a pixel.
    pub(super) rgb: Arc<[u8]>,
}

impl Pixels for Picture {
    fn shows_as(&self, other: &Picture) -> bool {
        (self.width, self.height) == (other.width, other.height) && self.rgb == other.rgb
    }

    fn bytes(&self) -> usize {
        self.rgb.len()
    }
}

/// A running pass.
pub(super) struct Pass {
    running: Running,
    demuxer: Option<Demuxer<BufReader<Output>>>,
    /// For each branch, the offset to add to a timestamp, and the time base.
    units: Vec<(i64, (i64, i64))>,
    /// For each branch, the conversion of its pictures to RGB, if they need one.
    colours: Vec<Option<ToRgb>>,
    /// For each branch, the bytes of a pixel.
    bytes_per_pixel: Vec<u64>,
    /// Held until ffmpeg ends: it counts as running.
    _decoding: Decoding<'static>,
}

impl Plan<'_> {
    pub(super) fn start(&self, limits: &Limits) -> Result<Pass, VideoError> {
        let decoding = Decoding::begin(self.probe.pixels());
        let mut running = Running::start(self.run(&decoding, limits), limits)?;
        let stdout = running.take_stdout().ok_or_else(|| VideoError::Ffmpeg("its output is gone".into()))?;
        let most = limits.max_pixels.saturating_mul(3);
        let demuxer = Demuxer::open(BufReader::with_capacity(1 << 16, stdout), most).unwrap_or(None);
        let units = self.branches.iter().map(|b| (self.shift(b), self.time_base(b))).collect();
        let colours = self.branches.iter().map(|b| b.scale.to_rgb()).collect();
        let bytes_per_pixel = self.branches.iter().map(|b| b.scale.bytes_per_pixel()).collect();
        Ok(Pass { running, demuxer, units, colours, bytes_per_pixel, _decoding: decoding })
    }

    fn run(&self, decoding: &Decoding<'_>, limits: &Limits) -> Run {
        let mut run = Run::ffmpeg();
        // The scalers' pictures are too small to gain from threads.
        run.args(["-filter_complex_threads", "1", "-copyts", "-an", "-sn", "-dn"]);
        run.option("-threads", decoding.threads().to_string());
        if let Some(ms) = self.seek_ms {
            run.args(["-seek_timestamp", "1", "-noaccurate_seek"]);
            run.option("-ss", format!("{:.6}", self.probe.clock.container_seconds(ms)));
        }
        run.input(self.path, limits);
        run.option("-filter_complex", self.graph());
        for index in 0..self.branches.len() {
            run.option("-map", format!("[out{index}]"));
        }
        run.option(ffmpeg::frame_rate_mode(), "passthrough");
        for (index, branch) in self.branches.iter().enumerate() {
            let (num, den) = self.time_base(branch);
            run.option(format!("-enc_time_base:v:{index}"), format!("{num}:{den}"));
            run.option(format!("-pix_fmt:v:{index}"), branch.scale.pixel_format());
        }
        // By default threads copy the raw pictures, and each copy waits for them.
        run.args(["-c:v", "rawvideo", "-threads", "1", "-map_metadata", "-1", "-map_chapters", "-1"]);
        run.args(["-write_index", "0", "-f", "nut", "pipe:1"]);
        run
    }

    fn graph(&self) -> String {
        let until = self
            .until_ms
            .map(|ms| format!("trim=end_pts={},", self.probe.clock.pts_at(ms)))
            .unwrap_or_default();
        let inputs: String = (0..self.branches.len()).map(|i| format!("[in{i}]")).collect();
        let mut graph = format!("[0:{}]{until}split={}{inputs}", self.probe.stream, self.branches.len());
        for (index, branch) in self.branches.iter().enumerate() {
            graph += &format!(";[in{index}]{}{}[out{index}]", self.select(branch), branch.scale.filter());
        }
        graph
    }

    fn select(&self, branch: &Branch) -> String {
        let bias = -self.shift(branch);
        match &branch.which {
            Which::Every => format!("setpts=PTS+({bias}),"),
            Which::From(ms) => {
                format!("trim=start_pts={},setpts=PTS+({bias}),", self.probe.clock.pts_at(*ms))
            }
            Which::These(times) => format!("select='{}',setpts=PTS+({bias}),", any_of(times)),
            Which::Grid(rate) => self.grid(*rate),
        }
    }

    /// Floors times exactly to milliseconds since the first frame, so that the `fps` filter decides as
    /// [`crate::sample::grid`] does. The absolute clock is kept in whole periods. ffmpeg passes the end time through
    /// `setpts` unchanged, so on another clock `fps` would repeat the last picture up to that time.
    fn grid(&self, rate: Rate) -> String {
        let Clock { num, den, origin } = self.probe.clock;
        let fine = fine_ticks(den);
        let per_ms = fine / 1000;
        let (num, den, origin) = (i128::from(num), i128::from(den), i128::from(origin));
        let origin_fine = rounded(origin * num * i128::from(fine), den);
        let periods = self.base_periods(rate);
        let base = i128::from(periods * rate.den) * i128::from(fine);
        let bias = bias_intervals(rate) - periods * rate.num;
        format!(
            "settb=expr=1/{fine},setpts='floor((PTS-({origin_fine}))/{per_ms})*{per_ms}+{base}',\
             fps=fps={}/{}:round=near:eof_action=pass,setpts=PTS+({bias}),",
            rate.num, rate.den
        )
    }

    /// The number of whole multiples of `rate.den` seconds before the first frame.
    fn base_periods(&self, rate: Rate) -> i64 {
        let Clock { num, den, origin } = self.probe.clock;
        let seconds = (i128::from(origin) * i128::from(num)).div_euclid(i128::from(den));
        (seconds / i128::from(rate.den)).max(0) as i64
    }

    /// The offset from a timestamp in the pipe to [`Picture::at`].
    fn shift(&self, branch: &Branch) -> i64 {
        match &branch.which {
            Which::Grid(rate) => -bias_intervals(*rate),
            _ => self.probe.clock.origin.saturating_sub(self.probe.clock.ticks(BIAS_SECONDS)),
        }
    }

    fn time_base(&self, branch: &Branch) -> (i64, i64) {
        match &branch.which {
            Which::Grid(rate) => (rate.den, rate.num),
            _ => (self.probe.clock.num, self.probe.clock.den),
        }
    }
}

fn bias_intervals(rate: Rate) -> i64 {
    BIAS_SECONDS * rate.num / rate.den
}

/// A filter expression that is true for the frames with these timestamps.
fn any_of(times: &[i64]) -> String {
    let terms: Vec<String> = times.iter().map(|pts| format!("eq(pts,{pts})")).collect();
    if terms.is_empty() { "0".into() } else { terms.join("+") }
}

impl Scale {
    /// The conversion of a branch that passes luma and chroma; `None` for RGB.
    fn to_rgb(self) -> Option<ToRgb> {
        match self {
            Scale::Detect(_, Some(matrix)) => Some(ToRgb::new(matrix, Chroma::EveryRow)),
            Scale::Whole(Some(matrix)) => Some(ToRgb::new(matrix, Chroma::EverySecondRow)),
            _ => None,
        }
    }

    /// ffmpeg's name of the pixel format. Chroma of scaled pictures has all rows, as the scaler reads it for RGB.
    fn pixel_format(self) -> &'static str {
        match self {
            Scale::Luma(..) => "gray",
            Scale::Detect(_, Some(_)) => "yuv422p",
            Scale::Whole(Some(_)) => "yuv420p",
            _ => "rgb24",
        }
    }

    /// Bytes of a pixel of a [`Picture`].
    fn bytes_per_pixel(self) -> u64 {
        if matches!(self, Scale::Luma(..)) { 1 } else { 3 }
    }

    /// ffmpeg's filters for this scale.
    pub(super) fn filter(self) -> String {
        const EXACT: &str = "accurate_rnd+full_chroma_int";
        // Nearest neighbour: like OpenCV's resize, with which PySceneDetect's thresholds were tuned, it reads few
        // source pixels. Smoother scaling lowers the scores.
        const ROUGH: &str = "neighbor";
        let size = match self {
            Scale::Nothing => "crop=w=min(2\\,iw):h=min(2\\,ih):x=0:y=0".into(),
            Scale::Whole(_) => "scale=flags=bicubic".into(),
            Scale::Detect(width, _) => format!("scale=w=min({width}\\,iw):h=-2:flags={ROUGH}"),
            Scale::Rough(width, height) => format!("scale=w={width}:h={height}:flags={ROUGH}"),
            Scale::Fine(width, height, resampling) => {
                format!("scale=w={width}:h={height}:flags={}+{EXACT}", named(resampling))
            }
            Scale::Luma(width, height) => format!("scale=w={width}:h={height}:flags=area"),
        };
        format!("{size},format={}", self.pixel_format())
    }
}

/// swscale's equivalent filter. Both widen the filter when they shrink pictures.
fn named(resampling: Resampling) -> &'static str {
    match resampling {
        Resampling::Nearest => "neighbor",
        Resampling::Lanczos => "lanczos",
        Resampling::Bilinear | Resampling::Hamming => "bilinear",
        Resampling::Bicubic => "bicubic",
        Resampling::Box => "area",
    }
}

/// The filter that squashes pictures for encoders.
pub(super) fn fine(side: u32) -> String {
    Scale::Fine(side, side, Resampling::Bicubic).filter()
}

/// Ticks per second, a common multiple of milliseconds and the stream's own ticks. Nanoseconds if that is too fine for
/// ffmpeg's 32-bit fractions.
fn fine_ticks(den: i64) -> i64 {
    let common = i128::from(den) * 1000 / i128::from(greatest_divisor(den, 1000));
    if common < i128::from(i32::MAX) { common as i64 } else { 1_000_000_000 }
}

fn greatest_divisor(a: i64, b: i64) -> i64 {
    if b == 0 { a } else { greatest_divisor(b, a % b) }
}

/// `a / b` to the nearest integer, halves away from zero, as ffmpeg rescales.
fn rounded(a: i128, b: i128) -> i128 {
    let half = (2 * a.abs() + b) / (2 * b);
    if a < 0 { -half } else { half }
}

impl Pass {
    /// The next picture of any branch; `None` when ffmpeg's output ends.
    pub(super) fn next_picture(&mut self) -> Option<Picture> {
        let demuxer = self.demuxer.as_mut()?;
        // If the pipe breaks, ffmpeg's exit gives the reason.
        let packet = demuxer.next_packet().ok().flatten()?;
        let stream = demuxer.stream(packet.stream)?;
        let (shift, (num, den)) = *self.units.get(packet.stream)?;
        let (from, to) = (
            i128::from(packet.pts) * i128::from(stream.time_base.0) * i128::from(den),
            i128::from(stream.time_base.1),
        );
        let at = i64::try_from(rounded(from, to * i128::from(num))).ok()?.saturating_add(shift);
        let (width, height) = (stream.width, stream.height);
        let rgb = match self.colours.get_mut(packet.stream)? {
            Some(to_rgb) => to_rgb.picture(width, height, &packet.data)?,
            None => packet.data,
        };
        let bytes = self.bytes_per_pixel.get(packet.stream)? * u64::from(width) * u64::from(height);
        let complete = rgb.len() as u64 == bytes;
        complete.then_some(Picture { branch: packet.stream, at, width, height, rgb })
    }

    /// Waits for ffmpeg to end.
    pub(super) fn finish(self) -> Finished {
        drop(self.demuxer);
        self.running.finish()
    }
}
