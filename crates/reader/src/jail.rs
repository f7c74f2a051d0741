//! The rights that a reader gives up before it sees a file: it opens nothing but the models, reaches nobody, starts nothing, and has limits on memory and time.
//! Not every system can forbid all of that; the limits hold everywhere.

use std::io;

use domain::reading::Models;
use rustix::process::{Resource, Rlimit, getrlimit, nice, setrlimit};

/// The most memory of a reader of text, and of one that recognises letters or speech.
const TEXT_BYTES: u64 = 1 << 30;
const MODELS_BYTES: u64 = 4 << 30;
/// The most processor time, in seconds.
const TEXT_SECS: u64 = 300;
const MODELS_SECS: u64 = 6 * 3_600;

/// Gives up what reading does not need.
pub(crate) fn enter(models: &Models) -> io::Result<()> {
    let has_models = models.onnxruntime.is_some();
    let (bytes, secs) = if has_models { (MODELS_BYTES, MODELS_SECS) } else { (TEXT_BYTES, TEXT_SECS) };
    for (resource, most) in [(Resource::As, bytes), (Resource::Fsize, 0), (Resource::Nofile, 64), (Resource::Core, 0)] {
        limit(resource, most, most)?;
    }
    // The soft limit tells, the hard one kills: so a file that takes too long is known by its signal.
    limit(Resource::Cpu, secs, secs + 5)?;
    let _ = nice(if has_models { 19 } else { 10 }); // of no matter where it is not allowed
    system::enter(models)
}

/// Lowers a limit; one that is lower already stays.
fn limit(resource: Resource, soft: u64, hard: u64) -> io::Result<()> {
    let held = getrlimit(resource);
    let lowest = |held: Option<u64>, most: u64| Some(held.map_or(most, |held| held.min(most)));
    Ok(setrlimit(resource, Rlimit { current: lowest(held.current, soft), maximum: lowest(held.maximum, hard) })?)
}

#[cfg(target_os = "linux")]
mod system {
    use std::collections::BTreeMap;
    use std::io;
    use std::path::Path;

    use domain::reading::Models;
    use landlock::{
        ABI, Access as _, AccessFs, CompatLevel, Compatible as _, PathBeneath, PathFd, Ruleset, RulesetAttr as _,
        RulesetCreatedAttr as _,
    };
    use seccompiler::{
        BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
        TargetArch,
    };

    /// Where libraries are that ONNX Runtime needs, and what it asks about the processor.
    const LIBRARIES: [&str; 7] =
        ["/lib", "/lib64", "/usr/lib", "/etc/ld.so.cache", "/proc/self", "/proc/cpuinfo", "/sys/devices/system/cpu"];

    pub fn enter(models: &Models) -> io::Result<()> {
        open_only(models)?;
        reach_nobody()
    }

    /// Files can be opened below a few folders, and only for reading. A kernel without Landlock forbids nothing.
    fn open_only(models: &Models) -> io::Result<()> {
        let abi = ABI::V3;
        let read = AccessFs::from_read(abi);
        let library = models.onnxruntime.as_deref().and_then(Path::parent);
        let folders = [library, models.ocr.as_deref(), models.speech.as_deref()];
        let needed = folders.into_iter().flatten();
        let system = LIBRARIES.iter().map(Path::new).filter(|_| models.onnxruntime.is_some());
        let ruleset = Ruleset::default()
            .set_compatibility(CompatLevel::BestEffort)
            .handle_access(AccessFs::from_all(abi))
            .and_then(Ruleset::create)
            .map_err(io::Error::other)?;
        let rules = needed.chain(system).filter_map(|path| PathFd::new(path).ok());
        let opened = rules.map(|path| Ok::<_, landlock::RulesetError>(PathBeneath::new(path, read)));
        ruleset.add_rules(opened).and_then(|ruleset| ruleset.restrict_self()).map_err(io::Error::other)?;
        Ok(())
    }

    /// Sockets, other programs and other processes' memory are refused.
    fn reach_nobody() -> io::Result<()> {
        let mut refused: BTreeMap<i64, Vec<SeccompRule>> = REFUSED.iter().map(|call| (*call, Vec::new())).collect();
        for call in OWN_ALONE {
            let is_not = |id: u64| SeccompCondition::new(0, SeccompCmpArgLen::Dword, SeccompCmpOp::Ne, id);
            let others = [is_not(u64::from(std::process::id())), is_not(0)].into_iter().collect::<Result<Vec<_>, _>>();
            let rule = others.and_then(SeccompRule::new).map_err(io::Error::other)?;
            refused.insert(call, vec![rule]);
        }
        let arch = TargetArch::try_from(std::env::consts::ARCH).map_err(io::Error::other)?;
        let eperm = u32::try_from(rustix::io::Errno::PERM.raw_os_error()).unwrap_or(1);
        let filter = SeccompFilter::new(refused, SeccompAction::Allow, SeccompAction::Errno(eperm), arch);
        let program: BpfProgram = filter.and_then(TryInto::try_into).map_err(io::Error::other)?;
        seccompiler::apply_filter(&program).map_err(io::Error::other)
    }

    const REFUSED: [i64; 35] = [
        libc::SYS_socket,
        libc::SYS_socketpair,
        libc::SYS_connect,
        libc::SYS_bind,
        libc::SYS_listen,
        libc::SYS_accept4,
        libc::SYS_sendto,
        libc::SYS_sendmsg,
        libc::SYS_execve,
        libc::SYS_execveat,
        libc::SYS_kill,
        libc::SYS_tkill,
        libc::SYS_rt_sigqueueinfo,
        libc::SYS_rt_tgsigqueueinfo,
        libc::SYS_pidfd_send_signal,
        libc::SYS_ptrace,
        libc::SYS_process_vm_readv,
        libc::SYS_process_vm_writev,
        libc::SYS_mount,
        libc::SYS_bpf,
        libc::SYS_io_uring_setup,
        libc::SYS_pidfd_getfd,
        libc::SYS_setpriority,
        libc::SYS_fchmod,
        libc::SYS_fchmodat,
        libc::SYS_fchown,
        libc::SYS_fchownat,
        libc::SYS_utimensat,
        libc::SYS_setxattr,
        libc::SYS_lsetxattr,
        libc::SYS_fsetxattr,
        libc::SYS_removexattr,
        libc::SYS_lremovexattr,
        libc::SYS_fremovexattr,
        libc::SYS_unshare,
    ];

    /// Calls that are refused for other processes: a signal to oneself is how a program aborts, and libraries ask for their own limits.
    const OWN_ALONE: [i64; 2] = [libc::SYS_tgkill, libc::SYS_prlimit64];
}

#[cfg(not(target_os = "linux"))]
mod system {
    use domain::reading::Models;

    pub fn enter(_: &Models) -> std::io::Result<()> {
        Ok(())
    }
}
