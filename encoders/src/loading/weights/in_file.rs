//! Tensors that stay in their safetensors file until a layer takes them: so a load needs memory for the layers and one
//! tensor, whatever the type of the file.

use std::fs::File;
use std::io::Read;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use candle_core::{DType, Device, Tensor};
use safetensors::tensor::{Metadata, TensorInfo};
use sha2::{Digest, Sha256};

use super::{float_type, head};
use crate::Cause;

/// Longest header; the format's own limit.
const LONGEST_HEADER: u64 = 100_000_000;
/// Bytes that are hashed at a time.
const AT_ONCE: usize = 1 << 20;

/// A tensor's place. The open file stays the one whose digest was taken, even if another takes its name.
#[derive(Debug, Clone)]
pub(super) struct InFile {
    file: Arc<File>,
    path: PathBuf,
    kind: DType,
    shape: Vec<usize>,
    /// Of the first byte.
    offset: u64,
    bytes: usize,
}

impl InFile {
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// Reads the tensor, in the type of the file.
    ///
    /// # Errors
    /// The fault, in plain words.
    pub(super) fn tensor(&self) -> Result<Tensor, Cause> {
        let mut bytes = vec![0; self.bytes];
        self.file.read_exact_at(&mut bytes, self.offset)?;
        Ok(Tensor::from_raw_buffer(&bytes, self.kind, &self.shape, &Device::Cpu)?)
    }

    /// SHA-256 of type, shape and bytes.
    fn hash(&self, kind: &str) -> Result<[u8; 32], Cause> {
        let mut hasher = Sha256::new();
        hasher.update(head(kind, &self.shape));
        let mut buffer = vec![0; AT_ONCE.min(self.bytes)];
        for first in (0..self.bytes).step_by(AT_ONCE) {
            let part = &mut buffer[..AT_ONCE.min(self.bytes - first)];
            self.file.read_exact_at(part, self.offset + first as u64)?;
            hasher.update(part);
        }
        Ok(hasher.finalize().into())
    }
}

/// All floating-point tensors of a safetensors file, with their hashes.
///
/// # Errors
/// The fault, in plain words.
pub(super) fn read(path: &Path) -> Result<Vec<(String, InFile, [u8; 32])>, Cause> {
    let mut file = File::open(path)?;
    let (metadata, start) = header(&mut file)?;
    let file = Arc::new(file);
    let mut tensors = Vec::new();
    // In the file's order: a disk reads it in one go.
    for name in metadata.offset_keys() {
        let Some(info) = metadata.info(&name) else { continue };
        // Skips position ids and the like, which the code computes.
        let Some(kind) = float_type(&format!("{:?}", info.dtype)) else { continue };
        let tensor = in_file(&file, path, info, start).ok_or("a tensor that the file does not hold")?;
        let hash = tensor.hash(kind).map_err(|error| Cause::in_context(&name, error))?;
        tensors.push((name, tensor, hash));
    }
    Ok(tensors)
}

/// The header, and where the tensors begin.
fn header(file: &mut File) -> Result<(Metadata, u64), Cause> {
    let all = file.metadata()?.len();
    let mut length = [0; 8];
    file.read_exact(&mut length)?;
    let length = u64::from_le_bytes(length);
    if length > LONGEST_HEADER || length > all {
        return Err(format!("a header of {length} bytes").into());
    }
    let mut json = Vec::new();
    file.take(length).read_to_end(&mut json)?;
    // Its reader checks that the tensors follow each other and have the sizes of their shapes.
    let metadata: Metadata = serde_json::from_slice(&json)?;
    let start = 8 + length;
    match start + metadata.data_len() as u64 == all {
        true => Ok((metadata, start)),
        false => {
            Err(format!("a file of {all} bytes, but its header says {} more", metadata.data_len()).into())
        }
    }
}

fn in_file(file: &Arc<File>, path: &Path, info: &TensorInfo, start: u64) -> Option<InFile> {
    let (first, last) = info.data_offsets;
    Some(InFile {
        file: Arc::clone(file),
        path: path.to_owned(),
        kind: DType::try_from(info.dtype).ok()?,
        shape: info.shape.clone(),
        offset: start + first as u64,
        bytes: last.checked_sub(first)?,
    })
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    /// A file of `all` bytes, mostly holes, that says its header has `length`.
    #[track_caller]
    fn check_refused(all: u64, length: u64) {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(&length.to_le_bytes()).unwrap();
        file.as_file().set_len(all).unwrap();
        let why = read(file.path()).err().map(|why| why.to_string());
        assert_eq!(why, Some(format!("a header of {length} bytes")));
    }

    #[test]
    fn a_header_that_is_too_long_is_not_read() {
        check_refused(100, 101);
        check_refused(3 * LONGEST_HEADER, LONGEST_HEADER + 1);
        check_refused(3 * LONGEST_HEADER, 2 * LONGEST_HEADER);
    }
}
