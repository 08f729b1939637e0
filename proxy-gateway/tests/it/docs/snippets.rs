//! The configurations of the pages.

use crate::common::{ConfigFile, output};
use crate::docs::{pages, root};

/// The info string of a configuration that overlays the one above it.
const OVERLAY: &str = "json config overlay";

#[tokio::test]
async fn every_configuration_is_valid_and_without_a_warning() {
    let mut seen = 0;
    for page in pages() {
        let mut above: Option<ConfigFile> = None;
        for block in &page.blocks {
            // An overlay lies on top of the configuration above it.
            let is_overlay = block.info == OVERLAY;
            if block.info != "json config" && !is_overlay {
                continue;
            }
            seen += 1;
            let file = ConfigFile::new(&block.text);
            let below = above.filter(|_| is_overlay);
            let files: Vec<_> = below
                .iter()
                .chain([&file])
                .map(ConfigFile::argument)
                .collect();
            let mut arguments = vec!["check", "--format", "json"];
            for file in &files {
                arguments.extend(["--config", file]);
            }
            let verdict = output(&arguments).await.stdout;
            let verdict: serde_json::Value = serde_json::from_str(&verdict).unwrap();
            let place = format!("{}:{}", page.path, block.line);
            assert_eq!(verdict["valid"], true, "{place}: {verdict:#}");
            // Certificates, tokens, pages, folders and addresses of the pages exist where their readers make them.
            let problems = verdict["problems"].as_array().unwrap();
            let elsewhere = [
                "unusable_certificate",
                "unusable_connection",
                "unusable_error_page",
                "unusable_token",
                "unusable_address",
                "unwritable_file",
            ];
            let found = problems
                .iter()
                .find(|p| !elsewhere.iter().any(|code| p["code"] == *code));
            assert_eq!(found, None, "{place}");
            above = Some(file);
        }
    }
    assert!(seen > 5, "only {seen} configurations found");
}

#[test]
fn blocks_are_of_the_kinds_that_something_looks_at() {
    // Configurations in YAML and plain JSON belong to the control plane and to Envoy; the control plane's own
    // tests read them.
    const KINDS: [&str; 9] = [
        "json",
        "json config",
        OVERLAY,
        "mermaid",
        "rust",
        "rust,no_run",
        "sh",
        "text",
        "yaml",
    ];
    for page in pages() {
        for block in &page.blocks {
            assert!(
                KINDS.contains(&block.info.as_str()),
                "{}:{}: `{}`",
                page.path,
                block.line,
                block.info
            );
        }
    }
}

/// Pages with Rust in them are doctests of the package `examples`.
#[test]
fn rust_is_compiled() {
    let doctests = std::fs::read_to_string(root().join("examples/tours/src/lib.rs")).unwrap();
    let mut seen = 0;
    for page in pages() {
        if page
            .blocks
            .iter()
            .any(|block| block.info.starts_with("rust"))
        {
            seen += 1;
            let included = format!("include_str!(\"../../../{}\")", page.path);
            assert!(doctests.contains(&included), "{}", page.path);
        }
    }
    assert!(seen > 0, "no Rust found");
}

/// Every page has a command to try at its head: after the title, or after a few sentences about its purpose.
#[test]
fn every_page_has_a_command_at_its_head() {
    for page in pages() {
        if page.path.starts_with("docs/") {
            let mut head = page.text.lines().take(8);
            assert!(head.any(|line| line == "```sh"), "{}", page.path);
        }
    }
}
