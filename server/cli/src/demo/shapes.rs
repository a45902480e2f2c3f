//! A few small videos of shapes and patterns, drawn by ffmpeg, for models that know only colour and layout.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::{Context, bail};

use crate::step::Step;

/// Name of each video, and ffmpeg sources of its shots. Videos share some shots, so that searches find something.
const SCENES: [(&str, &[&str]); 4] = [
    (
        "red and blue shapes",
        &["color=c=firebrick:s=320x180:d=4", "color=c=royalblue:s=320x180:d=4", "testsrc2=s=320x180:d=4"],
    ),
    (
        "zooming fractal",
        &[
            "mandelbrot=s=320x180:start_scale=2:end_scale=0.4,trim=duration=5",
            "cellauto=s=320x180:rule=110,trim=duration=4",
        ],
    ),
    (
        "game of life",
        &[
            "life=s=320x180:mold=10:r=25:ratio=0.2:death_color=0x204080:life_color=0xf0f0a0,trim=duration=5",
            "color=c=royalblue:s=320x180:d=4",
        ],
    ),
    ("test patterns", &["smptebars=s=320x180:d=4", "testsrc2=s=320x180:d=4", "rgbtestsrc=s=320x180:d=4"]),
];

/// Renders the videos with ffmpeg, unless an earlier run did.
pub(crate) async fn render(data_dir: &Path) -> anyhow::Result<PathBuf> {
    let folder = data_dir.join("rendered");
    tokio::fs::create_dir_all(&folder).await?;
    let target = |name: &str| folder.join(format!("{name}.mp4"));
    if SCENES.iter().all(|(name, _)| target(name).exists()) {
        return Ok(folder);
    }
    let step = Step::begin("rendering", "videos")?;
    for (at, (name, shots)) in SCENES.iter().enumerate() {
        step.set(at as u64, SCENES.len() as u64);
        if !target(name).exists() {
            render_one(shots, &target(name)).await.with_context(|| format!("rendering {name}"))?;
        }
    }
    step.end(&format!("rendered {} videos", SCENES.len()))?;
    Ok(folder)
}

async fn render_one(shots: &[&str], target: &Path) -> anyhow::Result<()> {
    let unfinished = target.with_extension("part");
    let mut ffmpeg = std::process::Command::new(reprise_encoders::video::ffmpeg::ffmpeg_path());
    ffmpeg.args(["-v", "error", "-nostdin", "-y"]);
    for shot in shots {
        ffmpeg.args(["-f", "lavfi", "-i", shot]);
    }
    let inputs: String = (0..shots.len())
        .map(|index| format!("[{index}:v]fps=25,format=yuv420p,setsar=1[v{index}];"))
        .collect();
    let joined: String = (0..shots.len()).map(|index| format!("[v{index}]")).collect();
    let graph = format!("{inputs}{joined}concat=n={}:v=1[v]", shots.len());
    ffmpeg.args([
        "-filter_complex",
        &graph,
        "-map",
        "[v]",
        "-preset",
        "veryfast",
        "-movflags",
        "+faststart",
        "-f",
        "mp4",
    ]);
    ffmpeg.arg(&unfinished).stdin(Stdio::null());
    let status =
        tokio::task::spawn_blocking(move || ffmpeg.status()).await?.context("ffmpeg could not be run")?;
    if !status.success() {
        bail!("ffmpeg failed");
    }
    tokio::fs::rename(&unfinished, target).await?;
    Ok(())
}
