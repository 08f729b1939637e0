//! The state of an in-memory agent.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use fastrand::Rng;
use tokio::sync::mpsc;

use super::AgentShared;
use crate::client::{AuthKey, Event};
use crate::member::{Member, Tags};

/// Maximum number of queued events of one connection; a real agent has as many for each stream.
const QUEUE: usize = 512;

pub(super) struct State {
    pub(super) node: Arc<str>,
    pub(super) members: Vec<Member>,
    pub(super) key: Option<AuthKey>,
    pub(super) is_stopped: bool,
    pub(super) is_stalled: bool,
    /// Connections of an earlier life end.
    pub(super) life: u64,
    pub(super) rejections: BTreeMap<String, String>,
    pub(super) delays: BTreeMap<String, Duration>,
    pub(super) garbage: Option<Box<[u8]>>,
    pub(super) calls: Vec<String>,
    pub(super) connections: BTreeMap<u64, mpsc::Sender<Event>>,
    last_connection: u64,
    pub(super) logical_time: u64,
    rng: Rng,
}

impl State {
    pub(super) fn new(node: Arc<str>) -> Self {
        let own = Member::new(Arc::clone(&node), Ipv4Addr::LOCALHOST.into(), Tags::new());
        Self {
            node,
            members: vec![own],
            key: None,
            is_stopped: false,
            is_stalled: false,
            life: 0,
            rejections: BTreeMap::new(),
            delays: BTreeMap::new(),
            garbage: None,
            calls: Vec::new(),
            connections: BTreeMap::new(),
            last_connection: 0,
            logical_time: 0,
            rng: Rng::with_seed(7),
        }
    }

    pub(super) fn put(&mut self, member: Member) {
        self.members.retain(|other| other.name != member.name);
        self.members.push(member);
    }

    pub(super) fn named(&self, names: &[&str]) -> Vec<Member> {
        let named = self.members.iter();
        named
            .filter(|member| names.contains(&&*member.name))
            .cloned()
            .collect()
    }

    /// Returns the members in an order that differs each time, as that of an agent does.
    pub(super) fn listed(&mut self) -> Vec<Member> {
        self.rng.shuffle(&mut self.members);
        self.members.clone()
    }

    pub(super) fn count(&self, command: &str) -> usize {
        self.calls.iter().filter(|call| *call == command).count()
    }
}

impl AgentShared {
    /// Adds a connection: returns its number and its events. Returns `None` if the agent is stopped.
    pub(super) fn connected(&self) -> Option<(u64, mpsc::Receiver<Event>)> {
        let mut connection = None;
        self.state.send_modify(|state| {
            if !state.is_stopped {
                let (sender, receiver) = mpsc::channel(QUEUE);
                state.last_connection += 1;
                state.connections.insert(state.last_connection, sender);
                connection = Some((state.last_connection, receiver));
            }
        });
        connection
    }

    pub(super) fn disconnected(&self, connection: u64) {
        self.state.send_modify(|state| {
            state.connections.remove(&connection);
        });
    }

    /// Ends all connections of an agent that has left, after its last reply.
    pub(super) fn end_if_stopped(&self) {
        self.state.send_if_modified(|state| {
            state.life += u64::from(state.is_stopped);
            state.is_stopped
        });
    }

    pub(super) fn emit(&self, event: &Event) {
        for connection in self.state.borrow().connections.values() {
            // A real agent does not report dropped events either.
            let _ = connection.try_send(event.clone());
        }
    }
}
