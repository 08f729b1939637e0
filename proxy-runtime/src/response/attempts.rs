//! Attempts of layers to have one request answered.

use parking_lot::{Mutex, MutexGuard};
use proxy_model::RouteId;

use crate::error::ForwardErrorKind;
use crate::response::{ExchangeInfo, OpenAccount};

/// What became of the attempts that layers made to have one request answered.
pub(crate) struct Attempts {
    route: RouteId,
    seen: Mutex<Seen>,
}

#[derive(Default)]
struct Seen {
    is_begun: bool,
    last: Option<ExchangeInfo>,
    tunnel: Tunnel,
}

/// Whether an attempt has become a tunnel.
#[derive(Default)]
enum Tunnel {
    #[default]
    None,
    /// It has, and it is the tunnel that the request ends with.
    Open,
    /// The same. The request is to be counted when it ends.
    Counted(OpenAccount),
    /// It has ended already.
    Ended(Option<ForwardErrorKind>),
}

impl Attempts {
    /// None has been made.
    pub(crate) fn new(route: RouteId) -> Self {
        Self {
            route,
            seen: Mutex::default(),
        }
    }

    /// The route that the layers are around.
    pub(crate) fn route(&self) -> &RouteId {
        &self.route
    }

    /// Takes note of what is known of an attempt.
    pub(crate) fn note(&self, info: ExchangeInfo) {
        self.lock().last = Some(info);
    }

    /// What became of the last one, if there was one. To be asked once.
    pub(crate) fn take_last(&self) -> Option<ExchangeInfo> {
        self.lock().last.take()
    }

    /// Returns whether none has been made.
    pub(crate) fn is_empty(&self) -> bool {
        !self.lock().is_begun
    }

    /// An attempt is made.
    pub(crate) fn begin(&self) {
        self.lock().is_begun = true;
    }

    /// An attempt becomes a tunnel.
    pub(crate) fn begin_tunnel(&self) {
        // What was there may end a request, which looks in here: not while this is locked.
        let before = std::mem::replace(&mut self.lock().tunnel, Tunnel::Open);
        drop(before);
    }

    /// The tunnel has ended, and the request with it.
    pub(crate) fn end_tunnel(&self, error: Option<ForwardErrorKind>) {
        let before = std::mem::replace(&mut self.lock().tunnel, Tunnel::Ended(error));
        if let Tunnel::Counted(account) = before {
            account.end(error);
        }
    }

    /// Counts the request when the tunnel ends, if there is one. Otherwise the account is given back.
    pub(crate) fn count_tunnel(&self, account: OpenAccount) -> Option<OpenAccount> {
        let mut seen = self.lock();
        match &seen.tunnel {
            Tunnel::None | Tunnel::Counted(_) => return Some(account),
            Tunnel::Open => seen.tunnel = Tunnel::Counted(account),
            Tunnel::Ended(error) => {
                let error = *error;
                drop(seen);
                account.end(error);
            }
        }
        None
    }

    fn lock(&self) -> MutexGuard<'_, Seen> {
        // What is in there is whole at any time.
        self.seen.lock()
    }
}
