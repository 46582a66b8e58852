//! Device ioctls: ethtool's switches for what a device does beyond passing frames on.
//!
//! With everything off, frames leave a host at most one MTU long and with complete checksums,
//! whatever the host's TCP would have left to the device.

use super::check;
use anyhow::{Context, Result, ensure};
use rustix::fd::AsRawFd;
use rustix::net::{AddressFamily, SocketType};

/// Switches off transmit checksums, TSO, GSO and GRO of a device of the calling thread's network
/// namespace.
///
/// # Errors
/// If the device refuses one of them.
pub fn switch_off(interface: &str) -> Result<()> {
    for (name, command) in SWITCHES {
        let attempt = || format!("switch {name} off on {interface}");
        let mut request = request(interface).with_context(attempt)?;
        let mut value = EthtoolValue { command, data: 0 };
        request.ifr_ifru.ifru_data = std::ptr::from_mut(&mut value).cast();
        device_ioctl(SIOCETHTOOL, &mut request).with_context(attempt)?;
    }
    Ok(())
}

/// What a device, or the kernel on its behalf, does with frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Features {
    /// Joins frames of one flow that arrive, in a way that can be undone.
    pub generic_receive: bool,
    /// The same in the device, which forgets what the frames were.
    pub large_receive: bool,
    /// Takes super-packets and cuts them into segments.
    pub segmentation: bool,
}

/// What a device of the calling thread's network namespace does now.
///
/// # Errors
/// If the device does not exist, or does not say.
pub fn features(interface: &str) -> Result<Features> {
    let get = |command| -> Result<u32> {
        let attempt = || format!("ask {interface} for its offloads");
        let mut request = request(interface).with_context(attempt)?;
        let mut value = EthtoolValue { command, data: 0 };
        request.ifr_ifru.ifru_data = std::ptr::from_mut(&mut value).cast();
        device_ioctl(SIOCETHTOOL, &mut request).with_context(attempt)?;
        Ok(value.data)
    };
    Ok(Features {
        generic_receive: get(GET_GRO)? != 0,
        large_receive: get(GET_FLAGS)? & FLAG_LRO != 0,
        segmentation: get(GET_TSO)? != 0,
    })
}

/// An ioctl's argument for a device.
pub(super) fn request(interface: &str) -> Result<libc::ifreq> {
    // SAFETY: all zero is a valid ifreq.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    let room = request.ifr_name.len() - 1;
    ensure!(interface.len() <= room, "a device name has at most {room} bytes: {interface}");
    for (to, from) in request.ifr_name.iter_mut().zip(interface.bytes()) {
        *to = from as libc::c_char;
    }
    Ok(request)
}

/// An ioctl on a device of the calling thread's network namespace.
pub(super) fn device_ioctl(code: libc::c_ulong, request: &mut libc::ifreq) -> Result<()> {
    let socket = rustix::net::socket(AddressFamily::INET, SocketType::DGRAM, None)
        .context("open a socket for device controls")?;
    // SAFETY: `request` is the argument type of device ioctls, and whatever it points to outlives
    // the call (a local of the caller).
    let result = unsafe { libc::ioctl(socket.as_raw_fd(), code, request) };
    check(result, || "control the device".to_owned())?;
    Ok(())
}

/// struct ethtool_value of linux/ethtool.h.
#[repr(C)]
struct EthtoolValue {
    command: u32,
    data: u32,
}

/// linux/sockios.h.
const SIOCETHTOOL: libc::c_ulong = 0x8946;
/// linux/ethtool.h: ETHTOOL_GGRO, ETHTOOL_GFLAGS, ETH_FLAG_LRO, ETHTOOL_GTSO.
const GET_GRO: u32 = 0x2b;
const GET_FLAGS: u32 = 0x25;
const FLAG_LRO: u32 = 1 << 15;
const GET_TSO: u32 = 0x1e;
/// linux/ethtool.h: ETHTOOL_STXCSUM, ETHTOOL_STSO, ETHTOOL_SGSO, ETHTOOL_SGRO.
const SWITCHES: [(&str, u32); 4] = [
    ("transmit segmentation", 0x1f),
    ("generic segmentation", 0x24),
    ("generic receive offload", 0x2c),
    ("transmit checksums", 0x17),
];
