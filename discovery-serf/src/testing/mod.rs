//! An agent in memory, for tests of programs that use this crate.

mod commands;
mod connection;
mod state;
#[cfg(test)]
mod tests;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use parking_lot::Mutex;
use tokio::io::DuplexStream;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::AbortHandle;

use self::state::State;
use crate::client::{AuthKey, Event, MemberEventKind};
use crate::discoverer::{Dial, Transport};
use crate::member::{Member, MemberStatus, Tags};

/// Buffer size of each direction of a connection, in bytes.
const PIPE: usize = 64 * 1024;

/// An agent whose cluster and failures a test controls, and which counts its commands. It implements the
/// agents' protocol, over an in-memory pipe or over TCP, and behaves like agents of version 0.9.4, except
/// that it sends events at once instead of collecting them for a second. Clones share everything.
///
/// ```
/// use std::net::Ipv4Addr;
///
/// use discovery_core::ConfigProvider;
/// use discovery_serf::testing::AgentInMemory;
/// use discovery_serf::{Member, SerfDiscoverer, SerfOptions, Tags};
///
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() {
/// let agent = AgentInMemory::new("gw");
/// let provider = SerfDiscoverer::new(SerfOptions::default())
///     .with_dialer(agent.clone())
///     .runner()
///     .start();
///
/// let tags = Tags::from([("service", "orders"), ("http-port", "5000")]);
/// agent.join(Member::new("o1", Ipv4Addr::LOCALHOST.into(), tags));
///
/// let mut states = provider.subscribe();
/// let served = states.wait_for(|state| {
///     let config = state.config.as_deref();
///     config.is_some_and(|config| config.clusters.keys().any(|id| id.as_str() == "service:orders"))
/// });
/// assert!(served.await.is_ok());
/// assert_eq!(agent.all_calls()[..3], ["handshake", "stream", "members"]);
/// # }
/// ```
#[derive(Clone)]
pub struct AgentInMemory {
    shared: Arc<AgentShared>,
    listening: Arc<Listening>,
}

struct AgentShared {
    /// The state, watched by everyone who waits for a condition.
    state: watch::Sender<State>,
}

/// Accepts connections over TCP until the last handle of the agent is dropped.
#[derive(Default)]
struct Listening(Mutex<Vec<AbortHandle>>);

impl Drop for Listening {
    fn drop(&mut self) {
        let tasks = self.0.get_mut();
        tasks.iter().for_each(AbortHandle::abort);
    }
}

impl AgentInMemory {
    /// Creates an agent on a node of this name, alone in its cluster.
    pub fn new(node: impl Into<Arc<str>>) -> Self {
        Self {
            shared: Arc::new(AgentShared {
                state: watch::Sender::new(State::new(node.into())),
            }),
            listening: Arc::default(),
        }
    }

    /// Replaces the members of the cluster, without an event. The agent's own node is one of them only if
    /// it is in the list.
    pub fn set_members(&self, members: impl IntoIterator<Item = Member>) {
        self.edit(|state| state.members = members.into_iter().collect());
    }

    /// Adds a member, or replaces the one of its name, without an event.
    pub fn put(&self, member: Member) {
        self.edit(|state| state.put(member));
    }

    /// Takes a member out, without an event.
    pub fn remove(&self, name: &str) {
        self.edit(|state| state.members.retain(|member| &*member.name != name));
    }

    /// Removes all nodes but the agent's own, as after a restart.
    pub fn forget_others(&self) {
        self.edit(|state| {
            let own = Arc::clone(&state.node);
            state.members.retain(|member| member.name == own);
        });
    }

    /// Makes a member join, or come back.
    pub fn join(&self, member: Member) {
        let name = Arc::clone(&member.name);
        self.put(member);
        self.emit(MemberEventKind::Join, &[&name]);
    }

    /// Makes a member change its tags.
    pub fn retag(&self, name: &str, tags: Tags) {
        self.change(name, |member| member.tags = tags);
        self.emit(MemberEventKind::Update, &[name]);
    }

    /// Makes a member fail.
    pub fn fail(&self, name: &str) {
        self.change(name, |member| member.status = MemberStatus::Failed);
        self.emit(MemberEventKind::Failed, &[name]);
    }

    /// Makes a member leave.
    pub fn leave(&self, name: &str) {
        self.change(name, |member| member.status = MemberStatus::Left);
        self.emit(MemberEventKind::Leave, &[name]);
    }

    /// Sends an event about these members in their current state, to all streams whose filter matches. As
    /// with a real agent, a stream with 512 unread events gets none.
    pub fn emit(&self, kind: MemberEventKind, names: &[&str]) {
        let members = self.shared.state.borrow().named(names);
        self.emit_event(&Event::Member { kind, members });
    }

    /// Sends any event.
    pub fn emit_event(&self, event: &Event) {
        self.shared.emit(event);
    }

    /// Requires a key, as with `rpc_auth`, from connections that have not sent it. `None` to require none.
    pub fn demand_key(&self, key: Option<AuthKey>) {
        self.edit(|state| state.key = key);
    }

    /// Ends the agent: connections end, and no new ones are accepted. Over TCP new ones end at once.
    pub fn stop(&self) {
        self.edit(|state| {
            state.is_stopped = true;
            state.life += 1;
        });
    }

    /// Starts an agent that was stopped. Its members are as they were.
    pub fn start(&self) {
        self.edit(|state| state.is_stopped = false);
    }

    /// Ends all connections.
    pub fn restart(&self) {
        self.edit(|state| state.life += 1);
    }

    /// Stops all activity, as on `SIGSTOP`: connections can be made, but nothing is read or answered.
    pub fn stall(&self) {
        self.edit(|state| state.is_stalled = true);
    }

    /// Continues after [`stall`](Self::stall), with the requests that have arrived meanwhile.
    pub fn resume(&self) {
        self.edit(|state| state.is_stalled = false);
    }

    /// Rejects a command, such as `stream`, with this error until [`obey`](Self::obey).
    pub fn reject(&self, command: &str, error: &str) {
        self.edit(|state| {
            state
                .rejections
                .insert(command.to_owned(), error.to_owned());
        });
    }

    /// Carries a command out again.
    pub fn obey(&self, command: &str) {
        self.edit(|state| {
            state.rejections.remove(command);
        });
    }

    /// Delays the response to a command by `delay`. Events continue meanwhile only on other connections.
    pub fn delay(&self, command: &str, delay: Duration) {
        self.edit(|state| {
            state.delays.insert(command.to_owned(), delay);
        });
    }

    /// Responds to the first input with these bytes and ends the connection, like a server of another
    /// protocol. `None` to be an agent again.
    pub fn impersonate(&self, answer: Option<&[u8]>) {
        self.edit(|state| state.garbage = answer.map(Into::into));
    }

    /// Number of times that a command was given since [`forget_calls`](Self::forget_calls), over all
    /// connections.
    pub fn calls(&self, command: &str) -> usize {
        self.shared.state.borrow().count(command)
    }

    /// The commands that were given, in order.
    pub fn all_calls(&self) -> Vec<String> {
        self.shared.state.borrow().calls.clone()
    }

    /// Resets the count of commands.
    pub fn forget_calls(&self) {
        self.edit(|state| state.calls.clear());
    }

    /// Waits until a command was given this often.
    ///
    /// # Cancel safety
    ///
    /// May be dropped at any time.
    pub async fn wait_for_calls(&self, command: &str, times: usize) {
        self.wait_for(|state| state.count(command) >= times).await;
    }

    /// Number of connections.
    pub fn connections(&self) -> usize {
        self.shared.state.borrow().connections.len()
    }

    /// Waits until there are this many connections.
    ///
    /// # Cancel safety
    ///
    /// May be dropped at any time.
    pub async fn wait_for_connections(&self, connections: usize) {
        self.wait_for(|state| state.connections.len() == connections)
            .await;
    }

    /// Connects to the in-memory agent. The agent's side is a task of the current runtime.
    ///
    /// # Errors
    ///
    /// Returns an error if the agent is stopped: the connection is refused.
    pub fn connect(&self) -> io::Result<DuplexStream> {
        if self.shared.state.borrow().is_stopped {
            return Err(io::ErrorKind::ConnectionRefused.into());
        }
        let (client, agent) = tokio::io::duplex(PIPE);
        tokio::spawn(connection::serve(Arc::clone(&self.shared), agent));
        Ok(client)
    }

    /// Listens on a free port of this machine, until the last handle of the agent is dropped. Returns the address.
    ///
    /// # Errors
    ///
    /// Returns an error if there is no free port.
    ///
    /// # Cancel safety
    ///
    /// May be dropped at any time.
    pub async fn listen(&self) -> io::Result<SocketAddr> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let address = listener.local_addr()?;
        let shared = Arc::clone(&self.shared);
        let task = tokio::spawn(async move {
            // What keeps a connection from being accepted is of that connection.
            loop {
                if let Ok((stream, _)) = listener.accept().await {
                    tokio::spawn(connection::serve(Arc::clone(&shared), stream));
                }
            }
        });
        let tasks = self.listening.0.lock();
        let mut tasks = tasks;
        tasks.push(task.abort_handle());
        Ok(address)
    }

    fn change(&self, name: &str, change: impl FnOnce(&mut Member)) {
        self.edit(|state| {
            let mut members = state.members.iter_mut();
            if let Some(member) = members.find(|member| &*member.name == name) {
                change(member);
            }
        });
    }

    fn edit(&self, edit: impl FnOnce(&mut State)) {
        self.shared.state.send_modify(edit);
    }

    async fn wait_for(&self, condition: impl FnMut(&State) -> bool) {
        let mut state = self.shared.state.subscribe();
        // The sender is in `self`, so there is nothing else that it can end with.
        let _ = state.wait_for(condition).await;
    }
}

/// Dials this agent for every address, for discoverers of one agent.
#[async_trait]
impl Dial for AgentInMemory {
    async fn dial(&self, _address: &str) -> io::Result<Box<dyn Transport>> {
        Ok(Box::new(self.connect()?))
    }
}

impl std::fmt::Debug for AgentInMemory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let state = self.shared.state.borrow();
        f.debug_struct("AgentInMemory")
            .field("node", &state.node)
            .field("members", &state.members.len())
            .field("connections", &state.connections.len())
            .finish_non_exhaustive()
    }
}
