//! Look-ups that a test controls.

use std::collections::HashMap;
use std::io;
use std::net::IpAddr;
use std::sync::Arc;

use async_trait::async_trait;
use parking_lot::{Mutex, MutexGuard};

use crate::resolver::Lookup;

/// A [`Lookup`] whose names are set by a test. A name that was not set does not exist. Clones share the names.
#[derive(Clone, Debug, Default)]
pub struct ScriptedLookup {
    shared: Arc<Mutex<ScriptedNames>>,
}

#[derive(Debug, Default)]
struct ScriptedNames {
    answers: HashMap<String, ScriptedAnswer>,
    calls: usize,
}

#[derive(Clone, Debug)]
enum ScriptedAnswer {
    Addresses(Vec<IpAddr>),
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
        let answer = {
            let mut names = self.names();
            names.calls += 1;
            names.answers.get(host).cloned()
        };
        match answer {
            Some(ScriptedAnswer::Addresses(addresses)) => Ok(addresses),
            Some(ScriptedAnswer::Failure) => Err(io::Error::other("the name server failed")),
            Some(ScriptedAnswer::Hang) => std::future::pending().await,
            None => Err(io::Error::new(io::ErrorKind::NotFound, "no such name")),
        }
    }
}
