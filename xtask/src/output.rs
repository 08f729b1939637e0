//! The output of steps. Parallel steps run in separate threads and write into queues, so that their
//! lines do not mix.
//!
//! All output of a step uses [`say!`](crate::say) or [`line()`].

use std::cell::RefCell;
use std::io::{self, Write as _};
use std::sync::mpsc::Sender;

thread_local! {
    /// The queue for lines of this thread, unless they go to the terminal.
    static BESIDE: RefCell<Option<Sender<String>>> = const { RefCell::new(None) };
}

/// Prints a formatted line like `println!`, to the output of the step.
#[macro_export]
macro_rules! say {
    ($($argument:tt)*) => { $crate::output::line(&format!($($argument)*)) };
}

/// Prints a line at once: in CI, stdout is a pipe, and progress should be visible.
pub(crate) fn line(line: &str) {
    let beside = BESIDE.with_borrow(Clone::clone);
    match beside {
        // The receiver may be gone; the result of the step is reported separately.
        Some(lines) => drop(lines.send(line.to_owned())),
        None => {
            let mut stdout = io::stdout().lock();
            // The exit code still reports the result.
            let _ = writeln!(stdout, "{line}").and_then(|()| stdout.flush());
        }
    }
}

/// Runs a step in parallel to others, from this thread.
pub(crate) fn beside<T>(lines: Sender<String>, step: impl FnOnce() -> T) -> T {
    BESIDE.set(Some(lines));
    let done = step();
    BESIDE.set(None);
    done
}

/// Returns true if lines of this thread are collected.
pub(crate) fn is_beside() -> bool {
    BESIDE.with_borrow(Option::is_some)
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::time::Duration;

    use super::*;
    use crate::process::Invocation;

    #[test]
    fn lines_of_a_step_beside_others_are_kept_and_end_with_it() {
        let (lines, kept) = mpsc::channel();
        beside(lines, || {
            assert!(is_beside());
            say!("one of {}", 2);
            let shell = Invocation::new("sh").args(["-c", "echo two >&2"]);
            shell.show(Duration::from_secs(60)).expect("sh runs")
        });
        assert!(!is_beside());
        assert_eq!(kept.iter().collect::<Vec<_>>(), ["one of 2", "two"]);
    }
}
