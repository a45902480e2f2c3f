//! Needs of jobs, and which of them this process meets.

use std::sync::Arc;

use reprise_encoders::screen_text::installed_tesseract;
use tokio::sync::OnceCell;

use crate::app::App;

/// A requirement on a worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Need {
    /// A working ffmpeg.
    Decoder,
    /// A model or service that writes down speech.
    Transcriber,
    /// A Tesseract with languages.
    TextReader,
}

impl Need {
    /// Whether this process meets it. Blocks for a moment.
    fn is_met(self, app: &App) -> bool {
        match self {
            Need::Transcriber => app.speech.is_some(),
            Need::TextReader => installed_tesseract().is_ok_and(|it| !it.languages.is_empty()),
            Need::Decoder => reprise_encoders::video::ffmpeg::can_decode(),
        }
    }
}

/// Which needs this process meets. A check that starts a program is made once for all runners, when the first job has that
/// need.
#[derive(Debug)]
pub struct MetNeeds {
    decoder: OnceCell<bool>,
    transcriber: OnceCell<bool>,
    text_reader: OnceCell<bool>,
}

impl MetNeeds {
    /// What takes no program is known at once.
    pub fn new(app: &App) -> MetNeeds {
        let transcriber = OnceCell::new_with(Some(Need::Transcriber.is_met(app)));
        MetNeeds { decoder: OnceCell::new(), transcriber, text_reader: OnceCell::new() }
    }

    fn of(&self, need: Need) -> &OnceCell<bool> {
        match need {
            Need::Decoder => &self.decoder,
            Need::Transcriber => &self.transcriber,
            Need::TextReader => &self.text_reader,
        }
    }

    /// Whether jobs with these needs may run here, as far as is known: none was found unmet.
    pub(super) fn allow(&self, needs: &[Need]) -> bool {
        needs.iter().all(|need| self.of(*need).get() != Some(&false))
    }

    /// Checks needs; the first one that is not met is the error.
    pub(super) async fn check(&self, needs: &'static [Need], app: &Arc<App>) -> Result<(), Need> {
        for need in needs {
            let check = || async {
                let app = Arc::clone(app);
                let met = tokio::task::spawn_blocking(move || need.is_met(&app)).await;
                met.unwrap_or_else(|panic| {
                    tracing::error!(?need, %panic, "the check of a need broke down");
                    false
                })
            };
            if !*self.of(*need).get_or_init(check).await {
                return Err(*need);
            }
        }
        Ok(())
    }
}
