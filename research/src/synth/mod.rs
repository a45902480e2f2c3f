//! The benchmark generator: an articulated athlete doing dives and gymnastics elements, rendered with exact labels, to
//! train and evaluate composed retrieval on any machine.
//!
//! Constants: the label set ([`mod@classes`]), the held-out pairs ([`classes::pairs`]), the held-out words
//! ([`wording`]). The seed decides which clips and triplets are drawn and how they look. Features that must not reveal
//! the label (duration, trajectory, take-off, camera, colours) are drawn by code without access to it
//! ([`motion::Performance`], [`scene::Look`]). The plan consists of integer draws and is the same on every machine.
//! Pixels may differ in the last bit because of floating point.
//!
//! A folder holds `plan.json` (written last, as the mark of a complete folder), `labels.csv`, `truth.jsonl` (columns:
//! [`truth::COLUMNS`]), `triplets.csv` and `triplets.jsonl`, `descriptions.csv`, `broadcasts.jsonl`,
//! `contact_sheet.png`, `clips/` and `broadcasts/`. Times are seconds from the first frame.

pub mod board;
pub mod body;
pub mod broadcast;
pub mod canvas;
pub mod check;
pub mod classes;
mod command;
mod contact_sheet;
pub mod draw;
mod encode;
mod folder;
mod letters;
pub mod motion;
pub mod plan;
pub mod scene;
mod scenery;
pub mod shot;
pub mod truth;
pub mod wording;

use reprise_encoders::Cause;
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

pub use command::{SynthArgs, run};
pub use plan::{Plan, Settings, Split};

use broadcast::{Broadcast, broadcast};
use canvas::{BadSize, Canvas};
use classes::classes;
use encode::Film;
use folder::Folder;
use shot::Shot;

/// The generator's version. Changes when the same seed gives other labels, plans or pictures.
pub const GENERATOR: u32 = 3;

/// Why no benchmark was made.
#[derive(Debug, thiserror::Error)]
pub enum SynthError {
    /// The folder holds other files; the caller must name another one.
    #[error("{} holds files that were not rendered here; name an empty folder", .0.display())]
    NotOurs(PathBuf),
    /// A file cannot be read or written; the disk's fault.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// ffmpeg is missing, or can't encode H.264.
    #[error("ffmpeg could not write the video: {0}")]
    Ffmpeg(#[source] Cause),
    /// The size is not an even number from 32 to 2048; the caller's fault.
    #[error("pictures of {0} pixels can't be encoded; use an even number from 32 to 2048")]
    Size(u32),
    /// A picture of an impossible size.
    #[error(transparent)]
    Picture(#[from] BadSize),
    /// The PNG encoder failed; a fault of this program.
    #[error("the contact sheet could not be written: {0}")]
    Png(#[source] Cause),
}

/// Clips per run of ffmpeg.
const BATCH: usize = 32;
/// Rows of the contact sheet.
const SHEET_ROWS: usize = 21;

/// Renders a split into `root`; `progress` receives the number of finished frames and their total.
///
/// # Errors
/// See [`SynthError`]. Written files stay, without `plan.json`.
pub fn generate(
    root: &Path,
    settings: &Settings,
    progress: &(dyn Fn(u64, u64) + Sync),
) -> Result<(), SynthError> {
    check_size(settings.size)?;
    let folder = Folder::prepare(root, settings)?;
    let plan = Plan::new(settings);
    let broadcasts: Vec<Broadcast> = (0..settings.broadcasts).map(|at| broadcast(settings, at)).collect();
    let shot = |at: usize| clip_shot(settings, &plan, at);
    folder.write_tables(settings, &plan, &shot, &broadcasts)?;
    let sheet = folder.path("contact_sheet.png");
    std::fs::write(&sheet, contact_sheet::contact_sheet(&sheet_shots(settings, &plan))?)
        .map_err(|source| SynthError::Io { path: sheet, source })?;
    let works = works(&plan, &broadcasts);
    let scenes = Scenes { settings, shot: &shot, broadcasts: &broadcasts };
    render_all(&works, &folder, &scenes, progress)?;
    folder.finish(settings, &plan)
}

fn check_size(size: u32) -> Result<(), SynthError> {
    if (32..=2048).contains(&size) && size.is_multiple_of(2) { Ok(()) } else { Err(SynthError::Size(size)) }
}

/// Clip `at` of a plan.
pub fn clip_shot(settings: &Settings, plan: &Plan, at: usize) -> Shot {
    let class = &classes()[plan.clips[at]];
    let (element, look) = plan::clip(settings, at as u64, class);
    Shot::of_clip(element, look)
}

/// Clips, alternating between events.
fn sheet_shots(settings: &Settings, plan: &Plan) -> Vec<Shot> {
    let number = classes().len();
    let wanted = (0..SHEET_ROWS).map(|row| row * number / SHEET_ROWS + row % 5);
    let clips = wanted.filter_map(|class| plan.clips_of(class % number).first().copied());
    let mut shots: Vec<Shot> = clips.map(|at| clip_shot(settings, plan, at)).collect();
    if shots.is_empty() && !plan.clips.is_empty() {
        shots.push(clip_shot(settings, plan, 0));
    }
    shots
}

/// A thread's unit of work.
enum Work {
    Clips(std::ops::Range<usize>),
    Broadcast(usize),
}

fn works(plan: &Plan, broadcasts: &[Broadcast]) -> Vec<Work> {
    let clips = plan.clips.len();
    let batches = (0..clips.div_ceil(BATCH)).map(|at| Work::Clips(at * BATCH..((at + 1) * BATCH).min(clips)));
    // The longest first.
    (0..broadcasts.len()).map(Work::Broadcast).chain(batches).collect()
}

/// Everything that is rendered.
struct Scenes<'a> {
    settings: &'a Settings,
    shot: &'a (dyn Fn(usize) -> Shot + Sync),
    broadcasts: &'a [Broadcast],
}

fn render_all(
    works: &[Work],
    folder: &Folder,
    scenes: &Scenes<'_>,
    progress: &(dyn Fn(u64, u64) + Sync),
) -> Result<(), SynthError> {
    let Scenes { settings, shot, broadcasts } = *scenes;
    let (next, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let all = works.iter().map(|it| match it {
        Work::Clips(range) => range.clone().map(|at| shot(at).frames).sum::<usize>(),
        Work::Broadcast(at) => broadcasts[*at].shots.iter().map(|it| it.frames).sum(),
    });
    let all = all.sum::<usize>() as u64;
    let failed: Mutex<Option<SynthError>> = Mutex::new(None);
    let has_failed = || failed.lock().map_or(true, |it| it.is_some());
    let render = |work: &Work| -> Result<(), SynthError> {
        let (film, shots) = match work {
            Work::Clips(range) => {
                let shots: Vec<Shot> = range.clone().map(shot).collect();
                let frames: Vec<usize> = shots.iter().map(|it| it.frames).collect();
                (Film::many(&folder.clips(), range.start, &frames, settings.size)?, shots)
            }
            Work::Broadcast(at) => {
                let file = folder.path(&folder::broadcast_name(*at));
                (Film::one(&file, settings.size)?, broadcasts[*at].shots.clone())
            }
        };
        render_shots(film, &shots, settings.size, &|frames| {
            let done = done.fetch_add(frames, Ordering::Relaxed) + frames;
            progress(done as u64, all);
        })
    };
    let threads = thread::available_parallelism().map_or(1, NonZero::get);
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some(work) = works.get(next.fetch_add(1, Ordering::Relaxed)) {
                    if has_failed() {
                        return;
                    }
                    if let Err(error) = render(work) {
                        if let Ok(mut failed) = failed.lock() {
                            failed.get_or_insert(error);
                        }
                        return;
                    }
                }
            });
        }
    });
    match failed.into_inner() {
        Ok(None) => Ok(()),
        Ok(Some(error)) => Err(error),
        Err(_) => Err(SynthError::Ffmpeg("a rendering thread died".into())),
    }
}

fn render_shots(mut film: Film, shots: &[Shot], size: u32, done: &dyn Fn(usize)) -> Result<(), SynthError> {
    let mut picture = Canvas::new(size, size)?;
    for shot in shots {
        for frame in 0..shot.frames {
            shot.draw(&mut picture, frame);
            film.push(&picture)?;
        }
        done(shot.frames);
    }
    film.finish()
}
