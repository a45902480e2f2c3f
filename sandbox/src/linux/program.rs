//! What the program file says about itself.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use crate::SandboxError;

/// The longest path of a loader that the kernel accepts, in bytes.
const LONGEST_PATH: u64 = 4096;
/// The type of the program header that names the loader.
const INTERPRETER: u32 = 3;

/// The loader (`ld.so`) that the kernel starts for a program, which must be allowed as the program is. A static program
/// has none.
///
/// # Errors
/// The file is no ELF program of 64 bits, or can't be read.
pub(super) fn loader(program: &Path) -> Result<Option<PathBuf>, SandboxError> {
    let fault =
        |reason| move |source| SandboxError::NotExecutable { program: program.into(), reason, source };
    let file = File::open(program).map_err(|error| fault("it can't be read")(Some(error)))?;
    let mut start = [0; 4];
    file.read_exact_at(&mut start, 0).map_err(|error| fault("it is too short")(Some(error)))?;
    if start.starts_with(b"#!") {
        return Err(fault(
            "it is a script: name the program that it starts, scripts do not run in the sandbox",
        )(None));
    }
    if start != *b"\x7fELF" {
        return Err(fault("it is not a Linux program (ELF)")(None));
    }
    interpreter(&file).map_err(|error| fault("its ELF headers are damaged")(Some(error)))
}

fn interpreter(file: &File) -> io::Result<Option<PathBuf>> {
    let header: [u8; 64] = read(file, 0)?;
    let table = u64::from_le_bytes(part(&header, 32)?);
    let entry_length = u64::from(u16::from_le_bytes(part(&header, 54)?));
    let entries = u64::from(u16::from_le_bytes(part(&header, 56)?));
    for index in 0..entries {
        let entry: [u8; 40] = read(file, table.saturating_add(index * entry_length))?;
        if u32::from_le_bytes(part(&entry, 0)?) == INTERPRETER {
            let offset = u64::from_le_bytes(part(&entry, 8)?);
            let length = u64::from_le_bytes(part(&entry, 32)?).min(LONGEST_PATH);
            return path(file, offset, length).map(Some);
        }
    }
    Ok(None)
}

fn path(file: &File, offset: u64, length: u64) -> io::Result<PathBuf> {
    let mut bytes = vec![0; usize::try_from(length).map_err(io::Error::other)?];
    file.read_exact_at(&mut bytes, offset)?;
    let name = bytes.split(|byte| *byte == 0).next().unwrap_or_default();
    Ok(OsStr::from_bytes(name).into())
}

fn read<const LENGTH: usize>(file: &File, offset: u64) -> io::Result<[u8; LENGTH]> {
    let mut bytes = [0; LENGTH];
    file.read_exact_at(&mut bytes, offset)?;
    Ok(bytes)
}

fn part<const LENGTH: usize>(bytes: &[u8], start: usize) -> io::Result<[u8; LENGTH]> {
    let part = bytes.get(start..).and_then(|rest| rest.first_chunk());
    part.copied().ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_dynamic_program_names_its_loader() {
        let loader = loader(&std::env::current_exe().unwrap()).unwrap().unwrap();
        assert!(loader.exists(), "{}", loader.display());
    }

    #[test]
    fn what_is_no_program_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("program");
        for (bytes, reason) in [
            (b"#!/bin/sh\nffmpeg\n".to_vec(), "a script"),
            (b"PNG or so".to_vec(), "not a Linux program"),
            (b"\x7f".to_vec(), "too short"),
            (b"\x7fELF\x02\x01".to_vec(), "damaged"),
            ([b"\x7fELF".as_slice(), &[255; 60]].concat(), "damaged"),
        ] {
            fs::write(&file, bytes).unwrap();
            let error = loader(&file).unwrap_err();
            assert_eq!(error.exit_code(), 126);
            assert!(error.to_string().contains(reason), "{error}");
        }
    }
}
