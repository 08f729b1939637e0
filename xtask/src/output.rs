//! Where steps write. Beside other steps, each in a thread of its own: into a queue, so that lines of two steps do not mix.
//!
//! Everything that a step prints goes through [`say!`](crate::say) or [`line`].

use std::cell::RefCell;
use std::io::{self, Write as _};
use std::sync::mpsc::Sender;

thread_local! {
    /// Where lines of this thread go, if it is not the terminal.
    static BESIDE: RefCell<Option<Beside>> = const { RefCell::new(None) };
}

/// The place of a thread whose step runs beside others.
#[derive(Clone, Debug)]
pub(crate) struct Beside {
    /// Lines, for whoever prints them.
    pub(crate) lines: Sender<String>,
    pub(crate) priority: Priority,
}

/// What the programs of a step get of the processors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Priority {
    /// The same as all others.
    Normal,
    /// What others leave.
    Idle,
}

/// Prints a formatted line, as `println!` does, to where the step writes.
#[macro_export]
macro_rules! say {
    ($($argument:tt)*) => { $crate::output::line(&format!($($argument)*)) };
}

/// Prints a line at once: in CI, stdout is a pipe, and progress should be seen.
pub(crate) fn line(line: &str) {
    let beside = BESIDE.with_borrow(|beside| beside.as_ref().map(|beside| beside.lines.clone()));
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
pub(crate) fn beside<T>(place: Beside, step: impl FnOnce() -> T) -> T {
    BESIDE.set(Some(place));
    let done = step();
    BESIDE.set(None);
    done
}

/// Whether lines of this thread are kept for later.
pub(crate) fn is_beside() -> bool {
    BESIDE.with_borrow(Option::is_some)
}

/// The priority of programs that this thread starts.
pub(crate) fn priority() -> Priority {
    BESIDE.with_borrow(|beside| {
        beside
            .as_ref()
            .map_or(Priority::Normal, |beside| beside.priority)
    })
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
        let priority = Priority::Normal;
        beside(Beside { lines, priority }, || {
            assert!(is_beside());
            say!("one of {}", 2);
            let shell = Invocation::new("sh").args(["-c", "echo two >&2"]);
            shell.show(Duration::from_secs(60)).expect("sh runs")
        });
        assert!(!is_beside());
        assert_eq!(kept.iter().collect::<Vec<_>>(), ["one of 2", "two"]);
    }

    /// The policy and the niceness of the scheduler for a program that is started here.
    #[cfg(target_os = "linux")]
    fn scheduled() -> (String, String) {
        let stat = Invocation::new("cat").arg("/proc/self/stat");
        let (_, stat) = stat.capture(Duration::from_secs(60)).expect("cat runs");
        let (_, fields) = stat.rsplit_once(") ").expect("a name is in parentheses");
        let fields: Vec<_> = fields.split_whitespace().collect();
        (fields[38].to_owned(), fields[16].to_owned())
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn programs_of_an_idle_step_give_way_to_others() {
        let before = scheduled();
        let (lines, _kept) = mpsc::channel();
        let priority = Priority::Idle;
        let (policy, niceness) = beside(Beside { lines, priority }, scheduled);
        // SCHED_IDLE, or what a machine has that refuses it.
        assert!(policy == "5" || niceness == "19", "{policy} {niceness}");
        assert_eq!(scheduled(), before);
    }
}
