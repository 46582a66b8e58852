//! Ctrl-C and SIGTERM as a flag, and as a descriptor for those who wait in [`super::poll`].
//!
//! What a signal handler writes to, and who installed it, is the only mutable static of this
//! project: a handler has no other way to tell.

use anyhow::{Context, Result};
use rustix::event::{EventfdFlags, eventfd};
use rustix::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

static CAUGHT: AtomicBool = AtomicBool::new(false);
static WAKE: AtomicI32 = AtomicI32::new(-1);
static HANDLERS: Mutex<Weak<Handlers>> = Mutex::new(Weak::new());

/// Catches the signals as long as one of these lives; then what was there before is back.
#[derive(Clone, Debug)]
pub struct Signals(Arc<Handlers>);

#[derive(Debug)]
struct Handlers {
    wake: OwnedFd,
    before: [libc::sigaction; 2],
}

const CAUGHT_SIGNALS: [libc::c_int; 2] = [libc::SIGINT, libc::SIGTERM];

impl Signals {
    /// Begins to catch, or joins those who do.
    ///
    /// # Errors
    /// If the process is out of descriptors.
    pub fn catch() -> Result<Self> {
        let mut handlers = HANDLERS.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(handlers) = handlers.upgrade() {
            return Ok(Signals(handlers));
        }
        let installed = Arc::new(Handlers::install()?);
        *handlers = Arc::downgrade(&installed);
        Ok(Signals(installed))
    }

    /// True once one of the signals came.
    pub fn caught(&self) -> bool {
        CAUGHT.load(Ordering::SeqCst)
    }
}

impl AsFd for Signals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.wake.as_fd()
    }
}

impl Handlers {
    fn install() -> Result<Self> {
        let wake = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)
            .context("make a descriptor for signals")?;
        CAUGHT.store(false, Ordering::SeqCst);
        WAKE.store(wake.as_raw_fd(), Ordering::SeqCst);
        let handler: extern "C" fn(libc::c_int) = on_signal;
        let before = CAUGHT_SIGNALS.map(|signal| {
            // SAFETY: all zero is a valid sigaction: default action, empty mask, no flags.
            let (mut action, mut before): (libc::sigaction, libc::sigaction) =
                unsafe { (std::mem::zeroed(), std::mem::zeroed()) };
            action.sa_sigaction = handler as libc::sighandler_t;
            // SAFETY: both pointers outlive the call; the handler only does what is allowed in one.
            unsafe { libc::sigaction(signal, &action, &mut before) };
            before
        });
        Ok(Handlers { wake, before })
    }
}

impl Drop for Handlers {
    fn drop(&mut self) {
        for (signal, before) in CAUGHT_SIGNALS.into_iter().zip(&self.before) {
            // SAFETY: the pointer outlives the call; `before` is what sigaction(2) had given.
            unsafe { libc::sigaction(signal, before, std::ptr::null_mut()) };
        }
        WAKE.store(-1, Ordering::SeqCst);
    }
}

/// Raises the flag and wakes whoever waits.
extern "C" fn on_signal(_: libc::c_int) {
    CAUGHT.store(true, Ordering::SeqCst);
    let wake = WAKE.load(Ordering::SeqCst);
    if wake >= 0 {
        let one = 1_u64;
        // SAFETY: write(2) is allowed in a handler; the pointer and length describe `one`.
        unsafe { libc::write(wake, std::ptr::from_ref(&one).cast(), size_of::<u64>()) };
    }
}
