//! Names of devices in options and answers.

use std::fmt;
use std::str::FromStr;

use candle_core::{Device, DeviceLocation};

/// The device that a user asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DeviceChoice {
    /// The first usable GPU, else the CPU.
    #[default]
    Auto,
    /// The CPU.
    Cpu,
    /// The NVIDIA GPU with this number, from 0. If it is unusable, the CPU with a warning.
    Cuda(usize),
}

impl FromStr for DeviceChoice {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let number = name.strip_prefix("cuda:").and_then(|number| number.parse().ok());
        match (name, number) {
            ("auto", _) => Ok(DeviceChoice::Auto),
            ("cpu", _) => Ok(DeviceChoice::Cpu),
            ("cuda", _) => Ok(DeviceChoice::Cuda(0)),
            (_, Some(number)) => Ok(DeviceChoice::Cuda(number)),
            _ => Err(format!("{name:?} is no device: give auto, cpu, cuda or cuda:N")),
        }
    }
}

impl fmt::Display for DeviceChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DeviceChoice::Auto => f.write_str("auto"),
            DeviceChoice::Cpu => f.write_str("cpu"),
            DeviceChoice::Cuda(number) => write!(f, "cuda:{number}"),
        }
    }
}

/// The name of an open device: `cpu` or `cuda:N`.
pub(crate) fn name(device: &Device) -> String {
    match device.location() {
        DeviceLocation::Cpu => DeviceChoice::Cpu.to_string(),
        DeviceLocation::Cuda { gpu_id } => DeviceChoice::Cuda(gpu_id).to_string(),
        DeviceLocation::Metal { gpu_id } => format!("metal:{gpu_id}"),
    }
}
