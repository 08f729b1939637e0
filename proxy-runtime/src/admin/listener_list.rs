//! `/api/v1/listeners`: the open listeners with their certificates.

use std::net::SocketAddr;
use std::time::SystemTime;

use serde::Serialize;

use super::state::AdminState;
use crate::connection::ListenerRules;
use crate::server::Listener;
#[cfg(feature = "tls")]
use crate::server::TlsServerConfig;

/// An open listener.
pub(super) struct OpenListener {
    name: String,
    address: SocketAddr,
    rules: ListenerRules,
    #[cfg(feature = "tls")]
    tls: Option<TlsServerConfig>,
}

impl OpenListener {
    /// Creates the row of a listener that is bound to `address`.
    pub(super) fn new(listener: &Listener, address: SocketAddr) -> Self {
        Self {
            name: listener.name(),
            address,
            rules: listener.rules(),
            #[cfg(feature = "tls")]
            tls: listener.tls().cloned(),
        }
    }
}

#[derive(Serialize)]
pub(super) struct ListenerList {
    listeners: Vec<ListenerView>,
}

#[derive(Serialize)]
struct ListenerView {
    name: String,
    address: String,
    tls: bool,
    /// True if paths must have one meaning for every program behind the proxy.
    strict_paths: bool,
    /// True if all clients are trusted proxies.
    trusts_senders: bool,
    certificates: Vec<CertificateView>,
}

#[derive(Serialize)]
struct CertificateView {
    names: Vec<String>,
    /// Seconds until it expires, negative if it has expired. `None` if that is unknown.
    expires_in: Option<i64>,
}

pub(super) fn of(admin: &AdminState) -> ListenerList {
    let listeners = admin.open_listeners.iter();
    ListenerList {
        listeners: listeners.map(view).collect(),
    }
}

fn view(listener: &OpenListener) -> ListenerView {
    let rules = listener.rules;
    let (tls, certificates) = certificates(listener);
    ListenerView {
        name: listener.name.clone(),
        address: listener.address.to_string(),
        tls,
        strict_paths: rules.strict_paths,
        trusts_senders: rules.trusts_senders,
        certificates,
    }
}

#[cfg(feature = "tls")]
fn certificates(listener: &OpenListener) -> (bool, Vec<CertificateView>) {
    let Some(tls) = &listener.tls else {
        return (false, Vec::new());
    };
    let now = SystemTime::now();
    let all = tls.certificates().certificates();
    let views = all.iter().map(|certificate| CertificateView {
        names: certificate.names().to_vec(),
        expires_in: certificate.expires_at().map(|at| seconds_until(at, now)),
    });
    (true, views.collect())
}

#[cfg(not(feature = "tls"))]
fn certificates(_: &OpenListener) -> (bool, Vec<CertificateView>) {
    (false, Vec::new())
}

#[cfg_attr(not(feature = "tls"), expect(dead_code, reason = "for certificates"))]
fn seconds_until(moment: SystemTime, now: SystemTime) -> i64 {
    let seconds =
        |duration: std::time::Duration| i64::try_from(duration.as_secs()).unwrap_or(i64::MAX);
    match moment.duration_since(now) {
        Ok(left) => seconds(left),
        Err(past) => -seconds(past.duration()),
    }
}
