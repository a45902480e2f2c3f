//! Postgres's errors as errors of an engine.

use super::EngineError;

/// Whether the engine is away for now, can't be used as it is, or failed.
pub(super) fn failed(error: sqlx::Error) -> EngineError {
    use sqlx::Error::{Io, PoolClosed, PoolTimedOut, Protocol, Tls, WorkerCrashed};
    let code = error.as_database_error().and_then(|error| error.code()).unwrap_or_default().into_owned();
    match (&error, code.get(..2).unwrap_or_default()) {
        (Io(_) | PoolClosed | PoolTimedOut | Protocol(_) | Tls(_) | WorkerCrashed, _) => {
            EngineError::Away(Box::new(error))
        }
        // Connection lost, out of resources (a full disk, too many connections), stopped by its operator.
        (_, "08" | "53" | "57") => EngineError::Away(Box::new(error)),
        (_, "28") => EngineError::Unusable(format!(
            "the Postgres of the vector engine refuses the user or the password ({error}): mend --index-url"
        )),
        (_, "3D") => EngineError::Unusable(format!(
            "the database of the vector engine is not there ({error}): create it, or mend --index-url"
        )),
        // A table that is not there: another process rebuilds the engine.
        (_, "42") if code == "42P01" => EngineError::Away(Box::new(error)),
        _ => EngineError::Failed(Box::new(error)),
    }
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;
    use std::error::Error;

    use sqlx::error::{DatabaseError, ErrorKind};

    use super::*;

    /// An answer of Postgres with this SQLSTATE.
    #[derive(Debug, thiserror::Error)]
    #[error("SQLSTATE {0}")]
    struct Refusal(&'static str);

    impl DatabaseError for Refusal {
        fn message(&self) -> &str {
            self.0
        }

        fn code(&self) -> Option<Cow<'_, str>> {
            Some(self.0.into())
        }

        fn as_error(&self) -> &(dyn Error + Send + Sync + 'static) {
            self
        }

        fn as_error_mut(&mut self) -> &mut (dyn Error + Send + Sync + 'static) {
            self
        }

        fn into_error(self: Box<Self>) -> Box<dyn Error + Send + Sync + 'static> {
            self
        }

        fn kind(&self) -> ErrorKind {
            ErrorKind::Other
        }
    }

    #[test]
    fn a_lost_connection_is_temporary() {
        let lost = std::io::Error::from(std::io::ErrorKind::ConnectionReset);
        assert!(matches!(failed(sqlx::Error::Io(lost)), EngineError::Away(_)));
        assert!(matches!(failed(sqlx::Error::PoolTimedOut), EngineError::Away(_)));
        assert!(matches!(failed(sqlx::Error::RowNotFound), EngineError::Failed(_)));
    }

    #[test]
    fn postgres_says_by_its_code_whose_fault_it_is() {
        let of = |code| match failed(sqlx::Error::Database(Box::new(Refusal(code)))) {
            EngineError::Away(_) => "away",
            EngineError::Unusable(_) => "unusable",
            _ => "failed",
        };
        for (codes, expected) in [
            (&["08006", "53100", "53300", "57P01", "42P01"][..], "away"),
            (&["28P01", "3D000"], "unusable"),
            (&["42601", "42703", "22000", "XX001"], "failed"),
        ] {
            for code in codes {
                assert_eq!(of(code), expected, "{code}");
            }
        }
    }
}
