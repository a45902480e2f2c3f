//! Devices that models run on, and the number formats in which they multiply.

mod choice;
mod open;
mod placement;
mod precision;

pub use choice::DeviceChoice;
pub(crate) use choice::name;
pub use open::{UsableDevice, threads, usable_devices};
pub(crate) use open::{default_device, open};
pub use placement::Placement;
pub use precision::{Precision, PrecisionError};
