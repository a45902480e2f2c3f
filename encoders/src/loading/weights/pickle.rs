//! Tensors of a PyTorch checkpoint: a zip archive of a pickled dictionary and its storages.
//!
//! The reader runs no code of the pickle. It refuses files from before PyTorch 1.6, which have another format.

use std::fs::File;
use std::io::{BufReader, Read};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use candle_core::pickle::{PthTensors, TensorInfo, read_pth_tensor_info};
use candle_core::{DType, Tensor};
use zip::ZipArchive;

use super::{load_cost, torchscript};
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

/// The most bytes of tensors for each byte of the file: models share a few of their storages, a bomb shares one storage
/// among thousands of tensors.
const BYTES_A_BYTE: u64 = 4;

fn read_trusting(path: &Path) -> Result<Vec<(String, Tensor)>, Cause> {
    check_pickles(path)?;
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

/// Refuses an archive whose pickle would cost too much to read, or that has several.
fn check_pickles(path: &Path) -> Result<(), Cause> {
    // The readers refuse what is no archive.
    let Ok(mut archive) = ZipArchive::new(BufReader::new(File::open(path)?)) else { return Ok(()) };
    let names: Vec<String> = archive.file_names().flatten().map(|name| name.into_owned()).collect();
    let mut pickles = names.iter().filter(|name| name.ends_with("data.pkl"));
    let Some(name) = pickles.next() else { return Ok(()) };
    if pickles.next().is_some() {
        return Err("it holds several pickles data.pkl".into());
    }
    let (mut pickle, length) = (Vec::new(), std::fs::metadata(path)?.len());
    // Stored, not compressed: none is longer than the file.
    archive.by_name(name)?.take(length).read_to_end(&mut pickle)?;
    load_cost::check(&pickle)
}

/// # Errors
/// A tensor that would need more memory than the file has bytes, or tensors that together need several times as much.
fn check_sizes(path: &Path, infos: &[TensorInfo]) -> Result<(), Cause> {
    let bytes = std::fs::metadata(path)?.len();
    if let Some(info) = infos.iter().find(|info| size(info) > bytes) {
        return Err(format!("{} is said to be larger than the file", info.name).into());
    }
    let all = infos.iter().fold(0_u64, |all, info| all.saturating_add(size(info)));
    if all > bytes.saturating_mul(BYTES_A_BYTE) {
        return Err("its tensors share so much that together they are far larger than the file".into());
    }
    Ok(())
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

    /// A zip archive of stored files.
    fn archive(files: &[(&str, &[u8])]) -> Vec<u8> {
        let options = zip::write::SimpleFileOptions::default();
        let mut archive = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
        for (name, content) in files {
            archive.start_file(*name, options).unwrap();
            std::io::Write::write_all(&mut archive, content).unwrap();
        }
        archive.finish().unwrap().into_inner()
    }

    #[test]
    fn a_pickle_that_costs_far_more_than_its_size_is_refused() {
        let deep = [&b"N"[..], &[0x85; 1_000_000], b"."].concat();
        check(&archive(&[("m/data.pkl", &deep)]), "deep in each other");
        check(&archive(&[("m/data.pkl", &deep), ("m/constants.pkl", b"")]), "deep in each other");
        check(&archive(&[("m/data.pkl", b"N."), ("n/data.pkl", b"N.")]), "several pickles");
        let shared = shared_storage(100);
        check(&archive(&[("m/data.pkl", &shared), ("m/data/0", &[0; 40_000])]), "far larger than the file");
        let twice = archive(&[("m/data.pkl", &shared_storage(2)), ("m/data/0", &[0; 40_000])]);
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), twice).unwrap();
        assert_eq!(read(file.path()).unwrap().len(), 2);
    }

    #[test]
    fn a_flat_tensor_beside_the_weights_is_not_taken_for_them() {
        let flat = tensor("class_weights", &TensorLayout { sizes: b"K\x02\x85", strides: b"K\x01\x85" });
        let weights = [text("state_dict"), dictionary(&[tensor("head", &SQUARE)])].concat();
        let pickle = [b"\x80\x02".to_vec(), dictionary(&[flat, weights]), b".".to_vec()].concat();
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), archive(&[("m/data.pkl", &pickle), ("m/data/0", &[0; 40_000])])).unwrap();
        let read = read(file.path()).unwrap();
        assert_eq!(read.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), ["head"]);
    }

    /// A pickle of `count` tensors of 100 x 100 values, all in one storage.
    fn shared_storage(count: u8) -> Vec<u8> {
        let tensors: Vec<_> = (0..count).map(|name| tensor(&format!("t{name}"), &SQUARE)).collect();
        [b"\x80\x02".to_vec(), dictionary(&tensors), b".".to_vec()].concat()
    }

    /// Tuples of numbers, pickled.
    struct TensorLayout {
        sizes: &'static [u8],
        strides: &'static [u8],
    }

    /// 100 x 100 values.
    const SQUARE: TensorLayout = TensorLayout { sizes: b"KdKd\x86", strides: b"KdK\x01\x86" };

    /// A string, pickled.
    fn text(text: &str) -> Vec<u8> {
        [&b"X"[..], &(text.len() as u32).to_le_bytes(), text.as_bytes()].concat()
    }

    /// A dictionary of keys that their values follow, pickled.
    fn dictionary(entries: &[Vec<u8>]) -> Vec<u8> {
        [b"}(".to_vec(), entries.concat(), b"u".to_vec()].concat()
    }

    /// A name, and a tensor in storage 0 of 10,000 values, pickled.
    fn tensor(name: &str, layout: &TensorLayout) -> Vec<u8> {
        let storage = [text("storage"), b"ctorch\nFloatStorage\n".to_vec(), text("0"), text("cpu")].concat();
        let class = b"ctorch._utils\n_rebuild_tensor_v2\n((".to_vec();
        let layout = [b"M\x10\x27tQK\x00", layout.sizes, layout.strides, b"\x89)tR"].concat();
        [text(name), class, storage, layout].concat()
    }
}
