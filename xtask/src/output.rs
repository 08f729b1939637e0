//! Where steps write. Beside other steps, each in a thread of its own: into a queue, so that lines of two steps do not mix.
//!
//! Everything that a step prints goes through [`say!`](crate::say) or [`line()`].

use std::cell::RefCell;
use std::io::{self, Write as _};
use std::sync::mpsc::Sender;

thread_local! {
    /// Where lines of this thread go, if it is not the terminal: to whoever prints them.
    static BESIDE: RefCell<Option<Sender<String>>> = const { RefCell::new(None) };
}

/// Prints a formatted line, as `println!` does, to where the step writes.
#[macro_export]
macro_rules! say {
    ($($argument:tt)*) => { $crate::output::line(&format!($($argument)*)) };
}

/// Prints a line at once: in CI, stdout is a pipe, and progress should be seen.
pub(crate) fn line(line: &str) {
    let beside = BESIDE.with_borrow(Clone::clone);
    match beside {
        // Nobody reads any more: how the step ends is told in another way.
        Some(lines) => drop(lines.send(line.to_owned())),
        None => {
            let mut stdout = io::stdout().lock();
            // The exit code still says how it went.
            let _ = writeln!(stdout, "{line}").and_then(|()| stdout.flush());
        }
    }
}

/// Runs a step that writes beside others from this thread.
pub(crate) fn beside<T>(lines: Sender<String>, step: impl FnOnce() -> T) -> T {
    BESIDE.set(Some(lines));
    let done = step();
    BESIDE.set(None);
    done
}

/// Whether lines of this thread are kept for later.
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
