//! Asks the kernel, once, what it offers for a sandbox.

use std::sync::OnceLock;

use crate::Support;
use crate::system;

/// What this system offers for a sandbox. The kernel is asked once.
pub fn support() -> Support {
    static SUPPORT: OnceLock<Support> = OnceLock::new();
    *SUPPORT.get_or_init(system::support)
}
