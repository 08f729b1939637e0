//! Child processes: printed as commands to repeat, with their output line by line, and a time
//! limit.

use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::io::{self, BufRead, BufReader, IsTerminal, PipeReader};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use crate::output;

/// Interval at which a silent child is checked.
const TICK: Duration = Duration::from_millis(100);

/// Time of silence after the end of a child until its output counts as complete.
const SILENCE: Duration = Duration::from_secs(2);

/// Time limit for the rest of the output of an ended child.
const MOST_REST: Duration = Duration::from_secs(10);

/// Lines buffered ahead of the consumer; the child blocks beyond.
const LINES_AHEAD: usize = 1024;

/// Maximum bytes of output that [`Invocation::capture`] keeps: the newest ones.
const CAPTURED: usize = 4 << 20;

/// A program with its arguments and environment variables.
///
/// Its `Display` is an equivalent command for a POSIX shell, run in the directory of xtask.
#[derive(Clone, Debug)]
pub(crate) struct Invocation {
    program: OsString,
    arguments: Vec<OsString>,
    environment: Vec<(&'static str, OsString)>,
    directory: Option<PathBuf>,
}

/// The end of a child.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    /// The child has exited.
    Exited(ExitStatus),
    /// The child exceeded its time limit and was killed.
    TimedOut,
}

impl Ended {
    /// Returns true if the child has exited with success.
    pub(crate) fn is_success(self) -> bool {
        matches!(self, Self::Exited(status) if status.success())
    }
}

impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exited(status) => status.fmt(f),
            Self::TimedOut => f.write_str("killed, since it took too long"),
        }
    }
}

impl Invocation {
    pub(crate) fn new(program: impl Into<OsString>) -> Self {
        Self {
            program: program.into(),
            arguments: Vec::new(),
            environment: Vec::new(),
            directory: None,
        }
    }

    /// Creates a cargo command from the words of `line`, none of which may contain a space.
    pub(crate) fn cargo(line: &str) -> Self {
        Self::new("cargo").args(line.split_whitespace())
    }

    #[must_use]
    pub(crate) fn arg(mut self, argument: impl Into<OsString>) -> Self {
        self.arguments.push(argument.into());
        self
    }

    #[must_use]
    pub(crate) fn args<A: Into<OsString>>(
        mut self,
        arguments: impl IntoIterator<Item = A>,
    ) -> Self {
        self.arguments.extend(arguments.into_iter().map(Into::into));
        self
    }

    #[must_use]
    pub(crate) fn env(mut self, name: &'static str, value: impl Into<OsString>) -> Self {
        self.environment.push((name, value.into()));
        self
    }

    #[must_use]
    pub(crate) fn in_directory(mut self, directory: impl Into<PathBuf>) -> Self {
        self.directory = Some(directory.into());
        self
    }

    /// Lowers the priority to the minimum, for a step that runs beside others and must not slow
    /// them.
    #[must_use]
    pub(crate) fn in_background(self) -> Self {
        // Every POSIX system has `nice`. Elsewhere the step keeps its priority.
        if cfg!(not(unix)) {
            return self;
        }
        Self {
            program: "nice".into(),
            arguments: ["-n".into(), "19".into(), self.program]
                .into_iter()
                .chain(self.arguments)
                .collect(),
            ..self
        }
    }

    /// Runs it with an empty stdin, and passes on each line of its output, of both streams.
    pub(crate) fn follow(&self, limit: Duration, line: impl FnMut(&str)) -> io::Result<Ended> {
        let (reader, writer) = io::pipe()?;
        let mut command = self.command();
        command
            .stdin(Stdio::null())
            .stdout(writer.try_clone()?)
            .stderr(writer);
        let mut child = command.spawn().map_err(|error| self.not_started(&error))?;
        // The command holds our copies of the pipe's write end: the reader sees no end while they
        // are open.
        drop(command);
        wait(&mut child, &read_lines(reader), limit, line)
    }

    /// Runs it and shows its output. On a terminal the child uses the terminal itself, so that it
    /// can draw its progress, unless other steps run in parallel.
    pub(crate) fn show(&self, limit: Duration) -> io::Result<Ended> {
        if output::is_beside() || !io::stdout().is_terminal() {
            return self.follow(limit, output::line);
        }
        let mut child = self
            .command()
            .stdin(Stdio::null())
            .spawn()
            .map_err(|error| self.not_started(&error))?;
        // The sender is dropped: only the child's end and the limit count.
        let (_, silence) = mpsc::sync_channel(0);
        wait(&mut child, &silence, limit, |_| {})
    }

    /// Runs it and returns its output; if that is very long, the newest part.
    pub(crate) fn capture(&self, limit: Duration) -> io::Result<(Ended, String)> {
        let mut kept = VecDeque::new();
        let mut bytes = 0;
        let ended = self.follow(limit, |line| {
            bytes += line.len() + 1;
            kept.push_back(line.to_owned());
            while bytes > CAPTURED
                && let Some(oldest) = kept.pop_front()
            {
                bytes -= oldest.len() + 1;
            }
        })?;
        let mut output = String::with_capacity(bytes);
        for line in kept {
            output.push_str(&line);
            output.push('\n');
        }
        Ok((ended, output))
    }

    fn not_started(&self, error: &io::Error) -> io::Error {
        io::Error::new(error.kind(), format!("{self}: {error}"))
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        // `cargo run` sets these for the package xtask. A build script that watches one of them
        // would run again whenever a step is run by xtask and by hand in turn.
        for (name, _) in std::env::vars_os().filter(|(name, _)| describes_our_package(name)) {
            command.env_remove(name);
        }
        // Cargo writes into a pipe here, which may end at a terminal.
        if io::stdout().is_terminal() && std::env::var_os("CARGO_TERM_COLOR").is_none() {
            command.env("CARGO_TERM_COLOR", "always");
        }
        command
            .args(&self.arguments)
            .envs(self.environment.iter().map(|(name, value)| (name, value)));
        if let Some(directory) = &self.directory {
            command.current_dir(directory);
        }
        command
    }
}

impl fmt::Display for Invocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(directory) = &self.directory {
            write!(f, "cd {} && ", quoted(directory.as_os_str()))?;
        }
        for (name, value) in &self.environment {
            write!(f, "{name}={} ", quoted(value))?;
        }
        f.write_str(&quoted(&self.program))?;
        for argument in &self.arguments {
            write!(f, " {}", quoted(argument))?;
        }
        Ok(())
    }
}

fn describes_our_package(name: &OsStr) -> bool {
    let Some(name) = name.to_str() else {
        return false;
    };
    ["CARGO_PKG_", "CARGO_MANIFEST_", "CARGO_BIN_"]
        .iter()
        .any(|prefix| name.starts_with(prefix))
}

fn quoted(word: &OsStr) -> String {
    let word = word.to_string_lossy();
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,@+%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.into_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

/// Lines of the pipe, read by a thread, so that waiting for the next one can end.
fn read_lines(reader: PipeReader) -> Receiver<String> {
    let (sender, receiver) = mpsc::sync_channel(LINES_AHEAD);
    thread::spawn(move || {
        for line in BufReader::new(reader).split(b'\n') {
            let Ok(line) = line else { return };
            let line = String::from_utf8_lossy(&line);
            if sender.send(line.trim_end_matches('\r').to_owned()).is_err() {
                return;
            }
        }
    });
    receiver
}

/// Passes lines on until the child has ended and its output is drained, or until the time limit.
/// Descendants of the child may hold the pipe open: then its output ends with a moment of silence.
fn wait(
    child: &mut Child,
    lines: &Receiver<String>,
    limit: Duration,
    each: impl FnMut(&str),
) -> io::Result<Ended> {
    wait_until_silent(child, lines, (limit, SILENCE), each)
}

fn wait_until_silent(
    child: &mut Child,
    lines: &Receiver<String>,
    (limit, silence): (Duration, Duration),
    mut each: impl FnMut(&str),
) -> io::Result<Ended> {
    let start = Instant::now();
    loop {
        match lines.recv_timeout(TICK) {
            Ok(line) => each(&line),
            Err(RecvTimeoutError::Timeout) => {
                if let Some(status) = child.try_wait()? {
                    // On a busy machine the reading thread may be behind. Descendants may print
                    // forever.
                    let ended = Instant::now();
                    while let Ok(line) = lines.recv_timeout(silence) {
                        each(&line);
                        if ended.elapsed() > MOST_REST {
                            break;
                        }
                    }
                    return Ok(Ended::Exited(status));
                }
            }
            // The child may close its output and continue.
            Err(RecvTimeoutError::Disconnected) => {
                if let Some(status) = child.try_wait()? {
                    return Ok(Ended::Exited(status));
                }
                thread::park_timeout(TICK);
            }
        }
        if start.elapsed() > limit {
            child.kill()?;
            child.wait()?;
            return Ok(Ended::TimedOut);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GUARD: Duration = Duration::from_secs(60);

    #[test]
    fn a_printed_invocation_can_be_pasted_into_a_shell() {
        let invocation = Invocation::cargo("doc --workspace")
            .arg("it's")
            .arg("")
            .env("RUSTDOCFLAGS", "-D warnings");
        assert_eq!(
            invocation.to_string(),
            r"RUSTDOCFLAGS='-D warnings' cargo doc --workspace 'it'\''s' ''"
        );
        let elsewhere = Invocation::new("ls").in_directory("a b");
        assert_eq!(elsewhere.to_string(), "cd 'a b' && ls");
        #[cfg(unix)]
        assert_eq!(
            elsewhere.in_background().to_string(),
            "cd 'a b' && nice -n 19 ls"
        );
    }

    #[cfg(unix)]
    #[test]
    fn both_streams_are_captured_in_order() {
        let shell =
            Invocation::new("sh").args(["-c", "echo one; echo two >&2; printf three; exit 3"]);
        let (ended, output) = shell.capture(GUARD).expect("sh runs");
        assert_eq!(output, "one\ntwo\nthree\n");
        assert!(!ended.is_success());
        assert!(matches!(ended, Ended::Exited(status) if status.code() == Some(3)));
    }

    #[cfg(unix)]
    #[test]
    fn a_child_that_hangs_is_killed_and_its_output_kept() {
        let shell = Invocation::new("sh").args(["-c", "echo begun; exec sleep 600"]);
        // On a busy machine it begins late.
        for limit in [300, 3_000, 30_000].map(Duration::from_millis) {
            let (ended, output) = shell.capture(limit).expect("sh runs");
            assert_eq!(ended, Ended::TimedOut);
            if output == "begun\n" {
                return;
            }
            assert_eq!(output, "");
        }
        panic!("it has not begun");
    }

    #[cfg(unix)]
    #[test]
    fn what_a_child_leaves_behind_does_not_hold_us_up() {
        let shell = Invocation::new("sh").args(["-c", "sleep 5 & echo done"]);
        let start = Instant::now();
        let (ended, output) = shell.capture(GUARD).expect("sh runs");
        assert!(ended.is_success());
        assert_eq!(output, "done\n");
        assert!(start.elapsed() < GUARD);
    }

    #[cfg(unix)]
    #[test]
    fn lines_that_are_read_late_are_not_lost() {
        let (sender, lines) = mpsc::sync_channel(1);
        // Later still on a busy machine. The end of the sender is the end of the output.
        let late = thread::spawn(move || {
            thread::park_timeout(5 * TICK);
            sender.send("late".to_owned())
        });
        let mut child = Command::new("true").spawn().expect("true runs");
        let mut seen = Vec::new();
        let ended = wait_until_silent(&mut child, &lines, (GUARD, GUARD), |line| {
            seen.push(line.to_owned());
        });
        assert!(ended.expect("it can be waited for").is_success());
        assert_eq!(seen, ["late"]);
        late.join().expect("no panic").expect("somebody reads");
    }

    #[cfg(unix)]
    #[test]
    fn a_child_that_closes_its_output_is_still_waited_for() {
        let shell = Invocation::new("sh").args(["-c", "exec >&- 2>&-; sleep 1; exit 7"]);
        let (ended, _) = shell.capture(GUARD).expect("sh runs");
        assert!(matches!(ended, Ended::Exited(status) if status.code() == Some(7)));
    }

    #[test]
    fn a_program_that_is_not_there_is_named() {
        let error = Invocation::new("no-such-program-anywhere")
            .capture(GUARD)
            .expect_err("there is no such program");
        assert!(error.to_string().contains("no-such-program-anywhere"));
    }

    #[test]
    fn only_what_cargo_says_of_xtask_is_hidden_from_children() {
        assert!(describes_our_package(OsStr::new("CARGO_PKG_NAME")));
        assert!(describes_our_package(OsStr::new("CARGO_MANIFEST_DIR")));
        assert!(!describes_our_package(OsStr::new("CARGO_TERM_COLOR")));
        assert!(!describes_our_package(OsStr::new("CARGO_INCREMENTAL")));
    }
}
