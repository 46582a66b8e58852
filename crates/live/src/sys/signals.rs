//! Ctrl-C and SIGTERM as a flag, SIGHUP as another for those who ask for it, and all of them as a
//! descriptor for those who wait in [`super::poll`].
//!
//! What a signal handler writes to, and who installed it, is the only mutable static of this
//! project: a handler has no other way to tell.

use anyhow::{Context, Result};
use rustix::event::{EventfdFlags, eventfd};
use rustix::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

static CAUGHT: AtomicBool = AtomicBool::new(false);
static HUNG_UP: AtomicBool = AtomicBool::new(false);
static WAKE: AtomicI32 = AtomicI32::new(-1);
static HANDLERS: Mutex<Weak<Handlers>> = Mutex::new(Weak::new());

/// Catches the signals as long as one of these lives; then what was there before is back.
#[derive(Clone, Debug)]
pub struct Signals(Arc<Handlers>);

#[derive(Debug)]
struct Handlers {
    wake: OwnedFd,
    before: Vec<(libc::c_int, libc::sigaction)>,
}

const ENDING: &[libc::c_int] = &[libc::SIGINT, libc::SIGTERM];
const ENDING_AND_HANGUP: &[libc::c_int] = &[libc::SIGINT, libc::SIGTERM, libc::SIGHUP];

impl Signals {
    /// Begins to catch, or joins those who do.
    ///
    /// # Errors
    /// If the process is out of descriptors.
    pub fn catch() -> Result<Self> {
        Self::catch_these(ENDING)
    }

    /// The same with SIGHUP, for [`Signals::take_hangup`].
    ///
    /// # Errors
    /// If the process is out of descriptors.
    pub fn catch_with_hangup() -> Result<Self> {
        Self::catch_these(ENDING_AND_HANGUP)
    }

    fn catch_these(signals: &[libc::c_int]) -> Result<Self> {
        let mut handlers = HANDLERS.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(handlers) = handlers.upgrade() {
            return Ok(Signals(handlers));
        }
        let installed = Arc::new(Handlers::install(signals)?);
        *handlers = Arc::downgrade(&installed);
        Ok(Signals(installed))
    }

    /// True once a signal came that asks for the end.
    pub fn caught(&self) -> bool {
        CAUGHT.load(Ordering::SeqCst)
    }

    /// True if SIGHUP came since this was last asked.
    pub fn take_hangup(&self) -> bool {
        // Nothing to read is fine; what comes from here on makes it readable again.
        let _count = rustix::io::read(&self.0.wake, &mut [0_u8; 8]);
        HUNG_UP.swap(false, Ordering::SeqCst)
    }
}

impl AsFd for Signals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.wake.as_fd()
    }
}

impl Handlers {
    fn install(signals: &[libc::c_int]) -> Result<Self> {
        let wake = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)
            .context("make a descriptor for signals")?;
        CAUGHT.store(false, Ordering::SeqCst);
        HUNG_UP.store(false, Ordering::SeqCst);
        WAKE.store(wake.as_raw_fd(), Ordering::SeqCst);
        let handler: extern "C" fn(libc::c_int) = on_signal;
        let install = |signal: &libc::c_int| {
            // SAFETY: all zero is a valid sigaction: default action, empty mask, no flags.
            let (mut action, mut before): (libc::sigaction, libc::sigaction) =
                unsafe { (std::mem::zeroed(), std::mem::zeroed()) };
            action.sa_sigaction = handler as libc::sighandler_t;
            // SAFETY: both pointers outlive the call; the handler only does what is allowed in one.
            unsafe { libc::sigaction(*signal, &action, &mut before) };
            (*signal, before)
        };
        Ok(Handlers { wake, before: signals.iter().map(install).collect() })
    }
}

impl Drop for Handlers {
    fn drop(&mut self) {
        for (signal, before) in &self.before {
            // SAFETY: the pointer outlives the call; `before` is what sigaction(2) had given.
            unsafe { libc::sigaction(*signal, before, std::ptr::null_mut()) };
        }
        WAKE.store(-1, Ordering::SeqCst);
    }
}

/// Raises the signal's flag and wakes whoever waits.
extern "C" fn on_signal(signal: libc::c_int) {
    let flag = if signal == libc::SIGHUP { &HUNG_UP } else { &CAUGHT };
    flag.store(true, Ordering::SeqCst);
    let wake = WAKE.load(Ordering::SeqCst);
    if wake >= 0 {
        let one = 1_u64;
        // SAFETY: write(2) is allowed in a handler; the pointer and length describe `one`.
        unsafe { libc::write(wake, std::ptr::from_ref(&one).cast(), size_of::<u64>()) };
    }
}
