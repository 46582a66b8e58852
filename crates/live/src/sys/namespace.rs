//! Network namespaces by name, and a user namespace for those who are not root.

use super::{check, process};
use anyhow::{Context, Result, bail};
use rustix::fd::AsFd;
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use std::ffi::CStr;
use std::fs;
use std::os::unix::fs::MetadataExt;

/// Where iproute2 keeps the names of network namespaces.
pub const DIRECTORY: &str = "/run/netns";

/// Moves the calling thread into a named network namespace. Processes and sockets it then makes
/// belong there.
///
/// # Errors
/// If there is no such namespace or the system refuses.
pub fn enter(name: &str) -> Result<()> {
    let attempt = || format!("enter the network namespace {name}");
    let file = fs::File::open(format!("{DIRECTORY}/{name}")).with_context(attempt)?;
    move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network)).with_context(attempt)
}

/// Runs something in a named network namespace, on a thread of its own.
///
/// # Errors
/// If the namespace cannot be entered, or what `work` says.
///
/// # Panics
/// If `work` does.
pub fn within<T: Send>(name: &str, work: impl FnOnce() -> Result<T> + Send) -> Result<T> {
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            enter(name)?;
            work()
        });
        match thread.join() {
            Ok(result) => result,
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}

/// The processes with a thread in a named network namespace.
///
/// # Errors
/// If there is no such namespace.
pub fn processes(name: &str) -> Result<Vec<u32>> {
    let attempt = || format!("look at the network namespace {name}");
    let wanted = fs::metadata(format!("{DIRECTORY}/{name}")).with_context(attempt)?;
    let is_here = |thread: &fs::DirEntry| {
        let own = fs::metadata(thread.path().join("ns/net"));
        own.is_ok_and(|own| (own.dev(), own.ino()) == (wanted.dev(), wanted.ino()))
    };
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").context("list the processes")?.flatten() {
        let Ok(process) = entry.file_name().to_string_lossy().parse() else { continue };
        // It may end while it is looked at.
        let Ok(threads) = fs::read_dir(entry.path().join("task")) else { continue };
        if threads.flatten().any(|thread| is_here(&thread)) {
            found.push(process);
        }
    }
    Ok(found)
}

/// Makes the process root of a user namespace of its own, with a network namespace and a `/run` of
/// its own, so that the lab runs as it would for root. Nothing to do for root.
///
/// # Errors
/// If the process has more than one thread, or the system does not allow user namespaces: the
/// message then names the setting.
pub fn become_root() -> Result<()> {
    if process::is_root() {
        return Ok(());
    }
    let threads = fs::read_dir("/proc/self/task").context("count the threads")?.count();
    if threads != 1 {
        bail!("make a user namespace: the process has {threads} threads, it may have one only");
    }
    let user = rustix::process::getuid().as_raw();
    let group = rustix::process::getgid().as_raw();
    let flags = libc::CLONE_NEWUSER | libc::CLONE_NEWNET | libc::CLONE_NEWNS;
    // SAFETY: no pointers; the process has one thread.
    let result = unsafe { libc::unshare(flags) };
    check(result, || format!("make a user namespace ({})", hint()))?;
    fs::write("/proc/self/setgroups", "deny").context("give up supplementary groups")?;
    // Where AppArmor restricts user namespaces, unshare succeeds and this is what fails.
    fs::write("/proc/self/uid_map", format!("0 {user} 1"))
        .with_context(|| format!("become root of the user namespace ({})", hint()))?;
    fs::write("/proc/self/gid_map", format!("0 {group} 1")).context("map the group")?;
    mount(None, c"/", None, libc::MS_REC | libc::MS_PRIVATE)
        .context("keep mounts to the namespace")?;
    mount(Some(c"tmpfs"), c"/run", Some(c"tmpfs"), 0).context("mount a /run of our own")
}

/// The setting that forbids user namespaces to ordinary users here, if one is known.
pub fn restriction() -> Option<&'static str> {
    SETTINGS.into_iter().find_map(|(file, forbidding, name)| {
        let value = fs::read_to_string(file).ok()?;
        (value.trim() == forbidding).then_some(name)
    })
}

fn hint() -> String {
    match restriction() {
        Some(setting) => format!("{setting} forbids it: run with sudo, or change it"),
        None => "run with sudo where user namespaces are not allowed".to_owned(),
    }
}

fn mount(
    source: Option<&CStr>,
    target: &CStr,
    kind: Option<&CStr>,
    flags: libc::c_ulong,
) -> Result<()> {
    let pointer = |text: Option<&CStr>| text.map_or(std::ptr::null(), CStr::as_ptr);
    // SAFETY: the pointers are null where mount(2) allows it, and end in NUL otherwise.
    let result = unsafe {
        libc::mount(pointer(source), target.as_ptr(), pointer(kind), flags, std::ptr::null())
    };
    check(result, || format!("mount on {}", target.to_string_lossy()))?;
    Ok(())
}

/// File, the value that forbids, the setting's name.
const SETTINGS: [(&str, &str, &str); 3] = [
    (
        "/proc/sys/kernel/apparmor_restrict_unprivileged_userns",
        "1",
        "AppArmor (kernel.apparmor_restrict_unprivileged_userns = 1)",
    ),
    ("/proc/sys/kernel/unprivileged_userns_clone", "0", "kernel.unprivileged_userns_clone = 0"),
    ("/proc/sys/user/max_user_namespaces", "0", "user.max_user_namespaces = 0"),
];
