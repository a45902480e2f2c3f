//! What this system offers for a sandbox.

use std::fmt;

/// What this system offers for a sandbox. It prints as a sentence for the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Support {
    /// Whether this crate knows the system: Linux on x86-64 or arm64.
    pub known: bool,
    /// The version of the kernel's Landlock interface, from 1. `None`: not built in, off, or hidden by a container.
    pub landlock: Option<u32>,
    /// Whether the kernel filters system calls.
    pub seccomp: bool,
}

impl Support {
    /// Whether programs run in the sandbox: it needs both Landlock and seccomp.
    pub fn is_complete(&self) -> bool {
        self.gap().is_none()
    }

    /// What the system lacks.
    pub(crate) fn gap(&self) -> Option<&'static str> {
        match (self.known, self.landlock, self.seccomp) {
            (false, ..) => Some("the sandbox is not supported on this system"),
            (true, None, _) => Some("this kernel has no Landlock, or the container hides it"),
            (true, _, false) => Some("this kernel has no seccomp"),
            (true, Some(_), true) => None,
        }
    }
}

impl fmt::Display for Support {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.gap() {
            Some(gap) => write!(f, "{gap}: ffmpeg runs without a sandbox"),
            None => write!(f, "Landlock ABI {}, seccomp", self.landlock.unwrap_or_default()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_says_what_is_missing() {
        let all = Support { known: true, landlock: Some(7), seccomp: true };
        assert_eq!(all.to_string(), "Landlock ABI 7, seccomp");
        assert!(all.is_complete());
        for (support, missing) in [
            (Support { known: false, ..all }, "not supported"),
            (Support { landlock: None, ..all }, "no Landlock"),
            (Support { seccomp: false, ..all }, "no seccomp"),
        ] {
            assert!(support.to_string().contains(missing), "{support}");
            assert!(!support.is_complete());
        }
    }
}
