//! Whether an engine answers: while it does not, calls to it end soon instead of after its own time limits.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::EngineError;

/// Most time for a call to an engine that did not answer the last one.
const WHILE_AWAY: Duration = Duration::from_millis(500);

/// Whether the engine answered its last call.
#[derive(Debug, Default)]
pub(super) struct Reach {
    is_away: AtomicBool,
}

impl Reach {
    /// Waits for an answer of the engine: as long as the call itself does, but at most 500 ms while the engine is away.
    ///
    /// # Errors
    /// Those of the call. [`EngineError::Away`] after 500 ms.
    pub(super) async fn ask<T>(
        &self,
        call: impl Future<Output = Result<T, EngineError>>,
    ) -> Result<T, EngineError> {
        let answer = if self.is_away.load(Ordering::Relaxed) {
            let answer = tokio::time::timeout(WHILE_AWAY, call).await;
            answer.unwrap_or_else(|late| Err(EngineError::Away(Box::new(late))))
        } else {
            call.await
        };
        self.note(answer.as_ref().err());
        answer
    }

    /// Stores the outcome of a call that nobody waits for. Such calls keep the engine's own time limits, so that a slow
    /// engine is found again.
    pub(super) fn note(&self, error: Option<&EngineError>) {
        self.is_away.store(matches!(error, Some(EngineError::Away(_))), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn away() -> EngineError {
        EngineError::Away("nobody there".into())
    }

    /// The engine's last answers, oldest first. Checks whether a call that would never end is ended.
    async fn check(answers: &[Result<(), EngineError>], is_ended: bool) {
        let reach = Reach::default();
        for answer in answers {
            reach.note(answer.as_ref().err());
        }
        let endless = reach.ask(std::future::pending::<Result<(), EngineError>>());
        let patience = tokio::time::timeout(2 * WHILE_AWAY, endless).await;
        let ended = matches!(patience, Ok(Err(EngineError::Away(_))));
        assert_eq!(ended, is_ended, "after {answers:?}");
    }

    #[tokio::test]
    async fn a_call_to_an_engine_that_is_away_ends_soon() {
        check(&[], false).await;
        check(&[Err(away())], true).await;
        check(&[Err(away()), Ok(())], false).await;
        check(&[Err(away()), Err(EngineError::Failed("a bug".into()))], false).await;
    }

    #[tokio::test]
    async fn the_answer_of_a_call_decides_about_the_next() {
        let reach = Reach::default();
        assert!(reach.ask::<()>(async { Err(away()) }).await.is_err());
        assert!(reach.is_away.load(Ordering::Relaxed));
        assert_eq!(reach.ask(async { Ok(7) }).await.ok(), Some(7));
        assert!(!reach.is_away.load(Ordering::Relaxed));
    }
}
