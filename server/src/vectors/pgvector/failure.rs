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
    use super::*;

    #[test]
    fn a_lost_connection_is_temporary() {
        let lost = std::io::Error::from(std::io::ErrorKind::ConnectionReset);
        assert!(matches!(failed(sqlx::Error::Io(lost)), EngineError::Away(_)));
        assert!(matches!(failed(sqlx::Error::PoolTimedOut), EngineError::Away(_)));
        assert!(matches!(failed(sqlx::Error::RowNotFound), EngineError::Failed(_)));
    }
}
