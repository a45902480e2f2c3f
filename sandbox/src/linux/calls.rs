//! Seccomp: which system calls the program may make.
//!
//! Two filters. The first lists what a decoder needs and answers ENOSYS to all else, as an older kernel would: a C
//! library then falls back on calls that it used before, such as `clone` for `clone3`, whose flags no filter can see.
//! The second answers EPERM to calls whose refusal is worth a clear message. Where both refuse, the kernel gives the
//! answer of the filter that was installed last.

use std::collections::BTreeMap;
use std::env::consts::ARCH;

use seccompiler::{
    BackendError, BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch,
};

use super::refused;
use crate::SandboxError;

mod allowed;

type Rules = BTreeMap<i64, Vec<SeccompRule>>;

const CLONE_THREAD: u64 = libc::CLONE_THREAD as u64;
/// New namespaces of mounts, time, control groups, host names, messages, users, processes and networks.
const CLONE_NAMESPACES: u64 = 0x7e02_0080;
const F_SETOWN: u64 = 8;
const F_SETSIG: u64 = 10;
const F_SETOWN_EX: u64 = 15;
const F_SETLEASE: u64 = 1024;
const PR_SET_PDEATHSIG: u64 = 1;
const PR_SET_MM: u64 = 35;

/// Calls that reach the network, another process or the system as a whole.
const REFUSED: &[i64] = &[
    libc::SYS_socket,
    libc::SYS_socketpair,
    libc::SYS_connect,
    libc::SYS_bind,
    libc::SYS_listen,
    libc::SYS_accept,
    libc::SYS_accept4,
    libc::SYS_sendto,
    libc::SYS_sendmsg,
    libc::SYS_sendmmsg,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_fork,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_vfork,
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_pidfd_open,
    libc::SYS_pidfd_getfd,
    libc::SYS_pidfd_send_signal,
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_unshare,
    libc::SYS_setns,
    libc::SYS_chroot,
    libc::SYS_pivot_root,
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_io_uring_setup,
    libc::SYS_userfaultfd,
    libc::SYS_kexec_load,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_fchmod,
    libc::SYS_fchmodat,
    libc::SYS_fchown,
    libc::SYS_fchownat,
    libc::SYS_utimensat,
    libc::SYS_linkat,
    libc::SYS_symlinkat,
    libc::SYS_setrlimit,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_chmod,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_chown,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_lchown,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_link,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_symlink,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_utime,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_utimes,
];

/// The two filters, ready to install: what follows may leave no memory to compile them.
pub(super) struct Filters {
    allowed: BpfProgram,
    refused: BpfProgram,
}

impl Filters {
    /// For the process `own`, which keeps its id when it becomes the program.
    ///
    /// # Errors
    /// The lists make no filter on this machine.
    pub(super) fn compile(own: u32) -> Result<Self, SandboxError> {
        let unknown = SeccompAction::Errno(libc::ENOSYS.unsigned_abs());
        let denied = SeccompAction::Errno(libc::EPERM.unsigned_abs());
        let compile = || {
            Ok(Self {
                allowed: program(allowed_rules(u64::from(own))?, unknown, SeccompAction::Allow)?,
                refused: program(refused_rules(u64::from(own))?, SeccompAction::Allow, denied)?,
            })
        };
        compile().map_err(|error: BackendError| refused("compile the filter of system calls", error))
    }

    /// Restricts this thread, and the program that it becomes, for good.
    ///
    /// # Errors
    /// The kernel refuses the filters.
    pub(super) fn install(&self) -> Result<(), SandboxError> {
        for filter in [&self.allowed, &self.refused] {
            seccompiler::apply_filter(filter).map_err(|error| refused("filter system calls", error))?;
        }
        Ok(())
    }
}

fn program(
    rules: Rules,
    otherwise: SeccompAction,
    matched: SeccompAction,
) -> Result<BpfProgram, BackendError> {
    let machine = TargetArch::try_from(ARCH)?;
    SeccompFilter::new(rules, otherwise, matched, machine)?.try_into()
}

fn allowed_rules(own: u64) -> Result<Rules, BackendError> {
    let mut rules: Rules = allowed::CALLS.iter().map(|call| (*call, Vec::new())).collect();
    // Threads, and no other kind of child.
    let thread = SeccompCmpOp::MaskedEq(CLONE_THREAD | CLONE_NAMESPACES);
    rules.insert(libc::SYS_clone, vec![when(0, thread, CLONE_THREAD)?]);
    // Signals to itself, as `abort` sends one.
    rules.insert(libc::SYS_kill, vec![when(0, SeccompCmpOp::Eq, own)?]);
    rules.insert(libc::SYS_tgkill, vec![when(0, SeccompCmpOp::Eq, own)?]);
    // Reading a limit: root could raise them, and set those of others.
    rules.insert(libc::SYS_prlimit64, vec![when(2, SeccompCmpOp::Eq, 0)?]);
    // Standard streams may be a terminal, and these type on it.
    rules.insert(libc::SYS_ioctl, vec![none_of(1, &[libc::TIOCSTI, libc::TIOCLINUX])?]);
    // A file can be told to send a signal of choice to another process, and to keep others waiting.
    rules.insert(libc::SYS_fcntl, vec![none_of(1, &[F_SETOWN, F_SETSIG, F_SETOWN_EX, F_SETLEASE])?]);
    // It is not to outlive its parent, nor to change what it looks like from outside.
    rules.insert(libc::SYS_prctl, vec![none_of(0, &[PR_SET_PDEATHSIG, PR_SET_MM])?]);
    // Installs the second filter, which refuses it.
    rules.insert(libc::SYS_seccomp, Vec::new());
    Ok(rules)
}

fn refused_rules(own: u64) -> Result<Rules, BackendError> {
    let mut rules: Rules = REFUSED.iter().map(|call| (*call, Vec::new())).collect();
    rules.insert(libc::SYS_seccomp, Vec::new());
    rules.insert(libc::SYS_clone, vec![when(0, SeccompCmpOp::MaskedEq(CLONE_THREAD), 0)?]);
    rules.insert(libc::SYS_kill, vec![when(0, SeccompCmpOp::Ne, own)?]);
    rules.insert(libc::SYS_tgkill, vec![when(0, SeccompCmpOp::Ne, own)?]);
    rules.insert(libc::SYS_prlimit64, vec![when(2, SeccompCmpOp::Ne, 0)?]);
    Ok(rules)
}

fn when(argument: u8, operator: SeccompCmpOp, value: u64) -> Result<SeccompRule, BackendError> {
    SeccompRule::new(vec![condition(argument, operator, value)?])
}

fn none_of(argument: u8, values: &[u64]) -> Result<SeccompRule, BackendError> {
    let conditions = values.iter().map(|value| condition(argument, SeccompCmpOp::Ne, *value));
    SeccompRule::new(conditions.collect::<Result<_, _>>()?)
}

/// Process ids, requests and flags are 32 bits wide, and the kernel ignores what stands above; a pointer is not.
fn condition(argument: u8, operator: SeccompCmpOp, value: u64) -> Result<SeccompCondition, BackendError> {
    let is_pointer = argument == 2;
    let width = if is_pointer { SeccompCmpArgLen::Qword } else { SeccompCmpArgLen::Dword };
    SeccompCondition::new(argument, width, operator, value)
}
