use std::fmt;
use std::net::SocketAddr;
use std::process::ExitStatus;

use super::builder::Recipe;
use super::ready;
use crate::peers::{self, PeerProcess};
use crate::time::guarded;

/// Number of log lines that are shown when a test fails.
const SHOWN_LINES: usize = 40;

/// A running agent. Dropping it kills it, which looks like a crash to its cluster.
#[derive(Debug)]
#[must_use = "the agent is killed when this is dropped"]
pub struct SerfAgent {
    pub(super) recipe: Recipe,
    process: PeerProcess,
}

/// The reason why an agent has not started.
#[derive(Debug)]
pub(super) struct NotStarted {
    name: String,
    status: ExitStatus,
    output: String,
}

impl SerfAgent {
    pub(super) async fn start(recipe: Recipe) -> Result<Self, NotStarted> {
        let process = launch(&recipe).await?;
        Ok(Self { recipe, process })
    }

    /// The name of the node.
    pub fn name(&self) -> &str {
        &self.recipe.name
    }

    /// The RPC address.
    pub fn rpc_addr(&self) -> SocketAddr {
        self.recipe.place.rpc
    }

    /// The gossip address, which other agents join.
    pub fn gossip_addr(&self) -> SocketAddr {
        self.recipe.place.gossip
    }

    /// The command line of the agent, as typed in a shell.
    pub fn command_line(&self) -> String {
        format!("serf agent {}", self.recipe.arguments.join(" "))
    }

    /// The log since the last start.
    pub fn log(&self) -> String {
        self.process.output()
    }

    /// Kills the process (SIGKILL): its cluster notices some seconds later.
    pub async fn kill(&mut self) {
        self.process.kill().await;
    }

    /// Ends the process (SIGTERM), by default without leaving: it looks like a crash to its
    /// cluster.
    pub async fn terminate(&mut self) -> ExitStatus {
        self.process.terminate();
        self.process.wait().await
    }

    /// Waits for the end of the process, whatever its cause.
    pub async fn ended(&mut self) -> ExitStatus {
        self.process.wait().await
    }

    /// Reloads its configuration (SIGHUP): connections stay, and tags set over RPC are lost.
    pub fn reload(&self) {
        self.process.hang_up();
    }

    /// Suspends the process (SIGSTOP): connections stay and can be opened, and there are no
    /// responses.
    pub fn suspend(&self) {
        self.process.suspend();
    }

    /// Resumes the process after [`suspend`](Self::suspend) (SIGCONT).
    pub fn resume(&self) {
        self.process.resume();
    }

    /// Changes a tag from the next start on.
    pub fn start_with_tag(&mut self, key: &str, value: &str) {
        let arguments = &mut self.recipe.arguments;
        let prefix = format!("-tag={key}=");
        arguments.retain(|argument| !argument.starts_with(&prefix));
        arguments.push(format!("{prefix}{value}"));
    }

    /// Kills the process, if it still runs, and starts it again on the same ports and with the same
    /// arguments.
    ///
    /// # Panics
    ///
    /// With its output when it does not start.
    pub async fn restart(&mut self) {
        self.kill().await;
        match launch(&self.recipe).await {
            Ok(process) => self.process = process,
            Err(failed) => panic!("{failed}"),
        }
    }
}

/// Starts the program and waits until it responds.
async fn launch(recipe: &Recipe) -> Result<PeerProcess, NotStarted> {
    let mut command = recipe.program.command();
    command.arg("agent").args(&recipe.arguments);
    let mut process = peers::spawn(command);
    let started = guarded(format!("the agent {}", recipe.name), async {
        tokio::select! {
            ended = process.wait_with_output() => Err(ended),
            () = ready::answers(recipe.place.rpc) => Ok(()),
        }
    });
    match started.await {
        Ok(()) => Ok(process),
        Err((status, output)) => Err(NotStarted {
            name: recipe.name.clone(),
            status,
            output,
        }),
    }
}

impl NotStarted {
    pub(super) fn is_for_a_taken_port(&self) -> bool {
        self.output.contains("address already in use")
    }
}

impl fmt::Display for NotStarted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            name,
            status,
            output,
        } = self;
        write!(f, "the agent {name} did not start ({status}):\n{output}")
    }
}

impl Drop for SerfAgent {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let log = self.log();
            let lines: Vec<_> = log.lines().collect();
            let last = &lines[lines.len().saturating_sub(SHOWN_LINES)..];
            eprintln!("--- the agent {}\n{}", self.name(), last.join("\n"));
        }
    }
}
