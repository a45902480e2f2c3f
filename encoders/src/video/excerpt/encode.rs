//! Encodes frames of a video anew.

use std::ops::Range;
use std::path::Path;

use super::super::rendition::opened;
use super::super::{FrameRate, Probe, VideoError, VideoFile};
use super::{Watch, Written, run_to_file};

/// Samples of sound in a second.
const SAMPLE_RATE: i64 = 48_000;
/// Parameter sets of all parts must be equal to be joined, so each says the same about its colours.
const SAME_HEADERS: &str = "h264_metadata=sample_aspect_ratio=1/1:video_format=5:colour_primaries=1:\
transfer_characteristics=1:matrix_coefficients=1:video_full_range_flag=0:chroma_sample_loc_type=0";

/// What to encode.
#[derive(Debug, Clone)]
pub struct Encode<'a> {
    /// The video.
    pub file: VideoFile<'a>,
    /// The frames, counted at `rate` from the first frame of the video.
    pub frames: Range<i64>,
    /// Frames per second of the excerpt.
    pub rate: FrameRate,
    /// Size of its pictures.
    pub size: PictureSize,
    /// Its sound.
    pub sound: Sound,
    /// What it is for.
    pub form: Form,
}

/// Size of pictures in pixels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PictureSize {
    /// Width.
    pub width: u32,
    /// Height.
    pub height: u32,
}

/// The sound of an excerpt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sound {
    /// No stream of sound.
    None,
    /// That of the video.
    Own,
    /// Silence, to be joined with excerpts that have sound.
    Silence,
}

/// What an excerpt is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// To be joined: QuickTime with PCM, because each stream of AAC begins with silence of its own.
    Part,
    /// To be played: MP4 with AAC.
    Whole,
}

impl PictureSize {
    /// The size at which a video is shown, as 4:2:0 can hold it.
    pub fn of(probe: &Probe) -> PictureSize {
        PictureSize { width: even(probe.width), height: even(probe.height) }
    }

    /// The largest size of the same shape as `probe`'s that fits.
    fn fitted(self, probe: &Probe) -> PictureSize {
        let (width, height) = (f64::from(probe.width.max(1)), f64::from(probe.height.max(1)));
        let scale = (f64::from(self.width) / width).min(f64::from(self.height) / height);
        let scaled = |side: f64, most: u32| even((side * scale).round() as u32).min(most);
        PictureSize { width: scaled(width, self.width), height: scaled(height, self.height) }
    }
}

/// The nearest smaller even number, at least 2.
fn even(side: u32) -> u32 {
    (side & !1).max(2)
}

/// Writes the excerpt. Blocks. Returns its length, which is shorter if the video ends before; `None` if the watch has ended
/// it. Replaces `out`, and removes it on failure.
///
/// # Errors
/// [`VideoError::NotVideo`] if nothing can be decoded there.
pub fn encode(cut: &Encode<'_>, out: &Path, watch: Watch<'_>) -> Result<Option<Written>, VideoError> {
    let (probe, expected) = (cut.file.probe, cut.frames.end - cut.frames.start);
    let seek = probe.seek_for(cut.rate.ms(cut.frames.start)).filter(|_| !cut.file.in_order);
    let first = with_any_sound(cut, seek, out, watch);
    let is_short = match &first {
        Ok(Some(written)) => written.frames < expected,
        Ok(None) => false,
        Err(error) => matches!(error, VideoError::NotVideo(_)),
    };
    // The seek may have gone too far.
    if is_short && seek.is_some() { with_any_sound(cut, None, out, watch) } else { first }
}

/// Sound that can't be decoded becomes silence.
fn with_any_sound(
    cut: &Encode<'_>,
    seek: Option<i64>,
    out: &Path,
    watch: Watch<'_>,
) -> Result<Option<Written>, VideoError> {
    let written = write(cut, seek, out, watch);
    if cut.sound == Sound::Own && matches!(written, Err(VideoError::NotVideo(_))) {
        return write(&Encode { sound: Sound::Silence, ..cut.clone() }, seek, out, watch);
    }
    written
}

fn write(
    cut: &Encode<'_>,
    seek: Option<i64>,
    out: &Path,
    watch: Watch<'_>,
) -> Result<Option<Written>, VideoError> {
    let VideoFile { path, probe, limits, .. } = cut.file;
    let mut run = opened(path, probe, seek, limits);
    let sound = sound_graph(cut).map(|graph| format!(";{graph}")).unwrap_or_default();
    run.option("-filter_complex", format!("{}{sound}", picture_graph(cut)));
    run.args(["-map", "[picture]", "-c:v", "libx264", "-preset", "veryfast", "-crf", "20"]);
    run.option("-bsf:v", SAME_HEADERS);
    if cut.sound != Sound::None {
        run.args(["-map", "[sound]"]);
    }
    run.args(["-map_metadata", "-1", "-map_chapters", "-1"]);
    match cut.form {
        // Without reordered frames, parts of any length follow each other in decoding order.
        Form::Part => run.args(["-bf", "0", "-c:a", "pcm_s16le", "-f", "mov"]),
        Form::Whole => run.args(["-c:a", "aac", "-b:a", "160k", "-movflags", "+faststart", "-f", "mp4"]),
    }
    run_to_file(run, out, limits, watch)
}

/// `fps` comes first: it repeats a slide that began before the excerpt, and from then on times are numbers of frames.
fn picture_graph(cut: &Encode<'_>) -> String {
    let (probe, size) = (cut.file.probe, cut.size);
    let fitted = size.fitted(probe);
    format!(
        "[0:{stream}]setpts=PTS-({origin}),fps={num}/{den},trim=start_pts={first}:end_pts={end},\
         setpts=PTS-STARTPTS,scale=w={w}:h={h}:out_color_matrix=bt709:out_range=tv,setsar=1,format=yuv420p,\
         pad=w={width}:h={height}:x=(ow-iw)/2:y=(oh-ih)/2,\
         setparams=range=tv:color_primaries=bt709:color_trc=bt709:colorspace=bt709[picture]",
        stream = probe.stream,
        origin = probe.clock.origin,
        num = cut.rate.num(),
        den = cut.rate.den(),
        first = cut.frames.start,
        end = cut.frames.end,
        w = fitted.width,
        h = fitted.height,
        width = size.width,
        height = size.height,
    )
}

/// Sound of exactly the pictures' length, or `None`.
fn sound_graph(cut: &Encode<'_>) -> Option<String> {
    let (num, den) = (i64::from(cut.rate.num()), i64::from(cut.rate.den()));
    let frames = cut.frames.end - cut.frames.start;
    let samples = (frames * den * SAMPLE_RATE + num / 2) / num;
    let from = cut.file.probe.clock.container_seconds(0) + (cut.frames.start * den) as f64 / num as f64;
    match cut.sound {
        Sound::None => None,
        Sound::Own => Some(format!(
            "[0:a:0]asetpts=PTS-({from:.9})/TB,atrim=start=0,aresample={SAMPLE_RATE}:async=1000:first_pts=0,\
             aformat=channel_layouts=stereo,apad,atrim=end_sample={samples}[sound]"
        )),
        Sound::Silence => {
            Some(format!("anullsrc=r={SAMPLE_RATE}:cl=stereo,atrim=end_sample={samples}[sound]"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pictures_keep_their_shape() {
        let target = PictureSize { width: 1920, height: 1080 };
        for ((width, height), expected) in [
            ((1920, 1080), (1920, 1080)),
            ((640, 480), (1440, 1080)),
            ((1080, 1920), (608, 1080)),
            ((4096, 1716), (1920, 804)),
            ((1, 1000), (2, 1080)),
        ] {
            let probe = Probe { width, height, ..sample() };
            let fitted = target.fitted(&probe);
            assert_eq!((fitted.width, fitted.height), expected, "{width}x{height}");
        }
    }

    fn sample() -> Probe {
        serde_json::from_value(serde_json::json!({
            "duration_ms": 0, "frame_rate": 25.0, "width": 2, "height": 2, "codec": "", "pixel_format": "",
            "container": "", "variable_frame_rate": false, "media_offset_ms": 0, "has_audio": false,
            "plays_in_browsers": false, "stream": 0, "clock": {"num": 1, "den": 1, "origin": 0},
        }))
        .unwrap()
    }
}
