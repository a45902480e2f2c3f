//! `reprise eval speech`: how many words of a track are wrong.

use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow};
use clap::Args;
use reprise_research::eval::speech::{Units, word_errors};
use reprise_research::terminal::say;
use reprise_server::subtitles::parse;

/// Arguments of `reprise eval speech`.
#[derive(Debug, Args)]
pub(crate) struct SpeechArgs {
    /// Subtitles that say what was said, SubRip or WebVTT
    #[arg(long, value_name = "FILE")]
    reference: PathBuf,
    /// Subtitles that a model wrote, SubRip or WebVTT
    #[arg(long, value_name = "FILE")]
    track: PathBuf,
    /// Compares letters instead of words, for languages without spaces
    #[arg(long)]
    letters: bool,
    /// Whisper's rules for English first: numbers in digits, contractions in full, American spelling
    #[arg(long, conflicts_with = "letters")]
    english: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Prints the word error rate.
pub(crate) async fn run(args: SpeechArgs) -> anyhow::Result<()> {
    tokio::task::spawn_blocking(move || args.run()).await?
}

impl SpeechArgs {
    fn run(&self) -> anyhow::Result<()> {
        let units = match (self.letters, self.english) {
            (true, _) => Units::Letters,
            (_, true) => Units::English,
            _ => Units::Words,
        };
        let (reference, track) = (text(&self.reference)?, text(&self.track)?);
        let errors = word_errors(&reference, &track, units)?;
        if self.json {
            return Ok(say(serde_json::to_string(&errors)?)?);
        }
        let units = if self.letters { "letters" } else { "words" };
        say(format_args!("error rate    {:.2} %", errors.rate * 100.0))?;
        say(format_args!(
            "{units:<12}  {} in the reference, {} in the track",
            errors.reference, errors.track
        ))?;
        say(format_args!("substituted   {}", errors.substituted))?;
        say(format_args!("deleted       {}", errors.deleted))?;
        Ok(say(format_args!("inserted      {}", errors.inserted))?)
    }
}

/// The words of a file in order of time.
fn text(file: &Path) -> anyhow::Result<String> {
    let name = || file.display().to_string();
    let bytes = std::fs::read(file).with_context(name)?;
    let parsed = parse(&bytes).map_err(|refused| anyhow!("{}: {refused}", name()))?;
    let texts: Vec<String> = parsed.lines.into_iter().map(|line| line.text).collect();
    Ok(texts.join(" "))
}
