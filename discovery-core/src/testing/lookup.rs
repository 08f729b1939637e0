//! Look-ups that a test controls.

use std::collections::HashMap;
use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use parking_lot::{Mutex, MutexGuard};

use crate::resolver::{Lookup, SrvRecord};

/// A [`Lookup`] whose names are set by a test. A name that was not set does not exist. Clones share the names.
#[derive(Clone, Debug, Default)]
pub struct ScriptedLookup {
    shared: Arc<Mutex<ScriptedNames>>,
}

#[derive(Debug, Default)]
struct ScriptedNames {
    answers: HashMap<String, ScriptedAnswer>,
    /// The time for which all results are valid.
    valid: Option<Duration>,
    calls: usize,
}

#[derive(Clone, Debug)]
enum ScriptedAnswer {
    Addresses(Vec<IpAddr>),
    Servers(Vec<SrvRecord>),
    Failure,
    Hang,
}

impl ScriptedLookup {
    /// Creates a look-up in which no name exists.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the addresses of a name.
    ///
    /// # Panics
    ///
    /// Panics if one of the addresses is not an IP address.
    #[track_caller]
    pub fn set(&self, name: &str, addresses: &[&str]) {
        let addresses = addresses
            .iter()
            .map(|text| text.parse().expect("an IP address"))
            .collect();
        self.answer(name, ScriptedAnswer::Addresses(addresses));
    }

    /// Sets the servers of a service: priority, weight, name and port.
    pub fn set_servers(&self, name: &str, servers: &[(u16, u16, &str, u16)]) {
        let servers = servers.iter();
        let servers = servers.map(|(priority, weight, target, port)| SrvRecord {
            priority: *priority,
            weight: *weight,
            target: (*target).to_owned(),
            port: *port,
        });
        self.answer(name, ScriptedAnswer::Servers(servers.collect()));
    }

    /// Sets the time for which all results are valid.
    pub fn valid_for(&self, time: Duration) {
        self.names().valid = Some(time);
    }

    /// Makes looking up a name fail.
    pub fn fail(&self, name: &str) {
        self.answer(name, ScriptedAnswer::Failure);
    }

    /// Makes looking up a name take forever.
    pub fn hang(&self, name: &str) {
        self.answer(name, ScriptedAnswer::Hang);
    }

    /// Number of names that were looked up.
    pub fn calls(&self) -> usize {
        self.names().calls
    }

    fn ask(&self, name: &str) -> Option<ScriptedAnswer> {
        let mut names = self.names();
        names.calls += 1;
        names.answers.get(name).cloned()
    }

    fn answer(&self, name: &str, answer: ScriptedAnswer) {
        self.names().answers.insert(name.to_owned(), answer);
    }

    fn names(&self) -> MutexGuard<'_, ScriptedNames> {
        self.shared.lock()
    }
}

#[async_trait]
impl Lookup for ScriptedLookup {
    async fn lookup(&self, host: &str) -> io::Result<Vec<IpAddr>> {
        let answer = self.ask(host);
        match answer {
            Some(ScriptedAnswer::Addresses(addresses)) => Ok(addresses),
            other => failure(other).await,
        }
    }

    async fn addresses(&self, host: &str) -> io::Result<(Vec<IpAddr>, Option<Duration>)> {
        let found = self.lookup(host).await?;
        Ok((found, self.names().valid))
    }

    async fn servers(&self, service: &str) -> io::Result<(Vec<SrvRecord>, Option<Duration>)> {
        match self.ask(service) {
            Some(ScriptedAnswer::Servers(servers)) => Ok((servers, self.names().valid)),
            other => failure(other).await,
        }
    }
}

async fn failure<T>(answer: Option<ScriptedAnswer>) -> io::Result<T> {
    match answer {
        Some(ScriptedAnswer::Hang) => std::future::pending().await,
        Some(ScriptedAnswer::Failure) => Err(io::Error::other("the name server failed")),
        _ => Err(io::Error::new(io::ErrorKind::NotFound, "no such name")),
    }
}
