//! Checks of the data folder: rights, room, and the file system's locks.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rustix::fs::Access;

use super::check::Check;

const NAME: &str = "data folder";
const DISK: &str = "disk";

/// Fewer free bytes than this are a problem: uploads are refused, and SQLite may fail.
const TOO_LITTLE: u64 = 100 << 20;
/// Fewer free bytes than this are little for videos.
const LITTLE: u64 = 5 << 30;

/// `holds_database`: the catalog is an SQLite file.
pub(super) fn checks(folder: &Path, holds_database: bool) -> Vec<Check> {
    let mut checks = vec![of_folder(folder)];
    // The file system of a folder that is not there yet is that of the nearest one that is.
    if let Some(there) = folder.ancestors().find(|it| it.is_dir()) {
        checks.extend(room(there));
        checks.extend(network(there, holds_database));
    }
    checks
}

fn of_folder(folder: &Path) -> Check {
    let shown = folder.display();
    let advice = "let the server's user own it, or name another one with --data-dir";
    match folder.metadata() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => match can_be_made(folder) {
            true => Check::ok(NAME, format!("{shown} is not there yet; the first start makes it")),
            false => Check::problem(NAME, format!("{shown} can't be made: no right to do so"), advice),
        },
        Err(error) => Check::problem(NAME, format!("{shown} can't be read: {error}"), advice),
        Ok(found) if !found.is_dir() => Check::problem(NAME, format!("{shown} is no folder"), advice),
        Ok(found) => match write_and_lock(folder) {
            Err(error) => Check::problem(NAME, format!("{shown} can't be written: {error}"), advice),
            Ok(()) if found.mode() & 0o002 != 0 => {
                let found = format!("every user of this machine may write to {shown}");
                Check::warning(NAME, found, "take that right away: chmod o-w")
            }
            Ok(()) => Check::ok(NAME, format!("{shown} can be written")),
        },
    }
}

/// Whether this user may write to the nearest folder that is there.
fn can_be_made(folder: &Path) -> bool {
    let there = folder.ancestors().find(|it| it.is_dir()).unwrap_or(Path::new("."));
    rustix::fs::access(there, Access::WRITE_OK).is_ok()
}

/// Makes a file, locks it and removes it.
fn write_and_lock(folder: &Path) -> io::Result<()> {
    let path = folder.join(format!(".doctor-{}", std::process::id()));
    let file = OpenOptions::new().write(true).create_new(true).open(&path)?;
    let locked = lock(&file);
    std::fs::remove_file(&path)?;
    locked
}

fn lock(file: &File) -> io::Result<()> {
    let no_locks = |error: std::fs::TryLockError| io::Error::other(format!("files can't be locked: {error}"));
    file.try_lock().map_err(no_locks)
}

fn room(folder: &Path) -> Option<Check> {
    let system = rustix::fs::statvfs(folder).ok()?;
    Some(of_room(system.f_bavail.saturating_mul(system.f_frsize)))
}

fn of_room(free: u64) -> Check {
    let found = format!("{:.1} GB free", free as f64 / 1e9);
    match free {
        0..TOO_LITTLE => Check::problem(DISK, found, "free some space: uploads are refused"),
        TOO_LITTLE..LITTLE => Check::warning(DISK, found, "free some space before you add videos"),
        _ => Check::ok(DISK, found),
    }
}

#[cfg(target_os = "linux")]
fn network(folder: &Path, holds_database: bool) -> Option<Check> {
    let system = rustix::fs::statfs(folder).ok()?;
    of_file_system(system.f_type as u32, holds_database)
}

#[cfg(not(target_os = "linux"))]
fn network(_: &Path, _: bool) -> Option<Check> {
    None
}

/// `kind`: the number in `linux/magic.h`.
#[cfg(target_os = "linux")]
fn of_file_system(kind: u32, holds_database: bool) -> Option<Check> {
    let name = match kind {
        0x6969 => "NFS",
        0xFF53_4D42 | 0xFE53_4D42 | 0x517B => "a Windows share",
        0x0102_1997 => "a folder of the host (9p)",
        _ => return None,
    };
    let found = format!("the data folder lies on {name}");
    Some(match holds_database {
        true => {
            let found = format!("{found}, whose locks can fail: SQLite may lose data");
            Check::problem("file system", found, "use a local disk, or Postgres with --database-url")
        }
        false => Check::warning("file system", found, "a local disk is faster, above all for the index"),
    })
}

#[cfg(test)]
mod tests {
    use super::super::check::State;
    use super::*;

    #[test]
    fn room_is_judged_by_what_videos_need() {
        for (free, expected) in [(0, State::Problem), (1 << 30, State::Warning), (50 << 30, State::Ok)] {
            assert_eq!(of_room(free).state, expected, "{free}");
        }
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_database_on_a_network_is_a_problem() {
        const EXT4: u32 = 0xEF53;
        for (kind, holds_database, expected) in [
            (EXT4, true, None),
            (0x6969, true, Some(State::Problem)),
            (0x6969, false, Some(State::Warning)),
            (0xFF53_4D42, true, Some(State::Problem)),
        ] {
            assert_eq!(of_file_system(kind, holds_database).map(|it| it.state), expected, "{kind:x}");
        }
    }

    #[test]
    fn a_missing_folder_is_made_later_and_a_file_is_no_folder() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(of_folder(&folder.path().join("new")).state, State::Ok);
        assert_eq!(of_folder(folder.path()).state, State::Ok);
        let file = folder.path().join("file");
        std::fs::write(&file, "").unwrap();
        assert_eq!(of_folder(&file).state, State::Problem);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "nothing is left behind");
    }
}
