//! Tests of the commands in the documents.

use std::path::Path;

use testkit::peers;

use crate::program::{ended, program};

/// Returns the arguments of each command of the program in a document, relative to the directory of its
/// files.
fn commands(document: &str) -> Vec<Vec<String>> {
    let mut found = Vec::new();
    let mut is_code = false;
    for line in document.lines() {
        if line.starts_with("```") {
            is_code = !is_code && (line == "```sh" || line == "```text");
            continue;
        }
        let arguments = line
            .strip_prefix("cargo run --release --package azure-loadbalancer --features program -- ")
            .or_else(|| line.strip_prefix("azure-loadbalancer "));
        if let (true, Some(arguments)) = (is_code, arguments) {
            found.push(arguments.split_whitespace().map(str::to_owned).collect());
        }
    }
    found
}

/// Copies the example to the paths in the document's commands, with the files that they name.
fn lay_out(directory: &Path) {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    for below in ["", "azure-loadbalancer"] {
        let to = directory.join(below).join("example");
        std::fs::create_dir_all(&to).unwrap();
        for name in ["azure.json", "services.json", "nodes.json", "state.json"] {
            let from = manifest.join("example").join(name);
            std::fs::copy(&from, to.join(name)).unwrap();
            std::fs::copy(&from, directory.join(name)).unwrap();
        }
    }
}

#[tokio::test]
async fn commands_of_the_documents_work() {
    let readme = include_str!("../../../README.md");
    let page = include_str!("../../../../docs/azure.md");
    let of_both = [commands(readme), commands(page)];
    assert!(
        of_both[0].len() >= 2 && of_both[1].len() >= 10,
        "{of_both:#?}"
    );
    for commands in of_both {
        let directory = tempfile::tempdir().unwrap();
        lay_out(directory.path());
        for mut arguments in commands {
            let is_local = arguments.iter().any(|argument| argument == "--state");
            let ends = arguments[0] != "emulator"
                && !arguments.iter().any(|argument| argument == "--watch");
            for argument in &mut arguments {
                *argument = argument.replace("/tmp/", "");
            }
            let mut command = program();
            command.current_dir(directory.path()).args(&arguments);
            if is_local && ends {
                ended(&peers::output(command).await, 0);
                continue;
            }
            // No Azure, cluster or port is available here, but the command line is parsed before that
            // matters.
            command.arg("--help");
            ended(&peers::output(command).await, 0);
            let mut checked = program();
            checked.current_dir(directory.path()).args(&arguments);
            if arguments[0] != "emulator" {
                // The last check before any connection: the file exists and has this mistake.
                std::fs::write(directory.path().join("azure.json"), "{").unwrap();
                for argument in arguments
                    .iter()
                    .filter(|argument| argument.ends_with("example/azure.json"))
                {
                    std::fs::write(directory.path().join(argument), "{").unwrap();
                }
                let output = peers::output(checked).await;
                ended(&output, 1);
                assert!(
                    output.stderr.contains("azure.json: "),
                    "{arguments:?}: {}",
                    output.stderr
                );
                lay_out(directory.path());
            }
        }
    }
}
