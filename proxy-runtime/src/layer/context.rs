//! What a request has with it on its way through layers.

use std::fmt;
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use proxy_model::compiled::{Route, RouteIndex};
use tokio::time::Instant;

use crate::error::ForwardErrorKind;
use crate::forward::{ExchangeInfo, OpenAccount};
use crate::proxy::ProxyService;
use crate::state::Generation;

/// The route that a request goes through layers of, among the request's extensions.
#[derive(Clone)]
pub struct RouteContext(Option<Arc<Context>>);

/// Only the extensions of a head that is not in use have an empty one.
const GIVEN: &str = "a request has its context until it is sent on";

struct Context {
    service: ProxyService,
    generation: Arc<Generation>,
    index: RouteIndex,
    started: Instant,
    attempts: Attempts,
}

impl RouteContext {
    pub(crate) fn new(
        service: &ProxyService,
        generation: &Arc<Generation>,
        index: RouteIndex,
        started: Instant,
    ) -> Self {
        Self(Some(Arc::new(Context {
            service: service.clone(),
            generation: Arc::clone(generation),
            index,
            started,
            attempts: Attempts::default(),
        })))
    }

    /// Leaves the place of one that is not needed there any more to the next request.
    pub(crate) fn take(&mut self) -> Option<Self> {
        self.0.take().map(|context| Self(Some(context)))
    }

    /// Whether it is such a place.
    #[cfg(feature = "server")]
    pub(crate) fn is_taken(&self) -> bool {
        self.0.is_none()
    }

    fn get(&self) -> &Context {
        self.0.as_deref().expect(GIVEN)
    }

    /// The route, with its configuration.
    pub fn route(&self) -> &Route {
        self.get().generation.snapshot().route_at(self.get().index)
    }

    /// A value of the route's `Metadata`, by which one layer can be told different things by different routes.
    pub fn route_metadata(&self, key: &str) -> Option<&str> {
        let metadata = self.route().config().metadata.as_ref()?;
        metadata.get(key).map(String::as_str)
    }

    pub(crate) fn service(&self) -> &ProxyService {
        &self.get().service
    }

    pub(crate) fn generation(&self) -> &Arc<Generation> {
        &self.get().generation
    }

    pub(crate) fn index(&self) -> RouteIndex {
        self.get().index
    }

    /// When the request came. Its time is one, however often a layer asks.
    pub(crate) fn started(&self) -> Instant {
        self.get().started
    }

    pub(crate) fn attempts(&self) -> &Attempts {
        &self.get().attempts
    }
}

impl fmt::Debug for RouteContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RouteContext")
            .field("route", &self.0.as_ref().map(|_| self.route().id()))
            .finish_non_exhaustive()
    }
}

/// What became of the attempts that layers made to have one request answered.
#[derive(Default)]
pub(crate) struct Attempts(Mutex<Seen>);

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
    /// Takes note of what is known of an attempt.
    pub(crate) fn note(&self, info: ExchangeInfo) {
        self.lock().last = Some(info);
    }

    /// What became of the last one, if there was one. To be asked once.
    pub(crate) fn take_last(&self) -> Option<ExchangeInfo> {
        self.lock().last.take()
    }

    /// Whether none has been made.
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
        self.0.lock()
    }
}
