//! Socket options as their bytes, for those that `rustix` has no name for, and the urgent mark.

use super::check;
use anyhow::Result;
use rustix::fd::{AsFd, AsRawFd};

/// setsockopt(2) with a value as its bytes. For options whose value holds no pointers.
///
/// # Errors
/// Whatever the system says: ENOPROTOOPT where the kernel was built without it.
pub fn set(socket: &impl AsFd, level: i32, option: i32, value: &[u8]) -> Result<()> {
    // SAFETY: pointer and length describe `value`, which outlives the call.
    let result = unsafe {
        libc::setsockopt(
            socket.as_fd().as_raw_fd(),
            level,
            option,
            value.as_ptr().cast(),
            value.len() as libc::socklen_t,
        )
    };
    check(result, || format!("set the socket option {option} of level {level}"))?;
    Ok(())
}

/// getsockopt(2): the bytes of a value of at most `room` bytes, which may depend on those of
/// `asked`.
///
/// # Errors
/// Whatever the system says.
pub fn get(
    socket: &impl AsFd,
    level: i32,
    option: i32,
    (asked, room): (&[u8], usize),
) -> Result<Vec<u8>> {
    let mut value = asked.to_vec();
    value.resize(room, 0);
    let mut length = room as libc::socklen_t;
    // SAFETY: pointer and length describe `value`; both outlive the call.
    let result = unsafe {
        libc::getsockopt(
            socket.as_fd().as_raw_fd(),
            level,
            option,
            value.as_mut_ptr().cast(),
            &mut length,
        )
    };
    check(result, || format!("read the socket option {option} of level {level}"))?;
    value.truncate(length as usize);
    Ok(value)
}

/// True if the next byte to read is the one that the peer marked as urgent, sockatmark(3) by its
/// ioctl.
///
/// # Errors
/// If it is not a TCP socket.
pub fn at_mark(socket: &impl AsFd) -> Result<bool> {
    let mut answer: libc::c_int = 0;
    // SAFETY: SIOCATMARK writes one int, which outlives the call.
    let result = unsafe { libc::ioctl(socket.as_fd().as_raw_fd(), SIOCATMARK, &mut answer) };
    check(result, || "ask for the urgent mark".to_owned())?;
    Ok(answer != 0)
}

/// asm-generic/sockios.h; not in every libc.
const SIOCATMARK: libc::c_ulong = 0x8905;
