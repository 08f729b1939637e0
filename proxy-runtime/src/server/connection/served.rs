//! What a worker serves.

use std::any::Any;

use crate::engine::Engine;
use crate::proxy::ProxyService;

/// What a worker serves: a service, and if that is a proxy, what forwards requests without the detour over `http` types.
#[derive(Debug)]
pub(crate) struct Served<S> {
    pub(crate) service: S,
    pub(crate) engine: Option<Engine>,
}

impl<S: 'static> Served<S> {
    pub(crate) fn new(service: S) -> Self {
        let proxy = (&service as &dyn Any).downcast_ref::<ProxyService>();
        Self {
            engine: proxy.cloned().map(Engine::new),
            service,
        }
    }
}
