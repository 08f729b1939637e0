//! The runner of the scripts in `python/`.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use testkit::peers::{self, Peer};

/// The time limit of a script. The longest one runs some 250 commands in sequence.
const LIMIT: Duration = Duration::from_secs(400);

/// The vendor's clients.
pub(super) struct Clients {
    sfctl: Peer,
    python: Peer,
}

impl Clients {
    /// Returns both clients. `None` if one is missing.
    pub(super) fn find() -> Option<Self> {
        Some(Self {
            sfctl: peers::find("sfctl")?,
            python: peers::find("sfctl-python")?,
        })
    }

    /// Runs a script against the cluster at `endpoint`, and returns its calls. Fails if the script fails.
    pub(super) async fn run(
        &self,
        script: &str,
        endpoint: &str,
        variables: &[(&str, PathBuf)],
    ) -> BTreeSet<String> {
        let home = tempfile::tempdir().expect("a directory can be made");
        let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/clients/python");
        let mut command = self.python.command();
        command
            .arg(scripts.join(script))
            // The environment does not influence the clients: no proxy, no certificates, no settings of a
            // user.
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("ONLY", std::env::var_os("ONLY").unwrap_or_default())
            .env("HOME", home.path())
            .env("LC_ALL", "C.UTF-8")
            .env("NO_PROXY", "*")
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .env("SFCTL", self.sfctl.path())
            .env("ENDPOINT", endpoint)
            .envs(variables.iter().map(|(name, value)| (name, value)));
        let done = peers::output_within(LIMIT, command).await.expect_success();
        let called = done
            .stdout
            .lines()
            .filter_map(|line| line.strip_prefix("called "));
        called.map(str::to_owned).collect()
    }
}
