//! Whether a model's weights fit into memory, estimated before they are read. Without this the system would end the
//! process halfway through, and say nothing.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::error::LoadError;
use crate::device::{Placement, Precision};

/// Longest header of a safetensors file that is read; the format's own limit.
const LONGEST_HEADER: u64 = 100_000_000;

/// Bytes of a value between file and layer: as read, in f32, turned, and copied to be packed.
const ON_THE_WAY: u64 = 16;

/// The size of weights, by the headers of their files.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct Size {
    /// Values of the largest tensor.
    largest: u64,
    /// Values of layers.
    values: u64,
    /// Values of token embeddings.
    embeddings: u64,
}

impl Size {
    /// Bytes in memory while a model is loaded: layers, and the largest tensor on its way from the file into a layer.
    fn needed(&self, placement: &Placement) -> u64 {
        let of_value = match (placement.device().is_cpu(), placement.precision()) {
            (true, Precision::Int8) => 1,
            (true, Precision::Bf16) => 2,
            (true, _) => 4,
            (false, _) => 0,
        };
        // A table of embeddings may be the layer that scores tokens, too.
        let kept = self.embeddings.saturating_mul(2).saturating_add(self.values).saturating_mul(of_value);
        // A header may claim any shape.
        kept.saturating_add(self.largest.saturating_mul(ON_THE_WAY))
    }
}

/// Logs what loading `files` takes, before anything is read.
///
/// # Errors
/// [`LoadError::Memory`] if loading `files` needs more memory than is free. Files of other formats than safetensors are
/// not counted, and where the system says no free memory nothing is refused.
pub(crate) fn check(files: &[PathBuf], placement: &Placement) -> Result<(), LoadError> {
    let mut size = Size::default();
    for file in files {
        add(file, &mut size);
    }
    let (needed, free) = (size.needed(placement), free());
    let folder = files.first().and_then(|file| file.parent()).unwrap_or(Path::new("")).display();
    tracing::info!(%folder, needed_bytes = needed, free_bytes = free, "{}", said(needed, free));
    fits(needed, free)
}

/// # Errors
/// [`LoadError::Memory`] if more bytes are `needed` than `free`; unknown free memory is enough.
fn fits(needed: u64, free: Option<u64>) -> Result<(), LoadError> {
    match free {
        Some(free) if free < needed => Err(LoadError::Memory { needed, free }),
        _ => Ok(()),
    }
}

/// What a load takes, for the log.
fn said(needed: u64, free: Option<u64>) -> String {
    let gigabytes = |bytes: u64| bytes as f64 / 1e9;
    let needed = gigabytes(needed);
    match free.map(gigabytes) {
        Some(free) => {
            format!("loading the model takes about {needed:.1} GB of memory, {free:.1} GB are free")
        }
        None => format!("loading the model takes about {needed:.1} GB of memory"),
    }
}

/// Adds a file; unreadable ones are left to the reader, which says what is wrong.
fn add(path: &Path, size: &mut Size) {
    let Some(header) = header(path) else { return };
    for (name, tensor) in header.as_object().into_iter().flatten() {
        let Some(shape) = tensor["shape"].as_array() else { continue };
        let values = shape.iter().filter_map(Value::as_u64).fold(1_u64, u64::saturating_mul);
        let sum = if name.contains("embed_tokens") { &mut size.embeddings } else { &mut size.values };
        *sum = sum.saturating_add(values);
        size.largest = size.largest.max(values);
    }
}

fn header(path: &Path) -> Option<Value> {
    let mut file = File::open(path).ok()?;
    let bytes = file.metadata().ok()?.len();
    let mut length = [0; 8];
    file.read_exact(&mut length).ok()?;
    let length = u64::from_le_bytes(length);
    if length > LONGEST_HEADER || length > bytes {
        return None;
    }
    let mut header = Vec::new();
    file.take(length).read_to_end(&mut header).ok()?;
    serde_json::from_slice(&header).ok()
}

/// Free bytes of memory, by the system and by the process's control group; `None` if neither says.
fn free() -> Option<u64> {
    let read = |path: &str| std::fs::read_to_string(path).ok();
    let system = read("/proc/meminfo").and_then(|text| available(&text));
    let number = |path: &str| read(path)?.trim().parse::<u64>().ok();
    let limit = number("/sys/fs/cgroup/memory.max");
    let group =
        limit.zip(number("/sys/fs/cgroup/memory.current")).map(|(most, used)| most.saturating_sub(used));
    system.into_iter().chain(group).min()
}

/// `MemAvailable` of /proc/meminfo, in bytes.
fn available(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    Some(1024 * line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?)
}

#[cfg(test)]
mod tests {
    use candle_core::{DType, Device, Tensor};

    use super::*;

    #[test]
    fn free_memory_is_read() {
        assert_eq!(available("MemTotal: 9 kB\nMemAvailable:   5 kB\n"), Some(5120));
        assert_eq!(available("MemTotal: 9 kB\n"), None);
    }

    #[track_caller]
    fn check_fit(needed: u64, free: Option<u64>, refusal: Option<&str>) {
        let refused = fits(needed, free).err();
        let kept = |error: &LoadError| match error {
            LoadError::Memory { needed: said, free: left } => (*said, Some(*left)) == (needed, free),
            _ => false,
        };
        assert!(refused.as_ref().is_none_or(kept), "{refused:?}");
        let message = refused.map(|error| error.to_string());
        assert_eq!(message.as_deref().map(|it| it.split(';').next().unwrap_or_default()), refusal);
    }

    #[test]
    fn a_model_that_does_not_fit_is_refused_with_the_numbers() {
        let refusal = "loading the model needs about 8.3 GB of memory and 2.1 GB are free";
        check_fit(8_300_000_000, Some(2_100_000_000), Some(refusal));
        check_fit(8_300_000_000, Some(8_300_000_000), None);
        check_fit(8_300_000_000, None, None);
        check_fit(0, Some(0), None);
        let advice = LoadError::Memory { needed: 2, free: 1 }.to_string();
        assert!(advice.contains("choose a smaller model, or on a CPU precision int8"), "{advice}");
        // A header may claim more than any machine has; the sum must not wrap round to a small one.
        let size = Size { values: u64::MAX, ..Size::default() };
        assert!(fits(size.needed(&Placement::default()), Some(1 << 50)).is_err());
    }

    #[test]
    fn what_a_load_takes_is_said_in_gigabytes() {
        assert_eq!(
            said(2_240_000_000, Some(5_100_000_000)),
            "loading the model takes about 2.2 GB of memory, 5.1 GB are free"
        );
        assert_eq!(said(2_240_000_000, None), "loading the model takes about 2.2 GB of memory");
    }

    #[test]
    fn layers_cost_by_precision_and_the_largest_tensor_passes() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("model.safetensors");
        let tensor = |rows: usize| Tensor::zeros((rows, 10), DType::F16, &Device::Cpu).unwrap();
        let tensors = [("model.embed_tokens.weight", tensor(100)), ("layer.weight", tensor(50))];
        candle_core::safetensors::save(&tensors.into_iter().collect(), &path).unwrap();
        let mut size = Size::default();
        add(&path, &mut size);
        assert_eq!(size, Size { largest: 1000, values: 500, embeddings: 1000 });
        let on_the_way = 16 * 1000;
        assert_eq!(size.needed(&Placement::default()), on_the_way + 4 * 2500);
        let [int8, bf16] = [Precision::Int8, Precision::Bf16]
            .map(|precision| Placement::new(Device::Cpu, precision).unwrap());
        assert_eq!(size.needed(&int8), on_the_way + 2500);
        assert_eq!(size.needed(&bf16), on_the_way + 2 * 2500);
        check(&[path.clone(), folder.path().join("missing")], &int8).unwrap();
        std::fs::write(&path, [255; 9]).unwrap();
        check(&[path], &int8).unwrap();
    }
}
