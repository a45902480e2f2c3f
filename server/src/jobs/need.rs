//! Needs of jobs, and which of them this process meets.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use reprise_encoders::screen_text::installed_tesseract;

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

/// After this time an unmet need is checked again: a program may have been installed, or the system had no memory to start
/// one.
const AGAIN: Duration = Duration::from_secs(60);

/// Which needs this process meets. Some checks start programs, so each is made when the first job has that need.
#[derive(Debug, Default)]
pub struct MetNeeds(Mutex<HashMap<Need, Found>>);

#[derive(Debug, Clone, Copy)]
enum Found {
    Met,
    Unmet { at: Instant },
}

impl Found {
    fn is_unmet(self, now: Instant) -> bool {
        matches!(self, Found::Unmet { at } if now.duration_since(at) < AGAIN)
    }
}

impl MetNeeds {
    fn found(&self) -> MutexGuard<'_, HashMap<Need, Found>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether jobs with these needs may run here, as far as is known: none was found unmet.
    pub(super) fn allow(&self, needs: &[Need], app: &App) -> bool {
        let (found, now) = (self.found(), Instant::now());
        needs.iter().all(|need| match need {
            Need::Transcriber => need.is_met(app),
            Need::Decoder | Need::TextReader => !found.get(need).is_some_and(|it| it.is_unmet(now)),
        })
    }

    /// Checks needs, unless they were met before; the first one that is not met is the error.
    pub(super) async fn check(&self, needs: &'static [Need], app: &Arc<App>) -> Result<(), Need> {
        for need in needs {
            if matches!(self.found().get(need), Some(Found::Met)) {
                continue;
            }
            let checked = Arc::clone(app);
            let met =
                tokio::task::spawn_blocking(move || need.is_met(&checked)).await.unwrap_or_else(|panic| {
                    tracing::error!(?need, %panic, "the check of a need broke down");
                    false
                });
            let found = if met { Found::Met } else { Found::Unmet { at: Instant::now() } };
            self.found().insert(*need, found);
            if !met {
                return Err(*need);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unmet_need_is_checked_again_after_a_minute() {
        let at = Instant::now();
        for (found, after, expected) in [
            (Found::Met, Duration::ZERO, false),
            (Found::Unmet { at }, Duration::ZERO, true),
            (Found::Unmet { at }, AGAIN - Duration::from_millis(1), true),
            (Found::Unmet { at }, AGAIN, false),
        ] {
            assert_eq!(found.is_unmet(at + after), expected, "{found:?} after {after:?}");
        }
    }
}
