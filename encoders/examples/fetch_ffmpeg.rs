//! Downloads ffmpeg and ffprobe, where no package manager serves, beside the binaries of this build, which look
//! there before they look on the PATH. `cargo run -p reprise-encoders --features download-ffmpeg --example
//! fetch_ffmpeg [FOLDER]`

use std::error::Error;
use std::io::{self, Write};
use std::path::PathBuf;

use ffmpeg_sidecar::command::ffmpeg_is_installed;
use ffmpeg_sidecar::download::{auto_download, download_ffmpeg_package, ffmpeg_download_url, unpack_ffmpeg};
use ffmpeg_sidecar::ffprobe::ffprobe_is_installed;
use ffmpeg_sidecar::paths::sidecar_dir;

fn main() -> Result<(), Box<dyn Error>> {
    let mut out = io::stdout();
    if ffmpeg_is_installed() && ffprobe_is_installed() {
        writeln!(out, "ffmpeg and ffprobe are already there")?;
        return Ok(());
    }
    let own = sidecar_dir()?;
    let folder = std::env::args_os().nth(1).map(PathBuf::from);
    match folder.or_else(|| own.parent().map(PathBuf::from)) {
        // Examples lie one folder below the binaries that need it.
        Some(folder) => {
            let archive = download_ffmpeg_package(ffmpeg_download_url()?, &folder)?;
            unpack_ffmpeg(&archive, &folder)?;
            writeln!(out, "ffmpeg and ffprobe are now in {}", folder.display())?;
        }
        None => auto_download()?,
    }
    Ok(())
}
