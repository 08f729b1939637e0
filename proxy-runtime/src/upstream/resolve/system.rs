//! Names by the rules of the operating system.

use std::io;
use std::net::{IpAddr, ToSocketAddrs};

use async_trait::async_trait;

use super::{LookUp, Most, Outcome, hosts};

/// Asks the system (`getaddrinfo`).
///
/// A look-up cannot be stopped: one that hangs keeps its thread of tokio's blocking pool. So names that hang share few threads, and
/// those that are known to answer have threads that no new name takes.
pub(super) struct System;

#[async_trait]
impl LookUp for System {
    fn most(&self) -> Most {
        Most {
            known: 32,
            new: 128,
            hanging: 16,
        }
    }

    fn can_be_stopped(&self) -> bool {
        false
    }

    async fn at_hand(&self, name: &str) -> Vec<IpAddr> {
        hosts::find(name).await
    }

    async fn look_up(&self, name: &str) -> Outcome {
        let name = name.to_owned();
        let work = move || -> io::Result<Vec<IpAddr>> {
            let found = (&*name, 0).to_socket_addrs()?;
            Ok(found.map(|address| address.ip()).collect())
        };
        let thread = tokio::task::spawn_blocking(work);
        let found = thread.await.map_err(io::Error::other).and_then(|it| it);
        Outcome::from(found)
    }
}
