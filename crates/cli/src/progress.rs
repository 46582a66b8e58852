//! Progress on stderr, and Ctrl-C.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::IsTerminal;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
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
                eprintln!("lasthop: cannot listen for signal {signal}: Ctrl-C ends at once");
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
