use std::fmt;
use std::net::SocketAddr;
use std::process::ExitStatus;

use super::builder::Recipe;
use super::ready;
use crate::peers::{self, PeerProcess};
use crate::time::guarded;

/// How much of an agent's log is shown when a test fails.
const SHOWN_LINES: usize = 40;

/// A running agent. When this is dropped it is killed, which its cluster takes for a crash.
#[derive(Debug)]
#[must_use = "the agent is killed when this is dropped"]
pub struct SerfAgent {
    pub(super) recipe: Recipe,
    process: PeerProcess,
}

/// Why an agent has not started.
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

    /// What the node is called.
    pub fn name(&self) -> &str {
        &self.recipe.name
    }

    /// Where it answers to RPC.
    pub fn rpc_addr(&self) -> SocketAddr {
        self.recipe.place.rpc
    }

    /// Where it gossips, which is what others join.
    pub fn gossip_addr(&self) -> SocketAddr {
        self.recipe.place.gossip
    }

    /// How it was started, as a person would type it.
    pub fn command_line(&self) -> String {
        format!("serf agent {}", self.recipe.arguments.join(" "))
    }

    /// What it has logged since it was last started.
    pub fn log(&self) -> String {
        self.process.output()
    }

    /// Kills it (SIGKILL): its cluster learns of that some seconds later.
    pub async fn kill(&mut self) {
        self.process.kill().await;
    }

    /// Asks it to end (SIGTERM), which by default is no leave: its cluster takes it for a crash.
    pub async fn terminate(&mut self) -> ExitStatus {
        self.process.terminate();
        self.process.wait().await
    }

    /// Waits for its end, whoever caused it.
    pub async fn ended(&mut self) -> ExitStatus {
        self.process.wait().await
    }

    /// Lets it read its configuration again (SIGHUP): connections to it stay, and tags that it was told over RPC are gone.
    pub fn reload(&self) {
        self.process.hang_up();
    }

    /// Freezes it (SIGSTOP): connections to it stay, and can still be made, and nothing answers.
    pub fn suspend(&self) {
        self.process.suspend();
    }

    /// Lets it go on after [`suspend`](Self::suspend) (SIGCONT).
    pub fn resume(&self) {
        self.process.resume();
    }

    /// Says something else about itself from the next start on.
    pub fn start_with_tag(&mut self, key: &str, value: &str) {
        let arguments = &mut self.recipe.arguments;
        let prefix = format!("-tag={key}=");
        arguments.retain(|argument| !argument.starts_with(&prefix));
        arguments.push(format!("{prefix}{value}"));
    }

    /// Kills it, if it still runs, and starts it again on the same ports and with the same arguments.
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

/// Starts the program and waits until it answers.
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
