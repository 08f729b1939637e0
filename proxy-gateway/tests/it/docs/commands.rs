//! Tests of the commands in the pages: their options and files exist.

use std::collections::BTreeMap;

use crate::common::output;
use crate::docs::markdown::{Page, code};
use crate::docs::{page, pages, root};

/// Lines for a shell, and commands within the text.
fn commands(page: &Page) -> Vec<String> {
    let shell = page.blocks.iter().filter(|block| block.info == "sh");
    let lines = shell.flat_map(|block| block.text.lines().map(str::to_owned));
    let rows = page.tables.iter().flat_map(|table| &table.rows).flatten();
    let spans = rows.flat_map(|cell| code(cell)).map(str::to_owned);
    lines
        .chain(spans.filter(|span| span.starts_with("proxy-gateway ")))
        .collect()
}

/// Returns the arguments of the program in a command that runs it.
fn arguments(command: &str) -> Option<&str> {
    command
        .strip_prefix("cargo run --release --bin proxy-gateway -- ")
        .or_else(|| command.strip_prefix("proxy-gateway "))
}

#[tokio::test]
async fn every_option_exists() {
    let mut helps = BTreeMap::new();
    let mut seen = 0;
    for page in pages() {
        for command in commands(&page) {
            let Some(arguments) = arguments(&command) else {
                continue;
            };
            seen += 1;
            let (name, rest) = arguments.split_once(' ').unwrap_or((arguments, ""));
            if !helps.contains_key(name) {
                let help = output(&[name, "--help"]).await.expect_success().stdout;
                helps.insert(name.to_owned(), help);
            }
            let mut words = helps[name].split_whitespace();
            let known: Vec<_> = words
                .by_ref()
                .filter(|word| word.starts_with("--"))
                .collect();
            for option in rest.split(' ').filter(|word| word.starts_with("--")) {
                assert!(known.contains(&option), "{}: `{command}`", page.path);
            }
        }
    }
    assert!(seen > 10, "only {seen} commands found");
}

#[test]
fn every_example_exists() {
    let mut seen = 0;
    for page in pages() {
        for command in commands(&page) {
            for (package, folder) in [("examples", "examples"), ("tours", "examples/tours")] {
                let prefix = format!("cargo run --package {package} --example ");
                if let Some(name) = command.strip_prefix(&prefix) {
                    seen += 1;
                    let file = root().join(format!("{folder}/{name}.rs"));
                    assert!(file.is_file(), "{}: `{command}`", page.path);
                }
            }
        }
    }
    assert!(seen > 0, "no example found");
}

#[test]
fn every_admin_path_that_is_asked_for_is_one_that_is_listed() {
    let operate = page("operate.md");
    let listed: Vec<_> = operate
        .table("Endpoints", "path")
        .rows
        .iter()
        .map(|row| code(&row[0])[0].split('?').next().unwrap().to_owned())
        .collect();
    let mut seen = 0;
    for page in pages() {
        for command in commands(&page) {
            let Some((_, path)) = command.split_once(":9901") else {
                continue;
            };
            seen += 1;
            let path = path.split('?').next().unwrap();
            assert!(
                listed.iter().any(|one| one == path),
                "{}: `{command}`",
                page.path
            );
        }
    }
    assert!(seen > 3, "only {seen} found");
}

/// A destination may present the certificate that the page makes only if it is none of an authority.
#[test]
fn certificates_of_the_pages_can_be_trusted_as_they_are() {
    let pages = pages();
    let commands = pages.iter().flat_map(commands);
    let made: Vec<_> = commands
        .filter(|command| command.starts_with("openssl req -x509 "))
        .collect();
    assert!(!made.is_empty());
    for command in made {
        assert!(
            command.contains("basicConstraints=critical,CA:FALSE"),
            "{command}"
        );
    }
}
