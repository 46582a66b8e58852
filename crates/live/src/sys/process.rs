//! What a process may ask for itself: a real-time priority, precise timers, not to outlive its
//! parent.

use super::check;
use anyhow::Result;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// Puts the calling thread under SCHED_FIFO; priority is what makes a timer punctual (measured:
/// 99 % within 61 us against 2 ms).
///
/// # Errors
/// If the system refuses: CAP_SYS_NICE is needed, which no user namespace gives.
pub fn real_time() -> Result<()> {
    let parameter = libc::sched_param { sched_priority: PRIORITY };
    // SAFETY: `parameter` outlives the call; 0 is the calling thread.
    let result = unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &parameter) };
    check(result, || "run under SCHED_FIFO".to_owned())?;
    Ok(())
}

/// Lets the calling thread's timers fire as close to their time as the hardware allows.
///
/// # Errors
/// Never on a kernel that has timerfd.
pub fn precise_timers() -> Result<()> {
    // SAFETY: no pointers.
    let result = unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1, 0, 0, 0) };
    check(result, || "set the timer slack to 1 ns".to_owned())?;
    Ok(())
}

/// Has the allocator keep what is freed, up to 64 MB, instead of giving it back to the system and
/// faulting it in again with the next super-packets.
pub fn keep_freed_memory() {
    #[cfg(target_env = "gnu")]
    for (parameter, bytes) in
        [(libc::M_TRIM_THRESHOLD, 64 << 20), (libc::M_MMAP_THRESHOLD, 1 << 20)]
    {
        // SAFETY: no pointers. Failure only costs speed.
        unsafe { libc::mallopt(parameter, bytes) };
    }
}

/// Makes a child die with the thread that starts it, even if that is killed.
pub fn dies_with_parent(command: &mut Command) -> &mut Command {
    let parent = std::process::id();
    let prepare = move || {
        // SAFETY: no pointers.
        let result = unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL, 0, 0, 0) };
        // SAFETY: no arguments.
        let orphan = unsafe { libc::getppid() } as u32 != parent;
        match result {
            0 if orphan => Err(std::io::ErrorKind::BrokenPipe.into()),
            0 => Ok(()),
            _ => Err(std::io::Error::last_os_error()),
        }
    };
    // SAFETY: between fork and exec the closure makes two system calls and touches no lock and no
    // memory but its own.
    unsafe { command.pre_exec(prepare) }
}

/// True if the process has all rights over the network of its user namespace.
pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Above ordinary threads, below the kernel's own.
const PRIORITY: libc::c_int = 10;
