//! `cargo xtask coverage`: the lines of each library that its own tests cover.
//!
//! cargo-llvm-cov measures; this module chooses tests and writes the table of CONTRIBUTING.md.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::ExitCode;

use serde::Deserialize;

use crate::checks::LIMIT;
use crate::page::Marks;
use crate::process::Invocation;
use crate::test::with_peers;
use crate::workspace::Workspace;
use crate::{peers, say};

/// The program that measures.
const TOOL: &str = "cargo-llvm-cov";

/// The page with the table, relative to the root of the workspace.
const PAGE: &str = "CONTRIBUTING.md";

/// The marks of the table in the page.
const MARKS: Marks = Marks {
    begin: "<!-- coverage: written by `cargo xtask coverage --renew` -->",
    end: "<!-- end of coverage -->",
};

#[derive(clap::Args)]
pub(crate) struct Options {
    /// Packages to measure; all published libraries by default
    packages: Vec<String>,
    /// Only the tests beside the code, not those of tests/
    #[arg(long)]
    unit: bool,
    /// Write the rows of what was measured into the table of CONTRIBUTING.md
    #[arg(long)]
    renew: bool,
}

pub(crate) fn run(options: &Options) -> crate::Result<ExitCode> {
    let workspace = Workspace::load()?;
    std::env::set_current_dir(workspace.root())?;
    let known = workspace.published_libraries();
    let packages = choose(&known, &options.packages)?;
    peers::fetch(&workspace, &[TOOL.to_owned()])?;
    let tool = peers::find(&workspace, TOOL)
        .ok_or_else(|| format!("there is no {TOOL}: `cargo xtask peers {TOOL}` says why"))?;
    let mut rows = BTreeMap::new();
    for package in packages {
        let covered = measure(&workspace, &tool, package, options.unit)?;
        let row = Row {
            tests: if options.unit { "unit" } else { "all" }.to_owned(),
            covered,
        };
        say!("{}", row.text(package));
        rows.insert(package.to_owned(), row);
    }
    if options.renew {
        let page = fs::read_to_string(PAGE)?;
        fs::write(PAGE, renew(&page, rows)?)?;
        say!("written: {PAGE}");
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns the packages of these names, or all.
fn choose<'a>(known: &[&'a str], names: &[String]) -> Result<Vec<&'a str>, String> {
    if names.is_empty() {
        return Ok(known.to_vec());
    }
    let find = |name: &String| {
        let found = known.iter().copied().find(|known| known == name);
        found.ok_or_else(|| format!("no library `{name}`; there are: {}", known.join(", ")))
    };
    names.iter().map(find).collect()
}

/// Runs the tests of a package, and counts the covered lines of its sources.
fn measure(
    workspace: &Workspace,
    tool: &Path,
    package: &str,
    unit: bool,
) -> crate::Result<Covered> {
    let directory = workspace.target_directory().join("coverage");
    fs::create_dir_all(&directory)?;
    let report = directory.join(format!("{package}.json"));
    // Coverage by the tests of another package does not count.
    let clean = Invocation::new(tool).args(["llvm-cov", "clean", "--profraw-only"]);
    expect_success(&clean)?;
    let runner = match peers::on_path("cargo-nextest") {
        Some(_) => "nextest",
        None => "test",
    };
    let tests: &[&str] = match unit {
        true => &["--lib"],
        false => &["--lib", "--bins", "--tests"],
    };
    let command = Invocation::new(tool)
        .args(["llvm-cov", runner, "--no-clean", "--all-features"])
        .args(["--package", package])
        .args(tests)
        .args(["--json", "--summary-only", "--output-path"])
        .arg(&report);
    expect_success(&with_peers(command, workspace, false))?;
    let sources = workspace
        .sources(package)
        .ok_or_else(|| format!("{package} has no library"))?;
    Ok(Covered::read(&fs::read_to_string(report)?, &sources)?)
}

fn expect_success(command: &Invocation) -> crate::Result<()> {
    say!("{command}");
    let ended = command.show(LIMIT)?;
    match ended.is_success() {
        true => Ok(()),
        false => Err(format!(
            "`{command}`: {ended} (if tools of LLVM are missing: rustup component add llvm-tools)"
        )
        .into()),
    }
}

/// Lines with code.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Covered {
    count: u64,
    covered: u64,
}

/// The part of llvm-cov's export that is used.
#[derive(Deserialize)]
struct Export {
    data: Vec<Data>,
}

#[derive(Deserialize)]
struct Data {
    files: Vec<File>,
}

#[derive(Deserialize)]
struct File {
    filename: String,
    summary: Summary,
}

#[derive(Deserialize)]
struct Summary {
    lines: LineCounts,
}

#[derive(Deserialize)]
struct LineCounts {
    count: u64,
    covered: u64,
}

impl Covered {
    /// The sum over the files below a directory.
    fn read(report: &str, sources: &Path) -> Result<Self, String> {
        let export: Export = serde_json::from_str(report)
            .map_err(|error| format!("the report of llvm-cov: {error}"))?;
        let files = export.data.iter().flat_map(|data| &data.files);
        let mut sum = Self::default();
        for file in files.filter(|file| Path::new(&file.filename).starts_with(sources)) {
            sum.count += file.summary.lines.count;
            sum.covered += file.summary.lines.covered;
        }
        match sum.count {
            0 => Err(format!(
                "the report has no file below {}",
                sources.display()
            )),
            _ => Ok(sum),
        }
    }
}

/// A row of the table.
#[derive(Debug)]
struct Row {
    /// The tests that were run.
    tests: String,
    covered: Covered,
}

impl Row {
    #[expect(clippy::cast_precision_loss, reason = "lines of code are few")]
    fn text(&self, package: &str) -> String {
        let Covered { count, covered } = self.covered;
        let percent = covered as f64 / count as f64 * 100.0;
        format!(
            "| `{package}` | {} | {count} | {percent:.1} % |",
            self.tests
        )
    }
}

/// Returns the page with new rows for the measured packages; other rows stay.
fn renew(page: &str, measured: BTreeMap<String, Row>) -> Result<String, String> {
    let name = |row: &str| Some(row.strip_prefix("| `")?.split_once('`')?.0.to_owned());
    let old = MARKS.part(page)?.lines();
    let mut rows: BTreeMap<_, _> = old
        .filter_map(|row| Some((name(row)?, row.to_owned())))
        .collect();
    for (package, row) in measured {
        let text = row.text(&package);
        rows.insert(package, text);
    }
    let mut table = String::from("| library | tests | lines | reached |\n|---|---|--:|--:|\n");
    for row in rows.values() {
        let _ = writeln!(table, "{row}");
    }
    MARKS.replace(page, &table)
}

#[cfg(test)]
mod tests {
    use super::*;

    const REPORT: &str = r#"{"type": "llvm.coverage.json.export", "data": [{"totals": {}, "files": [
        {"filename": "/p/model/src/lib.rs", "summary": {"lines": {"count": 30, "covered": 20, "percent": 66}}},
        {"filename": "/p/model/src/a/b.rs", "summary": {"lines": {"count": 10, "covered": 10, "percent": 100}}},
        {"filename": "/p/model-of/src/lib.rs", "summary": {"lines": {"count": 99, "covered": 0, "percent": 0}}}
    ]}]}"#;

    #[test]
    fn only_lines_of_the_package_count() {
        let covered = Covered::read(REPORT, Path::new("/p/model/src"));
        let expected = Covered {
            count: 40,
            covered: 30,
        };
        assert_eq!(covered, Ok(expected));
        assert!(Covered::read(REPORT, Path::new("/p/other/src")).is_err());
        assert!(Covered::read("{}", Path::new("/p/model/src")).is_err());
    }

    #[test]
    fn rows_of_what_was_not_measured_stay() {
        let Marks { begin, end } = MARKS;
        let page =
            format!("{begin}\n| `a` | all | 10 | 50.0 % |\n| `c` | all | 9 | 1.0 % |\n{end}");
        let row = |covered| Row {
            tests: "unit".to_owned(),
            covered: Covered { count: 8, covered },
        };
        let measured = BTreeMap::from([("b".to_owned(), row(6)), ("c".to_owned(), row(8))]);
        let page = renew(&page, measured).expect("both marks are there");
        let rows: Vec<_> = page.lines().filter(|row| row.starts_with("| `")).collect();
        assert_eq!(
            rows,
            [
                "| `a` | all | 10 | 50.0 % |",
                "| `b` | unit | 8 | 75.0 % |",
                "| `c` | unit | 8 | 100.0 % |",
            ]
        );
    }

    #[test]
    fn an_unknown_package_is_answered_with_the_known_ones() {
        let known = ["a", "b"];
        assert_eq!(choose(&known, &[]), Ok(vec!["a", "b"]));
        let why = choose(&known, &["x".to_owned()]).unwrap_err();
        assert_eq!(why, "no library `x`; there are: a, b");
    }
}
