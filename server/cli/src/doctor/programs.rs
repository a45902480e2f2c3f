//! Checks of ffmpeg, ffprobe and Tesseract, and of their sandbox.

use std::io;

use reprise_encoders::screen_text::{InstalledTesseract, TesseractError, installed_tesseract};
use reprise_encoders::video::{
    InstalledProgram, LackingPart, installed_ffmpeg, installed_ffprobe, lacking_parts,
};
use reprise_encoders::with_causes;
use reprise_sandbox::{Support, support};

use super::check::Check;

pub(super) fn checks() -> Vec<Check> {
    let ffmpeg = installed_ffmpeg();
    let mut checks = Vec::new();
    if ffmpeg.is_ok() {
        checks.push(parts(lacking_parts()));
    }
    checks.insert(0, program("ffmpeg", "REPRISE_FFMPEG", ffmpeg));
    checks.insert(1, program("ffprobe", "REPRISE_FFPROBE", installed_ffprobe()));
    checks.push(tesseract(installed_tesseract()));
    checks.push(sandbox(support()));
    checks
}

fn tesseract(found: Result<InstalledTesseract, TesseractError>) -> Check {
    const NAME: &str = "tesseract";
    match found {
        Ok(InstalledTesseract { languages, .. }) if languages.is_empty() => {
            let found = "it has no languages, so text on screen can't be read";
            Check::warning(NAME, found, "install a language, such as tesseract-ocr-eng")
        }
        Ok(InstalledTesseract { path, version, languages, .. }) => {
            let found = format!("{version} at {}, with {}", path.display(), languages.join(", "));
            Check::ok(NAME, found)
        }
        Err(error) => {
            let found = format!("text on screen can't be read: {}", with_causes(&error));
            Check::warning(NAME, found, "install tesseract-ocr, or name it with REPRISE_TESSERACT")
        }
    }
}

fn sandbox(support: Support) -> Check {
    match support.is_complete() {
        true => Check::ok("sandbox", support.to_string()),
        false => Check::warning(
            "sandbox",
            support.to_string(),
            "do not let strangers upload, or use Linux 5.13 or newer with Landlock and a container that does not hide it",
        ),
    }
}

fn program(name: &'static str, variable: &str, found: io::Result<InstalledProgram>) -> Check {
    match found {
        Ok(InstalledProgram { path, version }) => Check::ok(name, format!("{version} at {}", path.display())),
        Err(error) => {
            let advice = format!("install ffmpeg, or name it with {variable}");
            Check::problem(name, format!("can't be run: {error}"), advice)
        }
    }
}

fn parts(lacking: io::Result<Vec<LackingPart>>) -> Check {
    const NAME: &str = "formats";
    let lacking = match lacking {
        Ok(lacking) if lacking.is_empty() => return Check::ok(NAME, "ffmpeg has every part that is used"),
        Ok(lacking) => lacking,
        Err(error) => {
            let found = format!("ffmpeg does not list its parts: {error}");
            return Check::warning(NAME, found, "install another build of ffmpeg");
        }
    };
    let listed: Vec<String> =
        lacking.iter().map(|part| format!("{} ({})", part.name, part.without)).collect();
    let (found, advice) = (format!("ffmpeg lacks {}", listed.join(", ")), "install a full build of ffmpeg");
    match lacking.iter().any(|part| part.is_essential) {
        true => Check::problem(NAME, found, advice),
        false => Check::warning(NAME, found, advice),
    }
}

#[cfg(test)]
mod tests {
    use super::super::check::State;
    use super::*;

    #[track_caller]
    fn check(lacking: &[(&str, bool)], expected: State) {
        let part = |(name, is_essential): &(&str, bool)| LackingPart {
            name: (*name).to_owned(),
            without: "no test",
            is_essential: *is_essential,
        };
        assert_eq!(parts(Ok(lacking.iter().map(part).collect())).state, expected, "{lacking:?}");
    }

    #[test]
    fn only_essential_parts_are_a_problem() {
        check(&[], State::Ok);
        check(&[("encoder libx264", false)], State::Warning);
        check(&[("encoder libx264", false), ("muxer nut", true)], State::Problem);
    }
}
