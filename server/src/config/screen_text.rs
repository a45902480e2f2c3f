//! Settings of the reader of text on screen.

use clap::Args;

/// Whether text on screen is read, and in which languages.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Text on screen")]
pub struct ScreenTextArgs {
    /// Read the text on screen in every new video, with Tesseract
    #[arg(long, env = "REPRISE_READ_TEXT")]
    pub read_text: bool,
    /// Languages of the text on screen, by Tesseract's names, joined with +
    #[arg(long, env = "REPRISE_TEXT_LANGUAGES", value_name = "LANGUAGES", default_value = "eng")]
    pub text_languages: String,
}
