//! The cause of a failure, kept in errors that many callers share.

use std::error::Error;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

/// The messages of an error and its causes in one line. A message that contains its cause's is not followed by it.
pub fn with_causes(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let message = error.to_string();
        if !text.contains(&message) {
            text = format!("{text}: {message}");
        }
        cause = error.source();
    }
    text
}

/// The error behind a failure, or a sentence of ours. A clone is cheap: one failed batch answers all its callers.
///
/// It is no [`Error`] itself, so that [`From`] takes every error; with `#[source]` it gives the error it holds.
/// Two causes are equal if they read alike.
#[derive(Clone)]
pub struct Cause(Arc<dyn Error + Send + Sync>);

impl Cause {
    /// The error behind `cause`, with a sentence of ours before its text.
    pub fn in_context(context: impl Into<String>, cause: impl Into<Cause>) -> Cause {
        InContext { context: context.into(), cause: cause.into() }.into()
    }
}

#[derive(Debug, thiserror::Error)]
#[error("{context}: {cause}")]
struct InContext {
    context: String,
    #[source]
    cause: Cause,
}

impl<E: Into<Box<dyn Error + Send + Sync>>> From<E> for Cause {
    fn from(error: E) -> Cause {
        Cause(error.into().into())
    }
}

impl Deref for Cause {
    type Target = dyn Error + Send + Sync;

    fn deref(&self) -> &Self::Target {
        &*self.0
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

impl PartialEq for Cause {
    fn eq(&self, other: &Cause) -> bool {
        self.to_string() == other.to_string()
    }
}

impl Eq for Cause {}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("failed: {0}")]
    struct Failed(#[source] Cause);

    #[test]
    fn an_error_keeps_its_type_behind_a_cause() {
        let failed = Failed(std::io::Error::from(std::io::ErrorKind::StorageFull).into());
        let io = failed.source().and_then(|it| it.downcast_ref::<std::io::Error>());
        assert_eq!(io.map(std::io::Error::kind), Some(std::io::ErrorKind::StorageFull));
        assert_eq!(failed.to_string(), "failed: no storage space");
        let outer = Cause::in_context("a.bin", std::io::Error::from(std::io::ErrorKind::StorageFull));
        assert_eq!(outer.to_string(), "a.bin: no storage space");
        assert!(outer.source().is_some_and(|it| it.is::<std::io::Error>()));
        assert_eq!(Cause::from("a sentence"), Cause::from("a sentence".to_owned()));
    }
}
