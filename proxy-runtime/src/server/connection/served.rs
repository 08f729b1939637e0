//! What a worker serves.

use std::any::Any;
#[cfg(feature = "http2")]
use std::cell::OnceCell;
#[cfg(feature = "http2")]
use std::rc::Rc;

use crate::engine::Engine;
use crate::proxy::ProxyService;

/// What a worker serves: a service, and if that is a proxy, what forwards requests without the detour over `http` types.
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
}
