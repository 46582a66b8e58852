//! Progress on stderr, and Ctrl-C.

use crate::output::errln;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::IsTerminal;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use study::Stop;

/// A bar over so many runs; hidden when quiet or when stderr is no terminal.
pub(crate) fn bar(runs: u64, quiet: bool) -> ProgressBar {
    let shown = !quiet && std::io::stderr().is_terminal();
    let target = if shown { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
    let style = ProgressStyle::with_template(
        "{bar:30} {pos}/{len} runs, {elapsed} of about {duration} {msg}",
    );
    let style = style.unwrap_or_else(|_| ProgressStyle::default_bar());
    ProgressBar::with_draw_target(Some(runs), target).with_style(style)
}

/// Progress of what may take hours: a bar on a terminal, elsewhere a line now and then.
pub(crate) struct Progress {
    bar: ProgressBar,
    /// When the next line is due, in seconds; never, if there is a bar or nothing is wanted.
    line_at: AtomicU64,
}

impl Progress {
    /// Time between two lines: a log stays short.
    const LINE_EVERY_S: u64 = 30;

    pub(crate) fn new(runs: u64, quiet: bool) -> Self {
        let style = ProgressStyle::with_template("{bar:30} {pos}/{len} runs, {eta} left");
        let bar =
            bar(runs, quiet).with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        let has_lines = !quiet && bar.is_hidden();
        let line_at = if has_lines { Self::LINE_EVERY_S } else { u64::MAX };
        Progress { bar, line_at: AtomicU64::new(line_at) }
    }

    /// One run more is finished.
    pub(crate) fn inc(&self) {
        self.bar.inc(1);
        let due = self.line_at.load(Ordering::Relaxed);
        if due == u64::MAX {
            return;
        }
        let elapsed = self.bar.elapsed();
        let next = elapsed.as_secs() + Self::LINE_EVERY_S;
        let is_due = elapsed.as_secs() >= due;
        if is_due
            && self
                .line_at
                .compare_exchange(due, next, Ordering::Relaxed, Ordering::Relaxed)
                .is_ok()
        {
            let (done, runs) = (self.bar.position(), self.bar.length().unwrap_or(0));
            let left = elapsed.as_secs_f64() * runs.saturating_sub(done) as f64 / done as f64;
            errln!("lasthop: {done} of {runs} runs, about {left:.0} s left");
        }
    }

    pub(crate) fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

/// Turns the first Ctrl-C (or SIGTERM) into a request to stop; a second one ends the program at
/// once with 130. Lives as long as the guard.
pub(crate) struct Interrupt {
    asked: Arc<AtomicBool>,
}

impl Interrupt {
    pub(crate) fn listen() -> Self {
        let asked = Arc::new(AtomicBool::new(false));
        for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
            // Order matters: the shutdown looks at the flag that the line after it sets.
            let second =
                signal_hook::flag::register_conditional_shutdown(signal, 130, asked.clone());
            let first = signal_hook::flag::register(signal, asked.clone());
            if second.is_err() || first.is_err() {
                errln!("lasthop: cannot listen for signal {signal}: Ctrl-C ends at once");
            }
        }
        Interrupt { asked }
    }

    /// Passes a request on to `stop` while `work` runs.
    pub(crate) fn while_running<T: Send>(&self, stop: &Stop, work: impl FnOnce() -> T + Send) -> T {
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    if self.asked.load(Ordering::Relaxed) {
                        stop.ask();
                    }
                    std::thread::sleep(Duration::from_millis(20));
                }
            });
            let result = work();
            done.store(true, Ordering::Relaxed);
            result
        })
    }
}
