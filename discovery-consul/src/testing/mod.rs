//! A Consul in memory: several datacenters, blocking queries, and faults on demand.
//!
//! [`FakeConsul`] is a [`Transport`], so a client over it behaves as over HTTP, and virtual time works. The
//! tests of this crate check it against the same contract as a real agent.
//!
//! ```
//! use discovery_consul::client::{Query, ServiceDefinition};
//! use discovery_consul::testing::FakeConsul;
//!
//! # #[tokio::main(flavor = "current_thread", start_paused = true)]
//! # async fn main() {
//! let consul = FakeConsul::new("sas");
//! consul.register("sas", "n1", ServiceDefinition::new("web", 8080));
//! let client = consul.client();
//! let web = client.health_service("web", &Query::new()).await.unwrap().value;
//! assert_eq!(web[0].service.port, 8080);
//! assert_eq!(consul.count("health/service/web"), 1);
//! # }
//! ```

mod faults;
mod request;
mod store;
mod writes;

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use http::{HeaderValue, Request, Response, StatusCode};
use parking_lot::{Mutex, MutexGuard};
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::Instant;

pub use self::faults::Fault;
use self::faults::Rule;
pub use self::request::SeenRequest;
use self::store::Store;
use crate::client::{
    ConsulClient, ConsulOptions, HealthStatus, ServiceDefinition, Transport, TransportError,
    TransportErrorKind,
};

/// The first index of a datacenter's history.
const FIRST_INDEX: u64 = 10;

/// A Consul in memory, seen from an agent in one of its datacenters. Clones are the same.
#[derive(Clone)]
pub struct FakeConsul {
    shared: Arc<FakeState>,
}

struct FakeState {
    own: String,
    state: Mutex<State>,
    /// Moves with everything.
    changes: watch::Sender<u64>,
}

#[derive(Default)]
struct State {
    datacenters: Vec<Store>,
    rules: Vec<Rule>,
    seen: Vec<SeenRequest>,
    in_flight: usize,
    most_in_flight: usize,
}

impl FakeConsul {
    /// Creates a Consul whose agent is in this datacenter, the only one for now.
    pub fn new(own: &str) -> Self {
        let consul = Self {
            shared: Arc::new(FakeState {
                own: own.to_owned(),
                state: Mutex::default(),
                changes: watch::Sender::new(0),
            }),
        };
        consul.add_datacenter(own);
        consul
    }

    /// Joins another datacenter.
    pub fn add_datacenter(&self, name: &str) {
        self.change(|state| state.datacenters.push(Store::new(name, FIRST_INDEX)));
    }

    /// Creates a client of this Consul, with options for an agent on this machine.
    pub fn client(&self) -> ConsulClient {
        self.client_with(ConsulOptions::default())
    }

    /// A client of it.
    pub fn client_with(&self, options: ConsulOptions) -> ConsulClient {
        let client = ConsulClient::builder(options)
            .transport(self.clone())
            .build();
        client.expect("the options are fit for an agent in memory")
    }

    /// Registers an instance, or replaces it.
    ///
    /// # Panics
    ///
    /// Panics if there is no such datacenter.
    #[track_caller]
    pub fn register(&self, datacenter: &str, node: &str, instance: ServiceDefinition) {
        self.in_datacenter(datacenter, |store| store.register(node, instance));
    }

    /// Removes an instance.
    ///
    /// # Panics
    ///
    /// Panics if there is no such datacenter.
    #[track_caller]
    pub fn deregister(&self, datacenter: &str, node: &str, id: &str) {
        self.in_datacenter(datacenter, |store| store.deregister(node, id));
    }

    /// Sets the status of a check.
    ///
    /// # Panics
    ///
    /// Panics if there is no such datacenter, or no such check.
    #[track_caller]
    pub fn set_check(&self, datacenter: &str, check: &str, status: HealthStatus) {
        let is_there = self.in_datacenter(datacenter, |store| store.set_check(check, status));
        assert!(is_there, "no check {check} in {datacenter}");
    }

    /// Takes a node out of service, or puts it back.
    ///
    /// # Panics
    ///
    /// Panics if there is no such datacenter.
    #[track_caller]
    pub fn set_node_maintenance(&self, datacenter: &str, node: &str, is_on: bool) {
        self.in_datacenter(datacenter, |store| store.set_node_maintenance(node, is_on));
    }

    /// Sets a key.
    ///
    /// # Panics
    ///
    /// Panics if there is no such datacenter.
    #[track_caller]
    pub fn put(&self, datacenter: &str, key: &str, value: &[u8]) {
        self.in_datacenter(datacenter, |store| store.put(key, value));
    }

    /// Clears a datacenter and restarts its history, like servers in development mode after a restart.
    ///
    /// # Panics
    ///
    /// Panics if there is no such datacenter.
    #[track_caller]
    pub fn forget(&self, datacenter: &str) {
        self.in_datacenter(datacenter, |store| {
            *store = Store::new(datacenter, FIRST_INDEX);
        });
    }

    /// Injects a fault into all requests whose path after `/v1/` begins so, also into waiting ones. The
    /// latest matching fault counts.
    pub fn fail(&self, path: &str, fault: Fault) {
        self.add_rule(None, path, false, fault);
    }

    /// Injects a fault like [`fail`](Self::fail), for one datacenter only.
    pub fn fail_in(&self, datacenter: &str, path: &str, fault: Fault) {
        self.add_rule(Some(datacenter), path, false, fault);
    }

    /// Injects a fault into requests that any server may process, even without a leader.
    pub fn fail_stale(&self, path: &str, fault: Fault) {
        self.add_rule(None, path, true, fault);
    }

    /// Removes all faults.
    pub fn heal(&self) {
        self.change(|state| state.rules.clear());
    }

    /// Returns all requests so far.
    pub fn requests(&self) -> Vec<SeenRequest> {
        self.state().seen.clone()
    }

    /// Number of requests so far whose path after `/v1/` begins with `path`.
    pub fn count(&self, path: &str) -> usize {
        let state = self.state();
        let matching = state.seen.iter().filter(|seen| seen.path.starts_with(path));
        matching.count()
    }

    /// Maximum number of concurrent requests so far.
    pub fn most_in_flight(&self) -> usize {
        self.state().most_in_flight
    }

    fn add_rule(&self, datacenter: Option<&str>, path: &str, stale_only: bool, fault: Fault) {
        let rule = Rule {
            datacenter: datacenter.map(str::to_owned),
            path: path.to_owned(),
            stale_only,
            fault,
        };
        self.change(|state| state.rules.push(rule));
    }

    #[track_caller]
    fn in_datacenter<T>(&self, name: &str, change: impl FnOnce(&mut Store) -> T) -> T {
        let changed = self.change(|state| {
            let store = state
                .datacenters
                .iter_mut()
                .find(|store| store.name == name);
            store.map(change)
        });
        match changed {
            Some(value) => value,
            None => panic!("no datacenter {name}"),
        }
    }

    fn change<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        let value = change(&mut self.state());
        self.shared.changes.send_modify(|changes| *changes += 1);
        value
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // It is valid between any two changes.
        self.shared.state.lock()
    }

    fn datacenter_of<'r>(&'r self, request: &'r SeenRequest) -> &'r str {
        request.parameter("dc").unwrap_or(&self.shared.own)
    }

    fn fault_for(&self, request: &SeenRequest) -> Option<Fault> {
        let datacenter = self.datacenter_of(request);
        let is_stale = request.parameter("stale").is_some();
        let state = self.state();
        let rule = state.rules.iter().rev().find(|rule| {
            request.path.starts_with(&rule.path)
                && rule
                    .datacenter
                    .as_deref()
                    .is_none_or(|only| only == datacenter)
                && (is_stale || !rule.stale_only)
        });
        rule.map(|rule| rule.fault)
    }

    /// Returns the response to a reading request in the current state.
    fn read(&self, request: &SeenRequest) -> Reply {
        let state = self.state();
        let path: Vec<_> = request.path.splitn(3, '/').collect();
        match path[..] {
            ["status", "leader"] => return Reply::plain(&json!("10.0.0.1:8300")),
            ["catalog", "datacenters"] => {
                let names: Vec<_> = state.datacenters.iter().map(|store| &store.name).collect();
                return Reply::plain(&json!(names));
            }
            ["agent", "self"] => {
                let own = &self.shared.own;
                let config =
                    json!({"Datacenter": own, "NodeName": format!("{own}-1"), "Version": "1.8.7"});
                return Reply::plain(&json!({ "Config": config }));
            }
            _ => {}
        }
        let datacenter = self.datacenter_of(request);
        let mut stores = state.datacenters.iter();
        let Some(store) = stores.find(|store| store.name == datacenter) else {
            return Reply::error(500, "No path to datacenter");
        };
        let key = || request.path.strip_prefix("kv/").unwrap_or_default();
        match path[..] {
            ["catalog", "services"] => Reply::found(store.list()),
            ["health", "state", "any"] => Reply::found(store.checks()),
            ["health", "service", name] => {
                Reply::found(store.health(name, request.parameter("passing").is_some()))
            }
            ["kv", ..] => Reply::maybe(match request.parameter("recurse") {
                Some(_) => store.values(key()),
                None => store.value(key()),
            }),
            _ => Reply::error(404, ""),
        }
    }

    /// Responds to a reading request, at once or after a change.
    async fn wait(&self, request: &SeenRequest) -> Result<Reply, TransportError> {
        let mut changes = self.shared.changes.subscribe();
        // Servers add up to a sixteenth.
        let wait = request.wait();
        let until = Instant::now() + wait + wait.mul_f64(fastrand::f64() / 16.0);
        loop {
            changes.borrow_and_update();
            let reply = self.read(request);
            match self.fault_for(request) {
                Some(Fault::Hang) => {}
                Some(Fault::Reset) => {
                    let message = "the connection ended";
                    return Err(TransportError::new(
                        TransportErrorKind::Interrupted,
                        message,
                    ));
                }
                Some(Fault::Slow(delay)) => {
                    tokio::time::sleep(delay).await;
                    return Ok(self.read(request));
                }
                Some(fault) => return Ok(reply.with(fault)),
                None => {
                    let asked = request.index();
                    let is_news = asked == 0 || reply.index.is_none_or(|index| index > asked);
                    if is_news || reply.status >= 500 || Instant::now() >= until {
                        return Ok(reply);
                    }
                }
            }
            let is_hung = self.fault_for(request) == Some(Fault::Hang);
            tokio::select! {
                _ = changes.changed() => {}
                () = tokio::time::sleep_until(until), if !is_hung => {}
            }
        }
    }
}

/// A response that is being built.
struct Reply {
    status: u16,
    index: Option<u64>,
    has_leader: bool,
    body: String,
}

impl Reply {
    fn plain(body: &Value) -> Self {
        Self {
            status: 200,
            index: None,
            has_leader: true,
            body: body.to_string(),
        }
    }

    fn found((index, body): (u64, Value)) -> Self {
        Self {
            index: Some(index),
            ..Self::plain(&body)
        }
    }

    fn maybe((index, body): (u64, Option<Value>)) -> Self {
        match body {
            Some(body) => Self::found((index, body)),
            None => Self {
                status: 404,
                body: String::new(),
                ..Self::found((index, Value::Null))
            },
        }
    }

    fn error(status: u16, text: &str) -> Self {
        Self {
            status,
            index: Some(1),
            has_leader: false,
            body: text.to_owned(),
        }
    }

    fn with(mut self, fault: Fault) -> Self {
        let is_list = self.body.starts_with('[');
        match fault {
            Fault::Hang | Fault::Reset | Fault::Slow(_) => {}
            Fault::Status(status, text) => return Self::error(status, text),
            Fault::Empty | Fault::EmptyWithoutLeader => {
                self.has_leader = fault == Fault::Empty;
                self.body = if is_list { "[]" } else { "{}" }.to_owned();
            }
            Fault::Index(index) => self.index = Some(index),
            Fault::NoIndex => self.index = None,
            Fault::Garbage => self.body = "<html>".to_owned(),
        }
        self
    }

    fn into_response(self) -> Response<Bytes> {
        let mut response = Response::new(Bytes::from(self.body));
        *response.status_mut() = StatusCode::from_u16(self.status).expect("faults have statuses");
        let headers = response.headers_mut();
        if let Some(index) = self.index {
            headers.insert("x-consul-index", HeaderValue::from(index));
        }
        let leader = if self.has_leader { "true" } else { "false" };
        headers.insert("x-consul-knownleader", HeaderValue::from_static(leader));
        headers.insert("x-consul-lastcontact", HeaderValue::from_static("0"));
        response
    }
}

/// Counts a request while it is in flight, however it ends.
struct InFlight(FakeConsul);

impl InFlight {
    fn begin(consul: &FakeConsul, request: &SeenRequest) -> Self {
        let mut state = consul.state();
        state.seen.push(request.clone());
        state.in_flight += 1;
        state.most_in_flight = state.most_in_flight.max(state.in_flight);
        drop(state);
        Self(consul.clone())
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0.state().in_flight -= 1;
    }
}

#[async_trait]
impl Transport for FakeConsul {
    async fn send(
        &self,
        request: Request<Bytes>,
        max_body: usize,
    ) -> Result<Response<Bytes>, TransportError> {
        let seen = SeenRequest::of(&request);
        let _in_flight = InFlight::begin(self, &seen);
        if seen.method != "GET" && self.fault_for(&seen).is_none() {
            return Ok(self.write(&seen, request.body()).into_response());
        }
        let reply = self.wait(&seen).await?;
        if reply.body.len() > max_body {
            let message = "the answer is too large";
            return Err(TransportError::new(TransportErrorKind::TooLarge, message));
        }
        Ok(reply.into_response())
    }
}

impl fmt::Debug for FakeConsul {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FakeConsul")
            .field("own", &self.shared.own)
            .finish_non_exhaustive()
    }
}
