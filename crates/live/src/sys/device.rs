//! What one network device is like.

use super::offload::{device_ioctl, request};
use super::packet_socket::{Interface, find};
use anyhow::{Context, Result};

/// What a device is like.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct State {
    /// Which it is: a device that was made anew has another number.
    pub interface: Interface,
    /// True if it is up and has a carrier.
    pub running: bool,
}

/// What the device of this name is like, in the calling thread's network namespace.
///
/// # Errors
/// If there is no such device, or it is not Ethernet.
pub fn state(name: &str) -> Result<State> {
    let interface = find(name)?;
    let mut request = request(name)?;
    device_ioctl(libc::SIOCGIFFLAGS, &mut request)
        .with_context(|| format!("look at the device {name}"))?;
    // SAFETY: SIOCGIFFLAGS filled in the flags.
    let flags = libc::c_int::from(unsafe { request.ifr_ifru.ifru_flags });
    let running = libc::IFF_UP | libc::IFF_RUNNING;
    Ok(State { interface, running: flags & running == running })
}
