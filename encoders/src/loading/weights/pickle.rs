//! Tensors of a PyTorch checkpoint: a zip archive of a pickled dictionary and its storages.
//!
//! The reader runs no code of the pickle. It refuses files from before PyTorch 1.6, which have another format.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use candle_core::pickle::{PthTensors, TensorInfo, read_pth_tensor_info};
use candle_core::{DType, Tensor};

use super::torchscript;
use crate::Cause;

/// Keys under which checkpoints keep their weights; `None`: the checkpoint is the dictionary of weights itself.
const KEYS: [Option<&str>; 4] = [None, Some("state_dict"), Some("model_state_dict"), Some("model")];

/// The floating-point tensors of the file, by name, in their stored type.
///
/// # Errors
/// The file's fault, in plain words.
pub(super) fn read(path: &Path) -> Result<Vec<(String, Tensor)>, Cause> {
    // The parser takes some malformed files for impossible and panics.
    let read = catch_unwind(AssertUnwindSafe(|| read_trusting(path)));
    read.unwrap_or_else(|_| Err("it is no checkpoint that makes sense".into()))
}

fn read_trusting(path: &Path) -> Result<Vec<(String, Tensor)>, Cause> {
    if let Some(mut infos) = torchscript::infos(path)? {
        infos.retain(|info| is_float(info.dtype));
        check_sizes(path, &infos)?;
        return torchscript::tensors(path, infos);
    }
    let (key, infos) = weights(path)?;
    check_sizes(path, &infos)?;
    let file = PthTensors::new(path, key)?;
    let tensor = |info: TensorInfo| match file.get(&info.name) {
        Ok(Some(tensor)) => Ok((info.name, tensor)),
        Ok(None) => Err(format!("{} is missing", info.name).into()),
        Err(error) => Err(Cause::in_context(info.name, error)),
    };
    infos.into_iter().map(tensor).collect()
}

/// # Errors
/// A tensor that would need more memory than the file has bytes.
fn check_sizes(path: &Path, infos: &[TensorInfo]) -> Result<(), Cause> {
    let bytes = std::fs::metadata(path)?.len();
    match infos.iter().find(|info| size(info) > bytes) {
        Some(info) => Err(format!("{} is said to be larger than the file", info.name).into()),
        None => Ok(()),
    }
}

/// The first key under which there are weights, and what they are.
fn weights(path: &Path) -> Result<(Option<&'static str>, Vec<TensorInfo>), Cause> {
    for key in KEYS {
        let infos = match (read_pth_tensor_info(path, false, key), key) {
            (Ok(infos), _) => infos,
            (Err(error), None) => {
                return Err(format!("{error}; save it with torch.save of PyTorch 1.6 or later").into());
            }
            (Err(_), Some(_)) => continue,
        };
        let infos: Vec<TensorInfo> = infos.into_iter().filter(|info| is_float(info.dtype)).collect();
        if infos.iter().any(|info| info.layout.dims().len() > 1) {
            return Ok((key, infos));
        }
    }
    Err("it holds no weights by name; load it in PyTorch and save its state_dict()".into())
}

fn is_float(kind: DType) -> bool {
    matches!(kind, DType::F16 | DType::BF16 | DType::F32 | DType::F64)
}

/// Size in bytes; `u64::MAX` on overflow.
fn size(info: &TensorInfo) -> u64 {
    let values = info.layout.dims().iter().try_fold(1_u64, |all, dim| all.checked_mul(*dim as u64));
    let bytes = values.and_then(|values| values.checked_mul(info.dtype.size_in_bytes() as u64));
    bytes.unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(bytes: &[u8], expected: &str) {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), bytes).unwrap();
        let error = read(file.path()).unwrap_err();
        assert!(error.to_string().contains(expected), "{error}");
    }

    #[test]
    fn what_is_no_checkpoint_is_refused() {
        check(b"", "PyTorch 1.6");
        check(b"no archive", "PyTorch 1.6");
        // An empty zip archive.
        check(&[&b"PK\x05\x06"[..], &[0; 18]].concat(), "state_dict()");
        assert!(read(Path::new("/no/such/file")).is_err());
    }
}
