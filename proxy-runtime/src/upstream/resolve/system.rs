//! Name resolution by the operating system.

use std::io;
use std::net::{IpAddr, ToSocketAddrs};

use async_trait::async_trait;

use super::{LookUp, LookupOutcome, Most, hosts};

/// Resolves with `getaddrinfo`.
///
/// A look-up cannot be cancelled: one that hangs keeps its thread of tokio's blocking pool. Hanging
/// names therefore share few threads, and names known to resolve have threads that new names cannot
/// take.
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

    async fn look_up(&self, name: &str) -> LookupOutcome {
        let name = name.to_owned();
        // The C library blocks, so the call needs a thread.
        let work = move || -> io::Result<Vec<IpAddr>> {
            // The port does not matter, since only the addresses are used.
            let found = (&*name, 0).to_socket_addrs()?;
            Ok(found.map(|address| address.ip()).collect())
        };
        let thread = tokio::task::spawn_blocking(work);
        let found = thread.await.map_err(io::Error::other).and_then(|it| it);
        LookupOutcome::from(found)
    }
}
