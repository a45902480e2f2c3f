//! The devices that models run on, and their precisions.

mod choice;
mod open;
mod placement;
mod precision;

pub use choice::DeviceChoice;
pub(crate) use choice::name;
pub(crate) use open::open;
pub use open::{UsableDevice, default_device, threads, usable_devices};
pub use placement::Placement;
pub use precision::{Precision, PrecisionError};
