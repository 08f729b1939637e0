//! `cargo xtask descriptors`: Envoy's API as data, generated from the packages of the peer `xds-protos`.

use std::process::ExitCode;
use std::time::Duration;

use crate::peers;
use crate::process::Invocation;
use crate::say;
use crate::workspace::Workspace;

/// The directory of the script and its output.
const DIRECTORY: &str = "xds-control-plane/descriptors";

/// Time limit for reading a few hundred modules.
const LIMIT: Duration = Duration::from_secs(120);

pub(crate) fn run() -> crate::Result<ExitCode> {
    let workspace = Workspace::load()?;
    let peer = "xds-protos".to_owned();
    if !peers::fetch(&workspace, &[peer])?.is_empty() {
        return Err("the descriptors cannot be generated without this peer".into());
    }
    let directory = workspace.root().join(DIRECTORY);
    let python = workspace.peers_directory().join("bin/xds-protos-python");
    let generate = Invocation::new(python)
        .arg(directory.join("generate.py"))
        .arg(directory.join("envoy.binpb"));
    let (ended, output) = generate.capture(LIMIT)?;
    say!("{}", output.trim_end());
    Ok(if ended.is_success() {
        ExitCode::SUCCESS
    } else {
        eprintln!("xtask: `{generate}` failed ({ended})");
        ExitCode::FAILURE
    })
}
