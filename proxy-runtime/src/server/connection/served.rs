//! What a worker serves.

use std::any::{Any, TypeId};
#[cfg(feature = "http2")]
use std::cell::OnceCell;
#[cfg(feature = "http2")]
use std::rc::Rc;

use crate::proxy::ProxyService;
use crate::server::engine::Engine;

/// What a worker serves: a service, and if that is a proxy, its raw lane.
#[derive(Debug)]
pub(crate) struct Served<S> {
    pub(crate) service: S,
    pub(crate) engine: Option<Engine>,
    /// The memory that streams are served in.
    #[cfg(feature = "http2")]
    pub(crate) blocks: OnceCell<Rc<dyn Any>>,
}

impl<S: 'static> Served<S> {
    pub(crate) fn new(service: S) -> Self {
        let proxy = (&service as &dyn Any).downcast_ref::<ProxyService>();
        Self {
            engine: proxy.cloned().map(Engine::new),
            service,
            #[cfg(feature = "http2")]
            blocks: OnceCell::new(),
        }
    }

    /// Whether the service is a proxy.
    pub(crate) fn is_proxy() -> bool {
        TypeId::of::<S>() == TypeId::of::<ProxyService>()
    }

    /// The service for the request that the raw lane has left to it a moment ago, or was not offered.
    pub(crate) fn service_for_request(&self) -> S
    where
        S: Clone,
    {
        let mut service = self.service.clone();
        if let Some(found) = self.engine.as_ref().and_then(Engine::take_route)
            && let Some(proxy) = (&mut service as &mut dyn Any).downcast_mut::<ProxyService>()
        {
            proxy.set_route(found);
        }
        service
    }
}
