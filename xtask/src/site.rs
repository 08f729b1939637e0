//! `cargo xtask site`: the pages of docs/ as a site with search, as `mkdocs.yml` describes it.

use std::process::ExitCode;

use crate::checks::with_tool;
use crate::peers;
use crate::say;
use crate::steps::Outcome;
use crate::workspace::Workspace;

/// The program that builds the site.
pub(crate) const TOOL: &str = "mkdocs";

/// Builds the site, and says where it is.
pub(crate) fn run() -> crate::Result<ExitCode> {
    let workspace = Workspace::load()?;
    std::env::set_current_dir(workspace.root())?;
    peers::fetch(&workspace, &[TOOL.to_owned()])?;
    Ok(match step(&workspace, true)? {
        Outcome::Passed { .. } => {
            let front = workspace.target_directory().join("site/index.html");
            say!("built: {}", front.display());
            ExitCode::SUCCESS
        }
        Outcome::Failed { why, .. } | Outcome::Skipped { why } => {
            say!("{why}");
            ExitCode::FAILURE
        }
    })
}

/// Builds the site, as a step of `cargo xtask ci`. It fails for a link or anchor without a target,
/// and for a page that is not in the navigation.
pub(crate) fn step(workspace: &Workspace, required: bool) -> crate::Result<Outcome> {
    with_tool(workspace, TOOL, required, |mkdocs| {
        let place = workspace.target_directory().join("site");
        // Not `--quiet`, which hides warnings from `--strict`, too.
        let build = mkdocs.args(["build", "--strict", "--site-dir"]);
        // The theme's word to its own users.
        vec![build.arg(place).env("NO_MKDOCS_2_WARNING", "1")]
    })
}
