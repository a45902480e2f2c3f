//! Opens devices: the CPU, and each GPU once.

use std::collections::BTreeMap;
use std::sync::{LazyLock, Mutex, OnceLock, PoisonError};

use candle_core::Device;
use serde::Serialize;

use super::choice::{DeviceChoice, name};
use super::placement::Placement;
use super::precision::Precision;

/// A device that models can run on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct UsableDevice {
    /// The name, as [`DeviceChoice`] writes it.
    pub name: String,
    /// The precisions that the device supports.
    pub precisions: Vec<Precision>,
}

/// All usable devices: the GPUs, then the CPU.
pub fn usable_devices() -> Vec<UsableDevice> {
    let gpus = (0..).map_while(|number| gpu(number).ok());
    let usable = |device| UsableDevice { name: name(&device), precisions: Placement::precisions(&device) };
    gpus.chain([Device::Cpu]).map(usable).collect()
}

/// Threads that the layers of one encoder share on the CPU: `RAYON_NUM_THREADS`, or the number of cores.
pub fn threads() -> usize {
    candle_core::utils::get_num_threads()
}

/// The device of [`DeviceChoice::Auto`], opened once.
pub fn default_device() -> &'static Device {
    static DEVICE: OnceLock<Device> = OnceLock::new();
    DEVICE.get_or_init(|| open(&[DeviceChoice::Auto]).0)
}

/// The first usable device of these choices, and the others in order, each once. Logs and skips unusable ones.
pub(crate) fn open(choices: &[DeviceChoice]) -> (Device, Vec<Device>) {
    let (found, missing) = found(choices, gpu);
    for (choice, why) in missing {
        match choice {
            DeviceChoice::Auto if cfg!(feature = "cuda") => {
                tracing::info!(why, "no GPU can be used, models run on the CPU");
            }
            DeviceChoice::Auto | DeviceChoice::Cpu => {}
            DeviceChoice::Cuda(_) if found.iter().any(Option::is_none) => {
                tracing::warn!(device = %choice, why, "the GPU can't be used, models run on the CPU");
            }
            DeviceChoice::Cuda(_) => {
                tracing::warn!(device = %choice, why, "the GPU can't be used, the others are");
            }
        }
    }
    let mut devices = found.into_iter().map(|gpu| gpu.unwrap_or(Device::Cpu));
    (devices.next().unwrap_or(Device::Cpu), devices.collect())
}

/// An unusable choice and the reason.
type Missing = (DeviceChoice, String);

/// The usable choices in order, each once (`None` is the CPU), and the unusable ones. If none is usable, the CPU.
fn found<Gpu>(
    choices: &[DeviceChoice],
    mut gpu: impl FnMut(usize) -> Result<Gpu, String>,
) -> (Vec<Option<Gpu>>, Vec<Missing>) {
    let (mut found, mut missing) = (Vec::<(Option<usize>, Option<Gpu>)>::new(), Vec::new());
    for choice in choices {
        let number = match choice {
            DeviceChoice::Auto => Some(0),
            DeviceChoice::Cpu => None,
            DeviceChoice::Cuda(number) => Some(*number),
        };
        if found.iter().any(|(known, _)| *known == number) {
            continue;
        }
        match number.map(&mut gpu).transpose() {
            Ok(gpu) => found.push((number, gpu)),
            Err(why) => missing.push((*choice, why)),
        }
    }
    if found.is_empty() {
        found.push((None, None));
    }
    (found.into_iter().map(|(_, gpu)| gpu).collect(), missing)
}

/// Each GPU is opened once: every further open would compile the kernels again and take more memory.
type Gpus = Mutex<BTreeMap<usize, Result<Device, String>>>;

/// The GPU with this number, or the reason why it is unusable.
fn gpu(number: usize) -> Result<Device, String> {
    static GPUS: LazyLock<Gpus> = LazyLock::new(Gpus::default);
    let mut gpus = GPUS.lock().unwrap_or_else(PoisonError::into_inner);
    gpus.entry(number).or_insert_with(|| new_gpu(number)).clone()
}

#[cfg(feature = "cuda")]
fn new_gpu(number: usize) -> Result<Device, String> {
    // candle's default is one stream per thread, but models load on one thread and run on another.
    Device::new_cuda_with_stream(number).map_err(|error| match error {
        candle_core::Error::WithBacktrace { inner, .. } => inner.to_string(),
        error => error.to_string(),
    })
}

#[cfg(not(feature = "cuda"))]
fn new_gpu(_: usize) -> Result<Device, String> {
    Err("this binary was built without CUDA: build it with scripts/build-cuda.sh".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks the used and the missing devices on a machine with two GPUs.
    #[track_caller]
    fn check(choices: &str, used: &[Option<usize>], missing: &[&str]) {
        let choices: Vec<DeviceChoice> = choices.split(',').map(|it| it.parse().unwrap()).collect();
        let gpu = |number| if number < 2 { Ok(number) } else { Err("no such GPU".to_owned()) };
        let (got, told) = found(&choices, gpu);
        assert_eq!(got, used, "{choices:?}");
        let told: Vec<String> = told.iter().map(|(choice, why)| format!("{choice}: {why}")).collect();
        assert_eq!(told, missing, "{choices:?}");
    }

    #[test]
    fn what_is_there_is_used_and_else_the_cpu() {
        check("auto", &[Some(0)], &[]);
        check("cpu", &[None], &[]);
        check("cuda", &[Some(0)], &[]);
        check("cuda:1", &[Some(1)], &[]);
        check("cuda:7", &[None], &["cuda:7: no such GPU"]);
        check("cuda:0,cuda:1", &[Some(0), Some(1)], &[]);
        check("cuda:1,cuda:7", &[Some(1)], &["cuda:7: no such GPU"]);
        check("cuda:0,cuda,auto", &[Some(0)], &[]);
        check("cuda:1,cpu", &[Some(1), None], &[]);
    }

    #[test]
    fn other_names_are_no_devices() {
        for name in ["", "gpu", "cuda:", "cuda:-1", "cuda:x", "CPU", "cpu:0"] {
            let error = name.parse::<DeviceChoice>().unwrap_err();
            assert!(error.contains("auto, cpu, cuda or cuda:N"), "{error}");
        }
    }

    #[test]
    #[cfg(not(feature = "cuda"))]
    fn a_binary_without_cuda_runs_on_the_cpu_and_says_why() {
        for choices in [&[DeviceChoice::Cuda(0)][..], &[DeviceChoice::Cuda(0), DeviceChoice::Cuda(1)], &[]] {
            let (first, others) = open(choices);
            assert_eq!((name(&first).as_str(), others.len()), ("cpu", 0), "{choices:?}");
        }
        let precisions = vec![Precision::F32, Precision::Int8, Precision::Bf16];
        assert_eq!(usable_devices(), [UsableDevice { name: "cpu".to_owned(), precisions }]);
        assert!(gpu(0).unwrap_err().contains("built without CUDA"));
    }
}
