//! Identities of clients from their TLS handshakes. They are stored under numbers, so that the connection
//! information stays small and can be copied: most connections have no identity.

use std::collections::HashMap;
use std::num::NonZeroU32;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU32, Ordering};

use parking_lot::RwLock;

use super::certificate::ClientCertificate;

/// The number under which the identity of a connection's client is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct IdentityKey(NonZeroU32);

/// Returns true if the connection may be used for requests that name this host.
pub(crate) type Covers = Box<dyn Fn(&[u8]) -> bool + Send + Sync>;

/// The identity of a client by its handshake.
struct Identity {
    certificate: Option<ClientCertificate>,
    /// `None`: the connection may be used for every host.
    covers: Option<Covers>,
}

/// The identities of open connections.
static IDENTITIES: LazyLock<RwLock<HashMap<NonZeroU32, Identity>>> = LazyLock::new(RwLock::default);

impl IdentityKey {
    /// The certificate that the client presented, while its connection is open.
    pub(super) fn certificate(self) -> Option<ClientCertificate> {
        IDENTITIES.read().get(&self.0)?.certificate.clone()
    }

    /// Returns true if the connection may be used for requests that name this host.
    pub(crate) fn covers(self, authority: &[u8]) -> bool {
        let identities = IDENTITIES.read();
        let covers = identities.get(&self.0).map(|known| known.covers.as_ref());
        // Without an entry the connection has ended.
        covers.is_some_and(|covers| covers.is_none_or(|covers| covers(authority)))
    }
}

/// The registered identity of a client, for as long as its connection is open.
#[derive(Debug)]
pub(crate) struct Registration(IdentityKey);

impl Registration {
    /// Stores the identity. `None` if there is none.
    pub(crate) fn new(
        certificate: Option<ClientCertificate>,
        covers: Option<Covers>,
    ) -> Option<Self> {
        static NEXT: AtomicU32 = AtomicU32::new(1);
        if certificate.is_none() && covers.is_none() {
            return None;
        }
        let mut identities = IDENTITIES.write();
        // Numbers come round again after four billion connections.
        let number = loop {
            let number = NonZeroU32::new(NEXT.fetch_add(1, Ordering::Relaxed));
            if let Some(number) = number.filter(|number| !identities.contains_key(number)) {
                break number;
            }
        };
        identities.insert(
            number,
            Identity {
                certificate,
                covers,
            },
        );
        Some(Self(IdentityKey(number)))
    }

    pub(crate) fn key(&self) -> IdentityKey {
        self.0
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        let removed = IDENTITIES.write().remove(&self.0.0);
        // Dropped without the lock.
        drop(removed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_known_is_there_for_as_long_as_its_connection() {
        assert!(Registration::new(None, None).is_none());
        let certificate = ClientCertificate::new(b"\xfb\xff\x00");
        let covers: Covers = Box::new(|host| host == b"a");
        let registration = Registration::new(certificate, Some(covers)).unwrap();
        let key = registration.key();
        let certificate = key.certificate().unwrap();
        assert_eq!(certificate.der(), b"\xfb\xff\x00");
        assert_eq!(certificate.value(), "+/8A");
        assert!(key.covers(b"a") && !key.covers(b"b"));
        drop(registration);
        assert!(key.certificate().is_none() && !key.covers(b"a"));
    }
}
