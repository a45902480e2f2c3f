//! Pictures for people that a decode pass makes on its way: sprite sheets and thumbnails.

use reprise_encoders::Frame;
use reprise_encoders::video::segment::ClipRange;
use reprise_encoders::video::sprites::SpriteCollector;
use reprise_encoders::video::thumbnails::{ThumbnailCollector, Thumbnails};
use reprise_encoders::video::{Output, Probe, VideoError};

use crate::sprites;

/// Which pictures a pass makes.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Wanted {
    /// Sprite sheets, of the frames in which the cuts are found.
    pub(super) sprites: bool,
    /// Thumbnails of the video and of the clips that are found.
    pub(super) thumbnails: bool,
}

/// The pictures that a pass made. A video is searchable without them, and each can be made later.
#[derive(Debug, Clone, Default)]
pub(super) struct Pictures {
    /// The file of the sprite sheets.
    pub(super) sprites: Option<Vec<u8>>,
    /// Thumbnails, as many as could be made.
    pub(super) thumbnails: Thumbnails,
}

/// Makes pictures while a video is decoded.
pub(super) struct PictureMaker {
    tiles: Option<SpriteCollector>,
    thumbnails: Option<ThumbnailCollector>,
}

impl PictureMaker {
    pub(super) fn new(wanted: Wanted, probe: &Probe) -> PictureMaker {
        PictureMaker {
            tiles: wanted.sprites.then(|| SpriteCollector::new(probe)),
            thumbnails: wanted.thumbnails.then(|| ThumbnailCollector::new(probe)),
        }
    }

    /// The output of the decode that [`PictureMaker::sampled`] takes, if it needs one.
    pub(super) fn output(&self) -> Option<Output> {
        self.thumbnails.as_ref().and_then(ThumbnailCollector::output)
    }

    /// Takes a frame of the shot detector.
    pub(super) fn detect(&mut self, frame: &Frame) {
        self.tiles.iter_mut().for_each(|tiles| tiles.push(frame));
        if let Some(thumbnails) = self.thumbnails.as_mut().filter(|it| it.output().is_none()) {
            thumbnails.push(frame.clone());
        }
    }

    /// Takes a frame of [`PictureMaker::output`].
    pub(super) fn sampled(&mut self, frame: Frame) {
        if let Some(thumbnails) = &mut self.thumbnails {
            thumbnails.push(frame);
        }
    }

    /// Takes clips with final bounds, and makes their thumbnails.
    pub(super) fn clips(&mut self, clips: &[ClipRange]) {
        let Some(collector) = &mut self.thumbnails else { return };
        if let Err(error) = collector.clips(clips) {
            tracing::warn!(%error, "the thumbnails of a video could not be made");
            self.thumbnails = None;
        }
    }

    /// Makes what is missing.
    pub(super) fn finish(self, duration_ms: i64) -> Pictures {
        let thumbnails = self.thumbnails.map(ThumbnailCollector::finish).transpose();
        let thumbnails = thumbnails.unwrap_or_else(|error| {
            tracing::warn!(%error, "the thumbnails of a video could not be made");
            None
        });
        let sprites = self.tiles.map(|tiles| sheets(tiles, duration_ms)).transpose();
        let sprites = sprites.unwrap_or_else(|error| {
            tracing::warn!(%error, "the sprite sheets of a video could not be made");
            None
        });
        Pictures { sprites: sprites.flatten(), thumbnails: thumbnails.unwrap_or_default() }
    }
}

/// The file of the sprite sheets.
fn sheets(tiles: SpriteCollector, duration_ms: i64) -> Result<Option<Vec<u8>>, VideoError> {
    let sprites = tiles.finish(duration_ms)?;
    Ok(sprites.and_then(|sprites| sprites::to_file(&sprites).ok()))
}
