//! Needs of jobs, and which of them this process meets.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use reprise_encoders::screen_text::installed_tesseract;
use tokio::sync::OwnedMutexGuard;

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
pub struct MetNeeds {
    found: Mutex<HashMap<Need, Found>>,
    checking: Arc<tokio::sync::Mutex<()>>,
}

/// Permission to lease a job whose needs may be unchecked. One runner has it at a time.
pub(super) type Checking = OwnedMutexGuard<()>;

#[derive(Debug, Clone, Copy)]
enum Found {
    Met,
    Unmet { at: Instant },
}

impl Found {
    fn is_known(self, now: Instant) -> bool {
        matches!(self, Found::Met) || self.is_unmet(now)
    }

    fn is_unmet(self, now: Instant) -> bool {
        matches!(self, Found::Unmet { at } if now.duration_since(at) < AGAIN)
    }
}

impl MetNeeds {
    fn found(&self) -> MutexGuard<'_, HashMap<Need, Found>> {
        self.found.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until no other runner checks a need. `None`, at once, if all `needs` are known.
    ///
    /// A runner keeps the permission from before it lists its kinds of job until it has checked the leased job's needs.
    /// Otherwise two runners could lease the same job in turn, and both hand it back.
    pub(super) async fn start_checking(&self, needs: impl Iterator<Item = Need>) -> Option<Checking> {
        if self.know_all(needs) { None } else { Some(Arc::clone(&self.checking).lock_owned().await) }
    }

    fn know_all(&self, mut needs: impl Iterator<Item = Need>) -> bool {
        let (found, now) = (self.found(), Instant::now());
        needs.all(|need| need == Need::Transcriber || found.get(&need).is_some_and(|it| it.is_known(now)))
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
    use futures_util::FutureExt;

    use super::*;

    #[test]
    fn an_unmet_need_is_checked_again_after_a_minute() {
        let at = Instant::now();
        for (found, after, unmet, known) in [
            (Found::Met, Duration::ZERO, false, true),
            (Found::Met, AGAIN, false, true),
            (Found::Unmet { at }, Duration::ZERO, true, true),
            (Found::Unmet { at }, AGAIN - Duration::from_millis(1), true, true),
            (Found::Unmet { at }, AGAIN, false, false),
        ] {
            let is = (found.is_unmet(at + after), found.is_known(at + after));
            assert_eq!(is, (unmet, known), "{found:?} after {after:?}");
        }
    }

    #[test]
    fn one_runner_at_a_time_may_lease_jobs_of_unchecked_needs() {
        let needs = MetNeeds::default();
        let start = |need| needs.start_checking([need].into_iter()).now_or_never();
        assert!(matches!(start(Need::Transcriber), Some(None)), "its answer is always known");
        let first = start(Need::Decoder).expect("nobody checks");
        assert!(first.is_some(), "it is unchecked");
        assert!(start(Need::Decoder).is_none(), "the first still checks");
        needs.found().insert(Need::Decoder, Found::Unmet { at: Instant::now() });
        assert!(matches!(start(Need::Decoder), Some(None)), "it is known now");
        assert!(start(Need::TextReader).is_none(), "this one is not");
        drop(first);
        assert!(start(Need::TextReader).is_some_and(|it| it.is_some()), "nobody checks any more");
    }
}
