//! The lock of an embedded database: one process at a time serves it, fills it, or builds its index.

use std::fs::{File, TryLockError};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use reprise_encoders::Cause;

use super::error::CatalogError;
use super::instant;
use super::store::{DatabaseUrl, place};

/// Longest description of a holder that is read, in bytes.
const MOST_BYTES: u64 = 200;

/// The right to be the only process that serves a database. Ends with this value, and with the process.
#[derive(Debug)]
pub struct Hold {
    _file: Option<File>,
}

/// Takes the right to serve the database at `url`, as `holder` ("a server"). Postgres has no such lock: several servers
/// share it.
///
/// # Errors
/// [`CatalogError::InUse`] while another process holds it; [`CatalogError::Database`] if the folder can't be written.
pub fn hold(url: &str, holder: &str) -> Result<Hold, CatalogError> {
    let DatabaseUrl::Sqlite(path) = place(url)? else { return Ok(Hold { _file: None }) };
    let file_path = beside(path);
    let failed = |error: io::Error| {
        let what =
            format!("can't write {}; let its folder be writable, or name another one", file_path.display());
        CatalogError::Database(Cause::in_context(what, error))
    };
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).map_err(failed)?;
    }
    let options = File::options().read(true).write(true).create(true).truncate(false).open(&file_path);
    let mut file = options.map_err(failed)?;
    match file.try_lock() {
        Ok(()) => {}
        // Some network folders have no locks.
        Err(TryLockError::Error(error)) if error.kind() == io::ErrorKind::Unsupported => {}
        Err(TryLockError::Error(error)) => return Err(failed(error)),
        Err(TryLockError::WouldBlock) => return Err(in_use(path, &mut file)),
    }
    let since = instant::format(instant::now_ms());
    let described = format!("{holder} (process {}, since {since})", std::process::id());
    file.set_len(0).and_then(|()| file.write_all(described.as_bytes())).map_err(failed)?;
    Ok(Hold { _file: Some(file) })
}

fn beside(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".held");
    PathBuf::from(name)
}

fn in_use(path: &Path, file: &mut File) -> CatalogError {
    let mut holder = String::new();
    let read = file.take(MOST_BYTES).read_to_string(&mut holder);
    // The holder may be about to write who it is.
    let holder = match read {
        Ok(_) if !holder.is_empty() => holder.as_str(),
        _ => "another process",
    };
    CatalogError::InUse(format!(
        "{} is in use by {holder}: stop it first, or name another --data-dir or --database-url",
        path.display()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::embedded_url;

    #[test]
    fn a_second_holder_learns_who_is_the_first_and_comes_after_it() {
        let folder = tempfile::tempdir().unwrap();
        let url = embedded_url(&folder.path().join("new"));
        let first = hold(&url, "a server").unwrap();
        let refused = hold(&url, "another").unwrap_err().to_string();
        let holder = format!("a server (process {}, since 2", std::process::id());
        assert!(refused.contains(&holder) && refused.contains("--data-dir"), "{refused}");
        drop(first);
        drop(hold(&url, "another").unwrap());
        let shared = "postgres://host/database";
        let _both = [hold(shared, "a server").unwrap(), hold(shared, "a server").unwrap()];
    }
}
