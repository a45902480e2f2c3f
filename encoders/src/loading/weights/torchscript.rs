//! Tensors of a TorchScript archive, OpenAI's format: a zip archive of a pickled module tree and storages.
//!
//! The reader ignores its code and runs nothing that the pickle names.

use crate::Cause;
use std::fs::File;
use std::io::{BufReader, Read, Seek};
use std::path::{Path, PathBuf};

use candle_core::pickle::{Object, Stack, TensorInfo};
use candle_core::{Device, Tensor};
use zip::ZipArchive;

/// Greatest depth of nested modules that the reader follows.
const DEEPEST: usize = 64;

/// Whether the file is a TorchScript archive.
pub(super) fn is_archive(path: &Path) -> bool {
    open(path).is_ok_and(|archive| data(&archive).is_some())
}

/// Names and locations of a model's tensors; `None` if the file is no TorchScript archive.
///
/// # Errors
/// The file's fault, in plain words.
pub(super) fn infos(path: &Path) -> Result<Option<Vec<TensorInfo>>, Cause> {
    let Ok(mut archive) = open(path) else { return Ok(None) };
    let Some(data) = data(&archive) else { return Ok(None) };
    let entry = archive.by_name(&format!("{data}.pkl"))?;
    let mut stack = Stack::empty();
    let read = stack.read_loop(&mut BufReader::new(entry)).and_then(|()| stack.finalize());
    let mut found = Vec::new();
    module(read?, "", DEEPEST, &PathBuf::from(data), &mut found)?;
    Ok(Some(found))
}

/// The archive's folder of storages; `None` for a checkpoint.
fn data(archive: &ZipArchive<BufReader<File>>) -> Option<String> {
    let names: Vec<String> = archive.file_names().flatten().map(|name| name.into_owned()).collect();
    let folder = names.iter().find_map(|name| name.strip_suffix("/constants.pkl"));
    folder.map(|folder| format!("{folder}/data"))
}

/// The tensors of `infos`, in their stored type.
///
/// # Errors
/// As [`infos`].
pub(super) fn tensors(path: &Path, infos: Vec<TensorInfo>) -> Result<Vec<(String, Tensor)>, Cause> {
    let mut archive = open(path)?;
    let tensor = |info: TensorInfo| {
        let read = tensor(&mut archive, &info).map_err(|why| format!("{}: {why}", info.name))?;
        Ok((info.name, read))
    };
    infos.into_iter().map(tensor).collect()
}

fn open(path: &Path) -> Result<ZipArchive<BufReader<File>>, Cause> {
    let file = File::open(path)?;
    ZipArchive::new(BufReader::new(file)).map_err(Cause::from)
}

/// Collects the tensors of a module and its submodules to depth `deepest`; `data` is the folder of their storages.
fn module(
    object: Object,
    name: &str,
    deepest: usize,
    data: &Path,
    found: &mut Vec<TensorInfo>,
) -> Result<(), Cause> {
    let Object::Build { callable, args } = object else { return Ok(()) };
    let Object::Dict(attributes) = *args else { return Ok(()) };
    if !is_module(&callable) {
        return Ok(());
    }
    if deepest == 0 {
        return Err(format!("modules lie over {DEEPEST} deep in each other").into());
    }
    for (attribute, value) in attributes {
        let Object::Unicode(attribute) = attribute else { continue };
        let whole = if name.is_empty() { attribute } else { format!("{name}.{attribute}") };
        match value {
            inner @ Object::Build { .. } => module(inner, &whole, deepest - 1, data, found)?,
            // Integer storages hold no learnt values.
            value => found.extend(value.into_tensor_info(Object::Unicode(whole), data).ok().flatten()),
        }
    }
    Ok(())
}

/// Whether an object's class is defined in the TorchScript archive itself.
fn is_module(callable: &Object) -> bool {
    let Object::Reduce { callable, .. } = callable else { return false };
    matches!(&**callable, Object::Class { module_name, .. } if module_name.starts_with("__torch__"))
}

fn tensor<R: Read + Seek>(archive: &mut ZipArchive<R>, info: &TensorInfo) -> Result<Tensor, Cause> {
    let (dims, layout) = (info.layout.dims(), &info.layout);
    let bytes = layout.shape().elem_count() * info.dtype.size_in_bytes();
    let entry = archive.by_name(&info.path)?;
    let mut values = Vec::with_capacity(bytes);
    // `start_offset` counts bytes.
    let mut entry = skipped(entry, layout.start_offset() as u64)?;
    entry.by_ref().take(bytes as u64).read_to_end(&mut values)?;
    // Whether a storage is whole is known at its end.
    skipped(entry, u64::MAX)?;
    if values.len() != bytes {
        return Err(format!("{} bytes of {bytes}", values.len()).into());
    }
    let of = |dims: &[usize]| Tensor::from_raw_buffer(&values, info.dtype, dims, &Device::Cpu);
    let tensor = if layout.is_contiguous() {
        of(dims)
    } else if layout.is_fortran_contiguous() {
        // Column-major storage.
        let reversed: Vec<usize> = dims.iter().rev().copied().collect();
        of(&reversed).and_then(|tensor| tensor.permute((0..dims.len()).rev().collect::<Vec<_>>()))
    } else {
        return Err("its values do not lie one after the other".into());
    };
    tensor.and_then(|tensor| tensor.contiguous()).map_err(Cause::from)
}

/// `reader` without its first bytes.
fn skipped<R: Read>(mut reader: R, bytes: u64) -> Result<R, Cause> {
    std::io::copy(&mut reader.by_ref().take(bytes), &mut std::io::sink())?;
    Ok(reader)
}
