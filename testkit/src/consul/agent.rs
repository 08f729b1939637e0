use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use serde_json::Value;

use super::builder::ConsulRecipe;
use crate::body;
use crate::client::{ClientError, Connection};
use crate::peers::{self, PeerProcess};
use crate::time::{eventually, guarded};

/// Number of log lines that are shown when a test fails.
const SHOWN_LINES: usize = 40;

/// The HTTP port of an agent.
const HTTP_PORT: u16 = 8500;

/// Pause between two checks of readiness.
const REST: Duration = Duration::from_millis(20);

/// A running agent. Dropping it kills it.
#[derive(Debug)]
#[must_use = "the agent is killed when this is dropped"]
pub struct ConsulAgent {
    recipe: ConsulRecipe,
    process: PeerProcess,
}

/// A response of an agent.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ConsulAnswer {
    /// The status.
    pub status: u16,
    /// The body.
    pub body: String,
}

impl ConsulAnswer {
    /// Parses the body as JSON.
    ///
    /// # Panics
    ///
    /// Panics if it is invalid, or if the status is not 2xx.
    #[track_caller]
    pub fn json(&self) -> Value {
        match serde_json::from_str(&self.body) {
            Ok(value) if self.status == 200 => value,
            _ => panic!("it answered {self:?}"),
        }
    }
}

impl ConsulAgent {
    pub(super) async fn start(recipe: ConsulRecipe) -> Self {
        let process = launch(&recipe).await;
        Self { recipe, process }
    }

    /// The name of the datacenter.
    pub fn datacenter(&self) -> &str {
        &self.recipe.datacenter
    }

    /// The name of the node.
    pub fn node(&self) -> String {
        format!("{}-1", self.recipe.datacenter)
    }

    /// The address, with Consul's usual ports.
    pub fn ip(&self) -> IpAddr {
        self.recipe.ip
    }

    /// The URL of the HTTP API.
    pub fn url(&self) -> String {
        format!("http://{}", http_addr(&self.recipe))
    }

    /// The log since the last start.
    pub fn log(&self) -> String {
        self.process.output()
    }

    /// Sends an HTTP request, with the master token if there is one.
    ///
    /// # Panics
    ///
    /// Panics if the agent does not respond.
    pub async fn call(&self, method: &str, path: &str, body: &str) -> ConsulAnswer {
        let answer = guarded(
            format!("{method} {path}"),
            call(&self.recipe, method, path, body),
        );
        match answer.await {
            Ok(answer) => answer,
            Err(error) => panic!("{method} {path}: {error}"),
        }
    }

    /// Waits until the servers of another datacenter are reachable.
    ///
    /// # Panics
    ///
    /// When that takes too long.
    pub async fn wait_for_datacenter(&self, name: &str) {
        let path = format!("/v1/catalog/nodes?dc={name}");
        eventually(format!("{} reaches {name}", self.datacenter()), || async {
            let answer = call(&self.recipe, "GET", &path, "").await;
            answer.is_ok_and(|answer| answer.body.contains(&format!("{name}-1")))
        })
        .await;
    }

    /// Kills the process (SIGKILL).
    pub async fn kill(&mut self) {
        self.process.kill().await;
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

    /// Kills the process, if it still runs, and starts it again at the same address with empty
    /// state.
    ///
    /// # Panics
    ///
    /// With its output when it does not start.
    pub async fn restart(&mut self) {
        self.kill().await;
        self.process = launch(&self.recipe).await;
    }
}

/// Starts the program and waits until it has registered itself, its last step.
async fn launch(recipe: &ConsulRecipe) -> PeerProcess {
    let mut command = recipe.program.command();
    command.arg("agent").args(&recipe.arguments);
    let mut process = peers::spawn(command);
    let ready = async {
        let itself = format!("{}-1", recipe.datacenter);
        loop {
            // The last registration of a server by itself, with the check of its node.
            let servers = call(recipe, "GET", "/v1/health/service/consul?passing", "").await;
            if servers.is_ok_and(|servers| servers.status == 200 && servers.body.contains(&itself))
            {
                return;
            }
            tokio::time::sleep(REST).await;
        }
    };
    let ended = guarded(format!("the agent of {}", recipe.datacenter), async {
        tokio::select! {
            ended = process.wait_with_output() => Some(ended),
            () = ready => None,
        }
    });
    if let Some((status, output)) = ended.await {
        panic!(
            "the agent of {} did not start ({status}):\n{output}",
            recipe.datacenter
        );
    }
    process
}

async fn call(
    recipe: &ConsulRecipe,
    method: &str,
    path: &str,
    text: &str,
) -> Result<ConsulAnswer, ClientError> {
    let mut connection = Connection::http1(http_addr(recipe)).await?;
    let mut request = connection.request(method, path);
    if let Some(token) = &recipe.master_token {
        request = request.header("x-consul-token", token);
    }
    let request = request.body(body::full(text.to_owned()));
    let answer = connection
        .send(request.expect("tests make good requests"))
        .await?;
    Ok(ConsulAnswer {
        status: answer.status.as_u16(),
        body: String::from_utf8_lossy(&answer.body).into_owned(),
    })
}

fn http_addr(recipe: &ConsulRecipe) -> SocketAddr {
    SocketAddr::new(recipe.ip, HTTP_PORT)
}

impl Drop for ConsulAgent {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let log = self.log();
            let lines: Vec<_> = log.lines().collect();
            let last = &lines[lines.len().saturating_sub(SHOWN_LINES)..];
            eprintln!(
                "--- the agent of {}\n{}",
                self.datacenter(),
                last.join("\n")
            );
        }
    }
}
