//! What the installed ffmpeg can do, for an operator who asks why videos are refused.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::ffmpeg::{ffmpeg_path, ffprobe_path};

/// An installed program of ffmpeg's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstalledProgram {
    /// Where it was found.
    pub path: PathBuf,
    /// Its version as it prints it, such as `7.1.1`.
    pub version: String,
}

/// A part of ffmpeg that the installed one lacks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LackingPart {
    /// The part, such as `encoder libx264`.
    pub name: String,
    /// What does not work without it.
    pub without: &'static str,
    /// Whether no video can be added without it.
    pub is_essential: bool,
}

struct Part {
    /// The option that lists parts of this kind, without its final `s`.
    kind: &'static str,
    name: &'static str,
    without: &'static str,
    is_essential: bool,
}

const fn essential(kind: &'static str, name: &'static str) -> Part {
    Part { kind, name, without: "no video can be added", is_essential: true }
}

const fn useful(kind: &'static str, name: &'static str, without: &'static str) -> Part {
    Part { kind, name, without, is_essential: false }
}

const PREVIEWS: &str = "no previews, and no playable copies of videos that browsers can't play";

const PARTS: [Part; 18] = [
    essential("encoder", "rawvideo"),
    essential("muxer", "nut"),
    essential("muxer", "rawvideo"),
    essential("filter", "scale"),
    essential("demuxer", "mov"),
    useful("demuxer", "matroska", "no Matroska or WebM"),
    useful("demuxer", "mpegts", "no transport streams"),
    useful("decoder", "h264", "no H.264"),
    useful("decoder", "hevc", "no H.265"),
    useful("decoder", "vp9", "no VP9"),
    useful("demuxer", "concat", "no previews of several clips"),
    useful("encoder", "mjpeg", "no thumbnails"),
    useful("demuxer", "rawvideo", "no filmstrips"),
    useful("encoder", "libx264", PREVIEWS),
    useful("encoder", "aac", PREVIEWS),
    useful("muxer", "mp4", PREVIEWS),
    useful("encoder", "webvtt", "no subtitles from inside videos"),
    useful("muxer", "webvtt", "no subtitles from inside videos"),
];

/// The ffmpeg that decodes. Blocks until it has printed its version.
///
/// # Errors
/// It can't be run, or is no ffmpeg.
pub fn installed_ffmpeg() -> io::Result<InstalledProgram> {
    program("ffmpeg", ffmpeg_path())
}

/// The ffprobe that reads facts about files. Blocks until it has printed its version.
///
/// # Errors
/// It can't be run, or is no ffprobe.
pub fn installed_ffprobe() -> io::Result<InstalledProgram> {
    program("ffprobe", ffprobe_path())
}

/// The parts that reprise uses and that the installed ffmpeg lacks. Blocks until it has listed what it has.
///
/// # Errors
/// ffmpeg can't be run.
pub fn lacking_parts() -> io::Result<Vec<LackingPart>> {
    let mut lacking = Vec::new();
    for kind in ["demuxer", "muxer", "decoder", "encoder", "filter"] {
        let list = said(&ffmpeg_path(), &["-hide_banner", &format!("-{kind}s")])?;
        let there = names(&list);
        let missing = PARTS.iter().filter(|part| part.kind == kind && !there.contains(part.name));
        lacking.extend(missing.map(|part| LackingPart {
            name: format!("{kind} {}", part.name),
            without: part.without,
            is_essential: part.is_essential,
        }));
    }
    Ok(lacking)
}

fn program(name: &str, path: PathBuf) -> io::Result<InstalledProgram> {
    let text = said(&path, &["-version"])?;
    let version = version(name, &text).ok_or_else(|| io::Error::other(format!("it is no {name}")))?;
    Ok(InstalledProgram { version: version.to_owned(), path })
}

/// The version in a first line such as `ffmpeg version 7.1.1-1 Copyright …`.
fn version<'a>(name: &str, text: &'a str) -> Option<&'a str> {
    text.strip_prefix(name)?.strip_prefix(" version ")?.split_whitespace().next()
}

fn said(program: &Path, arguments: &[&str]) -> io::Result<String> {
    let mut command = Command::new(program);
    command.args(arguments).env_remove("FFREPORT").stdin(Stdio::null());
    let output = command.output()?;
    if !output.status.success() {
        return Err(io::Error::other(format!("{} failed: {}", program.display(), output.status)));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// The names in a list: each line has flags, then names separated by commas.
fn names(list: &str) -> BTreeSet<&str> {
    list.lines().filter_map(|line| line.split_whitespace().nth(1)).flat_map(|it| it.split(',')).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(list: &str, expected: &[&str]) {
        let names = names(list);
        assert!(expected.iter().all(|name| names.contains(name)), "{expected:?} in {names:?}");
    }

    #[test]
    fn names_are_read_from_each_kind_of_list() {
        check(
            "File formats:\n D. = Demuxing supported\n --\n D  mov,mp4,m4a,3gp,3g2,mj2 QuickTime / MOV\n",
            &["mov", "mj2"],
        );
        check(
            "Encoders:\n V..... = Video\n ------\n V....D libx264              libx264 H.264\n",
            &["libx264"],
        );
        check("Filters:\n  T.. = Timeline support\n .S. scale   V->V  Scale the input\n", &["scale"]);
    }

    #[test]
    fn versions_are_read_from_the_first_line() {
        assert_eq!(
            version("ffmpeg", "ffmpeg version 5.1.6-0+deb12u1 Copyright (c)"),
            Some("5.1.6-0+deb12u1")
        );
        assert_eq!(version("ffprobe", "ffprobe version N-109-g1 Copyright"), Some("N-109-g1"));
        assert_eq!(version("ffmpeg", "sleep (GNU coreutils) 9.1"), None);
    }
}
