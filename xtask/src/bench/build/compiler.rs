//! The processor time of each compiler run, measured by a wrapper that cargo starts.
//!
//! Wall time is unreliable when two compilers share two processors. Linux reports the processor
//! time of a process' children; a wrapper has one child.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use crate::process::Invocation;

/// The variable with the path of the log. Cargo started a process that has it in place of the
/// compiler.
const LOG: &str = "XTASK_COMPILER_LOG";

/// Ticks of `/proc/self/stat` in a second: the same on all architectures of Linux.
const TICKS_PER_SECOND: f64 = 100.0;

/// Runs the compiler and logs its time, if cargo started this process for that.
pub(crate) fn stand_in() -> Option<ExitCode> {
    let log = std::env::var_os(LOG)?;
    let mut arguments = std::env::args_os().skip(1);
    let compiler = arguments.next()?;
    let arguments: Vec<_> = arguments.collect();
    let status = match Command::new(&compiler).args(&arguments).status() {
        Ok(status) => status,
        Err(error) => {
            eprintln!("xtask: {}: {error}", compiler.display());
            return Some(ExitCode::FAILURE);
        }
    };
    if status.success()
        && let Some(package) = std::env::var_os("CARGO_PKG_NAME")
        && is_counted(&arguments)
    {
        // A missing row makes the comparison fail later, with a message.
        let _ = append(Path::new(&log), &package);
    }
    // A compiler that was killed has no exit code.
    Some(status.code().map_or(ExitCode::FAILURE, |code| {
        ExitCode::from(u8::try_from(code).unwrap_or(1))
    }))
}

/// Returns true if the compiler builds a library, a program, a macro or a build script. Tests grow
/// with each change.
fn is_counted(arguments: &[OsString]) -> bool {
    let makes_code = |argument: &OsString| {
        let argument = argument.to_string_lossy();
        argument.starts_with("--emit=") && argument.contains("link")
    };
    arguments.iter().any(makes_code) && !arguments.iter().any(|argument| argument == "--test")
}

/// Appends a row. Short rows of several processes do not mix.
fn append(log: &Path, package: &OsStr) -> std::io::Result<()> {
    let seconds = children_seconds(&fs::read_to_string("/proc/self/stat")?)
        .ok_or(std::io::ErrorKind::InvalidData)?;
    let mut log = OpenOptions::new().append(true).create(true).open(log)?;
    log.write_all(format!("{}\t{seconds}\n", package.display()).as_bytes())
}

/// The processor time of ended children: the 14th and 15th field after the name in parentheses.
fn children_seconds(stat: &str) -> Option<f64> {
    let (_, fields) = stat.rsplit_once(") ")?;
    let mut times = fields.split(' ').skip(13).take(2).map(str::parse::<u32>);
    let user = times.next()?.ok()?;
    let system = times.next()?.ok()?;
    Some(f64::from(user + system) / TICKS_PER_SECOND)
}

/// The log of one build.
pub(crate) struct Log(PathBuf);

impl Log {
    /// Creates an empty log in a directory, beside a copy of this program: the build may replace
    /// the program itself.
    pub(crate) fn begin(directory: &Path) -> crate::Result<Self> {
        let directory = directory.join("compiler-log");
        fs::create_dir_all(&directory)?;
        fs::copy(std::env::current_exe()?, directory.join("xtask"))?;
        let log = directory.join("seconds.tsv");
        fs::write(&log, "")?;
        Ok(Self(directory))
    }

    /// Makes a cargo command start the compiler through this program.
    pub(crate) fn watch(&self, command: Invocation) -> Invocation {
        command
            .env("RUSTC_WRAPPER", self.0.join("xtask"))
            .env(LOG, self.0.join("seconds.tsv"))
    }

    /// Returns the time of each package. Removes the log.
    pub(crate) fn end(self) -> crate::Result<Seconds> {
        let text = fs::read_to_string(self.0.join("seconds.tsv"))?;
        fs::remove_dir_all(&self.0)?;
        Ok(Seconds::read(&text)?)
    }
}

/// Processor seconds by package, summed over its library, build script and programs.
#[derive(Debug, PartialEq)]
pub(crate) struct Seconds(BTreeMap<String, f64>);

impl Seconds {
    fn read(text: &str) -> Result<Self, String> {
        let mut seconds = BTreeMap::new();
        for line in text.lines() {
            let row = line.split_once('\t');
            let row = row.and_then(|(package, taken)| Some((package, taken.parse::<f64>().ok()?)));
            let (package, taken) =
                row.ok_or_else(|| format!("a row of the compiler's log: {line:?}"))?;
            *seconds.entry(package.to_owned()).or_default() += taken;
        }
        Ok(Self(seconds))
    }

    /// The sum of all packages.
    pub(super) fn total(&self) -> f64 {
        self.0.values().sum()
    }

    /// The number of packages.
    pub(super) fn packages(&self) -> usize {
        self.0.len()
    }

    /// Returns true if a package was compiled.
    pub(crate) fn has(&self, package: &str) -> bool {
        self.0.contains_key(package)
    }

    /// Packages and their seconds, the most expensive one first.
    pub(super) fn by_cost(&self) -> Vec<(&str, f64)> {
        let mut sorted: Vec<_> = self.0.iter().map(|(name, s)| (name.as_str(), *s)).collect();
        sorted.sort_by(|a, b| b.1.total_cmp(&a.1));
        sorted
    }
}

#[cfg(test)]
impl Seconds {
    pub(super) fn of(seconds: &[(&str, f64)]) -> Self {
        let owned = |(name, seconds): &(&str, f64)| ((*name).to_owned(), *seconds);
        Self(seconds.iter().map(owned).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_of_one_package_are_added_up() {
        let seconds = Seconds::read("demo\t2\nsyn\t1.5\ndemo\t0.25\n");
        let seconds = seconds.expect("the log is complete");
        assert_eq!(seconds, Seconds::of(&[("demo", 2.25), ("syn", 1.5)]));
        assert_eq!(seconds.by_cost(), [("demo", 2.25), ("syn", 1.5)]);
        assert_eq!(seconds.packages(), 2);
    }

    #[test]
    fn a_row_that_is_none_is_an_error() {
        for text in ["demo", "demo\t", "demo\tmuch"] {
            assert!(Seconds::read(text).is_err(), "{text}");
        }
    }

    #[test]
    fn only_code_that_is_not_a_test_is_counted() {
        for (line, counted) in [
            ("--crate-name a --emit=dep-info,metadata,link", true),
            ("--crate-name a --emit=dep-info,link", true),
            ("--crate-name a --emit=dep-info,metadata", false),
            ("--crate-name a --emit=dep-info,link --test", false),
            ("-vV", false),
        ] {
            let arguments: Vec<_> = line.split(' ').map(OsString::from).collect();
            assert_eq!(is_counted(&arguments), counted, "{line}");
        }
    }

    #[test]
    fn times_are_read_behind_any_name() {
        let stat = "77 (a b) c) S 1 2 3 4 5 6 7 8 9 10 11 12 150 25 20 0";
        assert_eq!(children_seconds(stat), Some(1.75));
        assert_eq!(children_seconds("77 (rustc) S 1 2"), None);
    }
}
