//! The program: options, available programs, the cases in sequence, and the final report.

use std::error::Error;
use std::fs;
use std::path::Path;
use std::process::{Command as Process, ExitCode};

use clap::Parser;

use crate::case::{CASES, Pains};
use crate::cli::{Cli, Command, Options, Run};
use crate::contest::{Field, LeftOut};
use crate::proxies::{Kind, Programs, Source};
use crate::report::{self, Report};
use crate::system::{self, Cores};
use crate::{gate, proxies, relay, tls};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

pub(crate) fn main() -> ExitCode {
    let done = match Cli::parse().command {
        Command::Relay {
            splice,
            port,
            origins,
        } => {
            let by = if splice {
                relay::By::Splice
            } else {
                relay::By::Copy
            };
            relay::run(port, &origins, by).map_err(Into::into)
        }
        Command::Guard { interrupt, command } => {
            let (program, arguments) = command.split_first().expect("clap asks for one at least");
            Err(proxies::guard(program, arguments, interrupt).into())
        }
        Command::Needs(options) => {
            print!("{}", needs(&options));
            Ok(())
        }
        Command::Run(run) => measure(&run),
        Command::Gate(options) => match gate::run(&options) {
            Ok(true) => Ok(()),
            Ok(false) => return ExitCode::from(gate::SHUT),
            Err(error) => Err(error),
        },
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bench-peers: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Renders one line for each program that has to be fetched or built.
fn needs(options: &Options) -> String {
    let lines = options.kinds().into_iter().filter_map(|kind| {
        let what = match kind.source() {
            Source::Ourselves => return None,
            Source::Beside => "beside",
            Source::Gateway | Source::GatewayPlain => "gateway",
            Source::Peer => "peer",
            Source::Competitor => "competitor",
        };
        Some(format!("{what} {}\n", kind.name()))
    });
    lines.collect()
}

fn measure(run: &Run) -> Result<()> {
    let Run { options, places } = run;
    let open_files = system::raise_open_files();
    let available = system::available_cores()?;
    // Later this thread may be pinned to one core, the only one it would then see.
    let machine = system::machine();
    let cores = Cores::plan(&available, 1).ok_or("there is no core to run on")?;
    // Proxies start in directories of their own.
    fs::create_dir_all(&places.output)?;
    let output = fs::canonicalize(&places.output)?;
    let programs = Programs {
        gateway: fs::canonicalize(&places.gateway)?,
        gateway_plain: places.gateway_plain.clone(),
        peers: places.peers_directory.clone(),
        competitors: places.competitors.clone(),
    };
    let (certificate, client) = tls::prepare(&output)?;
    let mut pains = if options.quick {
        Pains::QUICK
    } else {
        Pains::FULL
    };
    pains.rounds = options.rounds.map_or(pains.rounds, Into::into);

    let mut left_out = Vec::new();
    let kinds = present(&options.kinds(), &programs, &mut left_out);
    let field = Field {
        programs: &programs,
        kinds: &kinds,
        pains,
        crowded: options.crowded,
        directory: &output,
        certificate: &certificate,
        tls: &client,
        open_files,
        cores: &available,
    };
    let before = system::load_average().unwrap_or_default();
    let shared = if cores.are_apart() {
        ""
    } else {
        " (they share it)"
    };
    let placed = format!(
        "proxy on core {}, origin on core {}, generator on core {}{shared}",
        cores.proxy[0], cores.origin, cores.generator
    );
    println!("{machine}; {placed}; load average {before:.1}");

    let mut outcomes = Vec::new();
    for case in CASES.iter().filter(|case| options.has_case(case.name)) {
        println!("\n{}: {}", case.name, case.title);
        match field.measure(case, options.counts_calls(case)) {
            Ok(outcome) => {
                print!("\n{}", report::table(&outcome));
                outcomes.push(outcome);
            }
            Err(LeftOut(why)) => {
                println!("    LEFT OUT: {why}");
                left_out.push((case.title.to_owned(), why));
            }
        }
    }
    let report = Report {
        date: today(),
        machine,
        load_average: (before, system::load_average().unwrap_or_default()),
        cores: placed,
        rounds: pains.rounds,
        window_millis: pains.window.as_millis(),
        versions: kinds
            .iter()
            .map(|kind| (kind.name(), programs.version(*kind)))
            .collect(),
        outcomes,
        left_out,
    };
    let results = output.join("results.json");
    fs::write(&results, report::json(&report))?;
    let drawn = output.join("performance.svg");
    fs::write(&drawn, report::chart(&report))?;
    println!("\nresults: {}, {}", results.display(), drawn.display());
    if options.write_docs {
        write_documentation(&places.root, &report)?;
    }
    for (what, why) in &report.left_out {
        println!("LEFT OUT: {what}: {why}");
    }
    Ok(())
}

/// Returns the kinds with an available program and prints a warning for the others.
fn present(kinds: &[Kind], programs: &Programs, left_out: &mut Vec<(String, String)>) -> Vec<Kind> {
    let mut present = Vec::new();
    for kind in kinds {
        match programs.find(*kind) {
            Ok(_) => present.push(*kind),
            Err(why) => {
                println!("{} IS LEFT OUT: {why}", kind.name());
                left_out.push((kind.name().to_owned(), why));
            }
        }
    }
    present
}

fn write_documentation(root: &Path, report: &Report) -> Result<()> {
    let page = root.join("benches/COMPARISON.md");
    let text = report::replace_results(&fs::read_to_string(&page)?, &report::page(report))?;
    fs::write(&page, text)?;
    let drawn = root.join("docs/images/performance.svg");
    fs::write(&drawn, report::chart(report))?;
    println!("documentation: {}, {}", page.display(), drawn.display());
    Ok(())
}

/// The current date. The standard library has no calendar.
fn today() -> String {
    let date = Process::new("date").arg("+%Y-%m-%d").output();
    let said = date.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
    said.unwrap_or_else(|_| "on an unknown date".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_to_be_there_is_named_by_where_it_comes_from() {
        let Cli {
            command: Command::Needs(options),
        } = Cli::try_parse_from(["bench-peers", "needs", "--peers", "nginx,relay,pingora"])
            .unwrap()
        else {
            unreachable!("it was asked for")
        };
        assert_eq!(
            needs(&options),
            "gateway gateway\npeer nginx\ncompetitor pingora\n"
        );
    }
}
