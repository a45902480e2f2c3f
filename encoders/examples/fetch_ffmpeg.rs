//! Downloads ffmpeg and ffprobe into a folder, where no package manager serves. `cargo run -p reprise-encoders
//! --features download-ffmpeg --example fetch_ffmpeg FOLDER`

use std::error::Error;
use std::io::{self, Write};
use std::path::PathBuf;

use ffmpeg_sidecar::download::{download_ffmpeg_package, ffmpeg_download_url, unpack_ffmpeg};

fn main() -> Result<(), Box<dyn Error>> {
    let folder = PathBuf::from(std::env::args_os().nth(1).ok_or("name the folder that ffmpeg shall go to")?);
    std::fs::create_dir_all(&folder)?;
    let archive = download_ffmpeg_package(ffmpeg_download_url()?, &folder)?;
    unpack_ffmpeg(&archive, &folder)?;
    writeln!(io::stdout(), "ffmpeg and ffprobe are now in {}", folder.display())?;
    Ok(())
}
