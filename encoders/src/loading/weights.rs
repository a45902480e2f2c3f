//! A model's named tensors and their digest, read from safetensors or PyTorch files or made in memory.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use candle_core::safetensors::{Load, SliceSafetensors};
use candle_core::{DType, Device, Storage, Tensor};
use sha2::{Digest, Sha256};

use self::in_file::InFile;
use super::error::LoadError;
use crate::Cause;
use crate::device::Placement;

mod in_file;
mod load_cost;
mod pickle;
mod torchscript;

/// Tensors by name, with a digest of their source and the placement of layers made of them. Those of safetensors files
/// stay there until a layer takes them, others keep the type of their file: a large model in f32 takes twice the memory.
///
/// The digest covers names, types, shapes and bytes in order of names. It does not depend on how files are sharded.
#[derive(Debug)]
pub(crate) struct Weights {
    tensors: BTreeMap<String, Stored>,
    digest: [u8; 32],
    placement: Placement,
    /// Names of the tensors that some layer took.
    taken: Mutex<BTreeSet<String>>,
}

#[derive(Debug)]
enum Stored {
    Held(Tensor),
    InFile(InFile),
}

impl Stored {
    fn shape(&self) -> &[usize] {
        match self {
            Stored::Held(tensor) => tensor.dims(),
            Stored::InFile(tensor) => tensor.shape(),
        }
    }

    /// The tensor in f32 on the CPU.
    fn wide(&self) -> Result<Tensor, LoadError> {
        let tensor = match self {
            Stored::Held(tensor) => tensor.clone(),
            Stored::InFile(tensor) => {
                tensor.tensor().map_err(|why| LoadError::BadFile { path: tensor.path().to_owned(), why })?
            }
        };
        Ok(tensor.to_dtype(DType::F32)?)
    }
}

impl Weights {
    fn of(tensors: BTreeMap<String, Stored>, digest: [u8; 32], placement: Placement) -> Weights {
        Weights { tensors, digest, placement, taken: Mutex::default() }
    }

    /// Reads all floating-point tensors of `files`. Names in `.pth`, `.pt`, `.ckpt`, `.bin` or `.jit` are PyTorch
    /// files or TorchScript archives, others safetensors. The same tensors give the same digest in either format.
    ///
    /// # Errors
    /// [`LoadError::BadFile`] for unreadable files.
    pub(crate) fn read(files: &[PathBuf]) -> Result<Self, LoadError> {
        let mut tensors = BTreeMap::new();
        let mut hashes = BTreeMap::new();
        for file in files {
            for (name, tensor, hash) in read_file(file)? {
                hashes.insert(name.clone(), hash);
                tensors.insert(name, tensor);
            }
        }
        Ok(Weights::of(tensors, digest(&hashes), Placement::default()))
    }

    /// Reads all floating-point tensors of a safetensors file in memory.
    ///
    /// # Errors
    /// The fault, in plain words.
    pub(crate) fn from_safetensors(bytes: &[u8]) -> Result<Self, Cause> {
        let (mut tensors, mut hashes) = (BTreeMap::new(), BTreeMap::new());
        for (name, tensor, hash) in parse_safetensors(bytes)? {
            hashes.insert(name.clone(), hash);
            tensors.insert(name, Stored::Held(tensor));
        }
        Ok(Weights::of(tensors, digest(&hashes), Placement::default()))
    }

    /// Weights from values in memory: name, shape, values.
    ///
    /// # Errors
    /// [`LoadError::Device`] if a shape does not fit its values.
    pub(crate) fn from_values(values: Vec<(String, Vec<usize>, Vec<f32>)>) -> Result<Self, LoadError> {
        let mut tensors = BTreeMap::new();
        let mut hashes = BTreeMap::new();
        for (name, shape, values) in values {
            let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
            hashes.insert(name.clone(), hash("F32", &shape, &bytes));
            tensors.insert(name, Stored::Held(Tensor::from_vec(values, shape, &Device::Cpu)?));
        }
        Ok(Weights::of(tensors, digest(&hashes), Placement::default()))
    }

    /// Maps each tensor to renamed or new tensors; the digest stays the same.
    ///
    /// # Errors
    /// The errors of `change`.
    pub(crate) fn changed(
        self,
        mut change: impl FnMut(&str, Tensor) -> Result<Vec<(String, Tensor)>, LoadError>,
    ) -> Result<Self, LoadError> {
        let Weights { tensors, digest, placement, .. } = self;
        let mut changed = BTreeMap::new();
        for (name, tensor) in tensors {
            let new = change(&name, tensor.wide()?)?;
            for (name, tensor) in new {
                // A tensor that `change` computed may lie on the model's device.
                changed.insert(name, Stored::Held(tensor.to_device(&Device::Cpu)?));
            }
        }
        Ok(Weights::of(changed, digest, placement))
    }

    /// Maps each name to another; the digest stays the same.
    pub(crate) fn renamed(self, name_of: impl Fn(&str) -> String) -> Self {
        let Weights { tensors, digest, placement, .. } = self;
        let renamed = tensors.into_iter().map(|(name, tensor)| (name_of(&name), tensor));
        Weights::of(renamed.collect(), digest, placement)
    }

    /// The same weights for layers that run on `placement`.
    pub(crate) fn placed(self, placement: &Placement) -> Self {
        Weights { placement: placement.clone(), ..self }
    }

    /// Device and precision of layers made of these weights; at first the CPU and f32.
    pub(crate) fn placement(&self) -> &Placement {
        &self.placement
    }

    /// All names, in order.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.tensors.keys().map(String::as_str)
    }

    /// The shape of the tensor `name`, which must have `N` dimensions.
    ///
    /// # Errors
    /// [`LoadError::MissingTensor`] or [`LoadError::WrongShape`].
    pub(crate) fn dims<const N: usize>(&self, name: &str) -> Result<[usize; N], LoadError> {
        let found = self.shape(name).ok_or_else(|| LoadError::MissingTensor { name: name.to_owned() })?;
        found.try_into().map_err(|_| {
            let (name, found) = (name.to_owned(), found.to_vec());
            LoadError::WrongShape { name, expected: vec![0; N], found }
        })
    }

    /// The shape of the tensor `name`.
    pub(crate) fn shape(&self, name: &str) -> Option<&[usize]> {
        self.tensors.get(name).map(Stored::shape)
    }

    /// SHA-256 over all tensors.
    pub(crate) fn digest(&self) -> &[u8; 32] {
        &self.digest
    }

    /// The tensor `name` in f32 on its layers' device; it must have this shape and finite values.
    ///
    /// # Errors
    /// [`LoadError::MissingTensor`], [`LoadError::WrongShape`], [`LoadError::NotFinite`], [`LoadError::Device`].
    pub(crate) fn get(&self, name: &str, shape: &[usize]) -> Result<Tensor, LoadError> {
        let found =
            self.tensors.get(name).ok_or_else(|| LoadError::MissingTensor { name: name.to_owned() })?;
        if found.shape() != shape {
            let (name, expected, found) = (name.to_owned(), shape.to_vec(), found.shape().to_vec());
            return Err(LoadError::WrongShape { name, expected, found });
        }
        let found = found.wide()?;
        if !is_finite(&found)? {
            return Err(LoadError::NotFinite { name: name.to_owned() });
        }
        self.taken.lock().unwrap_or_else(PoisonError::into_inner).insert(name.to_owned());
        Ok(found.to_device(self.placement.device())?)
    }

    /// Refuses weights with a tensor under `roots` that no layer took: its model computes something that this one does
    /// not. `left_out` are parts of names, between dots, that may stay. A root of "" is every tensor.
    ///
    /// # Errors
    /// [`LoadError::UnreadTensor`].
    pub(crate) fn check_taken(&self, roots: &[&str], left_out: &[&str]) -> Result<(), LoadError> {
        let taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let is_under = |name: &str, root: &str| {
            root.is_empty() || name.strip_prefix(root).is_some_and(|rest| rest.starts_with('.'))
        };
        let may_stay = |name: &str| name.split('.').any(|part| left_out.contains(&part));
        let unread = |name: &&str| {
            !taken.contains(*name) && roots.iter().any(|root| is_under(name, root)) && !may_stay(name)
        };
        match self.names().find(unread) {
            Some(name) => Err(LoadError::UnreadTensor { name: name.to_owned() }),
            None => Ok(()),
        }
    }
}

/// Whether all values of an f32 tensor on the CPU are finite.
fn is_finite(tensor: &Tensor) -> candle_core::Result<bool> {
    let tensor = tensor.contiguous()?;
    let (storage, layout) = tensor.storage_and_layout();
    let (Storage::Cpu(storage), Some((from, to))) = (&*storage, layout.contiguous_offsets()) else {
        candle_core::bail!("the tensor is not on the CPU");
    };
    Ok(storage.as_slice::<f32>()?[from..to].iter().all(|value| value.is_finite()))
}

/// Whether `path` is a TorchScript archive: a whole model. A checkpoint holds tensors only.
pub(crate) fn is_torchscript(path: &Path) -> bool {
    torchscript::is_archive(path)
}

/// File name endings of PyTorch's formats.
const PICKLED: [&str; 5] = ["pth", "pt", "ckpt", "bin", "jit"];

fn read_file(path: &Path) -> Result<Vec<(String, Stored, [u8; 32])>, LoadError> {
    let extension = path.extension().map(|extension| extension.to_ascii_lowercase());
    let pickled = extension.is_some_and(|extension| PICKLED.iter().any(|it| extension == **it));
    let held = |(name, tensor, hash)| (name, Stored::Held(tensor), hash);
    let in_file = |(name, tensor, hash)| (name, Stored::InFile(tensor), hash);
    let read = match pickled {
        true => read_pickle(path).map(|tensors| tensors.into_iter().map(held).collect()),
        false => in_file::read(path).map(|tensors| tensors.into_iter().map(in_file).collect()),
    };
    read.map_err(|why| LoadError::BadFile { path: path.to_owned(), why })
}

fn read_pickle(path: &Path) -> Result<Vec<(String, Tensor, [u8; 32])>, Cause> {
    let hashed = |(name, stored): (String, Tensor)| -> candle_core::Result<_> {
        let kind = float_type(&format!("{:?}", stored.dtype())).unwrap_or_default();
        let mut bytes = Vec::new();
        stored.write_bytes(&mut bytes)?;
        let hash = hash(kind, stored.dims(), &bytes);
        Ok((name, stored.to_dtype(DType::F32)?, hash))
    };
    let hashed = pickle::read(path)?.into_iter().map(hashed);
    hashed.collect::<candle_core::Result<_>>().map_err(Cause::from)
}

fn parse_safetensors(bytes: &[u8]) -> Result<Vec<(String, Tensor, [u8; 32])>, Cause> {
    let file = SliceSafetensors::new(bytes)?;
    let mut tensors = Vec::new();
    for (name, view) in file.tensors() {
        // Skips position ids and the like, which the code computes.
        let Some(kind) = float_type(&format!("{:?}", view.dtype())) else { continue };
        let tensor = view.load(&Device::Cpu).map_err(|error| Cause::in_context(&name, error))?;
        tensors.push((name, tensor, hash(kind, view.shape(), view.data())));
    }
    Ok(tensors)
}

fn float_type(name: &str) -> Option<&'static str> {
    ["F16", "BF16", "F32", "F64"].into_iter().find(|kind| *kind == name)
}

/// What is hashed before a tensor's bytes.
fn head(kind: &str, shape: &[usize]) -> String {
    format!("{kind} {shape:?}\n")
}

fn hash(kind: &str, shape: &[usize], bytes: &[u8]) -> [u8; 32] {
    let mut hasher = Sha256::new();
    hasher.update(head(kind, shape));
    hasher.update(bytes);
    hasher.finalize().into()
}

fn digest(hashes: &BTreeMap<String, [u8; 32]>) -> [u8; 32] {
    let mut hasher = Sha256::new();
    for (name, hash) in hashes {
        hasher.update(format!("{} {name}\n", name.len()));
        hasher.update(hash);
    }
    hasher.finalize().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn weights(values: Vec<f32>) -> Weights {
        Weights::from_values(vec![("layer.weight".to_owned(), vec![2, 1], values)]).unwrap()
    }

    #[track_caller]
    fn check(name: &str, shape: &[usize], values: Vec<f32>, expected: &str) {
        let got = weights(values).get(name, shape).map(|tensor| tensor.dims().to_vec());
        assert!(format!("{got:?}").starts_with(expected), "{got:?}");
    }

    #[test]
    fn a_tensor_that_nothing_took_is_an_error_where_it_may_not_stay() {
        let weights = weights(vec![1.0, 2.0]);
        let check = |roots: &[&str], left_out: &[&str]| weights.check_taken(roots, left_out).is_ok();
        assert!(!check(&["layer"], &[]) && !check(&[""], &[]));
        assert!(check(&["layer"], &["weight"]) && check(&["lay"], &[]) && check(&["other"], &[]));
        weights.get("layer.weight", &[2, 1]).unwrap();
        assert!(check(&[""], &[]));
    }

    #[test]
    fn a_tensor_is_given_only_if_it_is_what_was_asked_for() {
        check("layer.weight", &[2, 1], vec![1.0, 2.0], "Ok([2, 1])");
        check("layer.bias", &[2, 1], vec![1.0, 2.0], "Err(MissingTensor");
        check("layer.weight", &[1, 2], vec![1.0, 2.0], "Err(WrongShape");
        check("layer.weight", &[2, 1], vec![1.0, f32::NAN], "Err(NotFinite");
        check("layer.weight", &[2, 1], vec![1.0, f32::INFINITY], "Err(NotFinite");
    }

    #[test]
    fn the_digest_depends_on_every_value_and_not_on_files() {
        let folder = tempfile::tempdir().unwrap();
        let (a, b) =
            (Tensor::new(&[1f32, 2.0], &Device::Cpu).unwrap(), Tensor::new(&[3f32], &Device::Cpu).unwrap());
        let save = |file: &str, tensors: Vec<(&str, Tensor)>| {
            let path = folder.path().join(file);
            candle_core::safetensors::save(&tensors.into_iter().collect(), &path).unwrap();
            path
        };
        // Bytes of a tensor in memory and in a file are the same.
        let held = Weights::from_values(vec![
            ("a".to_owned(), vec![2], vec![1.0, 2.0]),
            ("b".to_owned(), vec![1], vec![3.0]),
        ]);
        let whole = save("whole", vec![("a", a.clone()), ("b", b.clone())]);
        let parts = [save("1", vec![("b", b.clone())]), save("2", vec![("a", a.clone())])];
        let other = save("other", vec![("a", a), ("b", (b + 1.0).unwrap())]);
        let digest = |files: &[PathBuf]| *Weights::read(files).unwrap().digest();
        assert_eq!(digest(std::slice::from_ref(&whole)), digest(&parts));
        assert_eq!(digest(std::slice::from_ref(&whole)), *held.unwrap().digest());
        assert_ne!(digest(&[whole]), digest(&[other]));
    }

    #[test]
    fn a_damaged_file_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("model.safetensors");
        let is_named = || matches!(Weights::read(std::slice::from_ref(&path)), Err(LoadError::BadFile { path: bad, .. }) if bad == path);
        std::fs::write(&path, b"not weights").unwrap();
        assert!(is_named());
        let tensor = Tensor::new(&[1f32, 2.0], &Device::Cpu).unwrap();
        candle_core::safetensors::save(&[("a", tensor)].into_iter().collect(), &path).unwrap();
        let whole = std::fs::read(&path).unwrap();
        // Cut off, too long, and with a header that claims more than there is.
        for damaged in [&whole[..whole.len() - 1], &[&whole[..], &[0]].concat(), &[255; 9]] {
            std::fs::write(&path, damaged).unwrap();
            assert!(is_named());
        }
    }

    #[test]
    fn a_file_that_is_cut_off_after_it_was_read_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("model.safetensors");
        let tensor = Tensor::new(&[1f32, 2.0], &Device::Cpu).unwrap();
        candle_core::safetensors::save(&[("a", tensor)].into_iter().collect(), &path).unwrap();
        let weights = Weights::read(std::slice::from_ref(&path)).unwrap();
        assert_eq!(weights.get("a", &[2]).unwrap().to_vec1::<f32>().unwrap(), [1.0, 2.0]);
        std::fs::File::options().write(true).open(&path).unwrap().set_len(20).unwrap();
        assert!(matches!(weights.get("a", &[2]), Err(LoadError::BadFile { path: bad, .. }) if bad == path));
    }
}
