//! Filters: code of the program that sees the heads of a route's messages, and may change them or
//! respond.
//!
//! There are three ways to extend a route. Transforms are settings. Filters see the received head,
//! on every forwarding path, and [change trailers](ResponseEdit::change_trailers).
//! [Layers](crate::layer) are tower services over `http` types. A route without filters has no
//! overhead, and a filter that changes nothing allocates nothing.
//!
//! ```
//! use proxy_runtime::Proxy;
//! use proxy_runtime::filter::{Filter, FilterContext, Flow, Reply, RequestEdit, ResponseEdit};
//! use proxy_runtime::http::StatusCode;
//!
//! /// Lets requests with the key of the route's metadata pass.
//! struct ApiKey;
//!
//! impl Filter for ApiKey {
//!     fn on_request(&self, head: &mut RequestEdit<'_>, context: &FilterContext<'_>) -> Flow {
//!         let wanted = context.route_metadata("ApiKey").map(str::as_bytes);
//!         if wanted.is_none() || head.header("x-api-key") != wanted {
//!             return Reply::new(StatusCode::FORBIDDEN).with_body("no key\n").into();
//!         }
//!         // The destination need not know it.
//!         match head.remove("x-api-key") {
//!             Ok(()) => Flow::Continue,
//!             Err(_) => Reply::new(StatusCode::INTERNAL_SERVER_ERROR).into(),
//!         }
//!     }
//!
//!     fn on_response(&self, head: &mut ResponseEdit<'_>, _: &FilterContext<'_>) {
//!         let _ = head.set("x-checked", "yes");
//!     }
//! }
//!
//! // `"Filters": ["ApiKey"]` on a route uses it.
//! let builder = Proxy::builder().filter("ApiKey", ApiKey);
//! # drop(builder);
//! ```
//!
//! # Order
//!
//! A request is routed, its cluster is chosen, for which filters may [assign](Filter::cluster) another one than those
//! of the route, and its framing and declared body size are checked.
//! Then the filters of its route run in the order of the list, then the route's transforms, and
//! then a destination is picked. A filter that responds ends this sequence; later filters do not
//! run.
//!
//! The response passes the filters that let the request pass, in reverse order. They see one of
//! three responses: that of the destination as received, before the route's transforms; that of a
//! later filter; or a local reply of the proxy such as 502. Requests that match no route, or are
//! rejected earlier, have no filters.
//!
//! # Effect of changes
//!
//! Changes affect the forwarded message only. The route, its cluster and its partition stay, route
//! values are those of the matched path, and load balancing policies see the received request.
//! Transforms run after the filters, so the configuration has the last word.
//!
//! Hop-by-hop and framing fields can be read but not changed ([`InvalidEdit::Protected`]): the
//! proxy writes its own.
//!
//! # Waiting
//!
//! A filter must not block. Work that takes time is a future: [`Flow::wait`] for a request,
//! [`ResponseEdit::wait`] for a response.
//!
//! # Panics
//!
//! A panic of a filter ends the request with 500 and the error
//! `Extension`. Other requests are not affected, and the
//! filter stays in use.

mod chain;
mod context;
mod fields;
mod reply;
mod request;
mod response;
#[cfg(test)]
mod tests;
mod work;

pub(crate) use self::chain::{FilterDecision, Filters, NamedFilter};
pub use self::context::FilterContext;
pub use self::reply::{Flow, Reply, RequestWork};
pub(crate) use self::reply::{ReplyCause, RequestChange};
pub use self::request::RequestEdit;
pub(crate) use self::response::ReceivedResponse;
pub use self::response::ResponseEdit;
pub(crate) use self::work::{ResponseWork, TrailerChanges, Work};
pub use crate::head::InvalidEdit;
use proxy_model::compiled::Route;
use proxy_model::{ClusterId, RequestHead};

/// Sees the heads of a route's messages, and may change them or respond.
///
/// One value serves all routes that name it, on all threads, for the life of the proxy. State
/// between requests needs atomics or locks. A filter must not block: see [`Flow::wait`].
///
/// # Examples
///
/// ```
/// use proxy_runtime::filter::{Filter, FilterContext, Flow, RequestEdit};
///
/// /// Numbers the requests.
/// #[derive(Default)]
/// struct Count(std::sync::atomic::AtomicU64);
///
/// impl Filter for Count {
///     fn on_request(&self, head: &mut RequestEdit<'_>, _: &FilterContext<'_>) -> Flow {
///         let number = self.0.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
///         let _ = head.set("x-request-number", number);
///         Flow::Continue
///     }
/// }
/// ```
pub trait Filter: Send + Sync + 'static {
    /// Returns the cluster that a request goes to instead of those of the route, as YARP's
    /// `ReassignProxyRequest` does. Default: none.
    ///
    /// The first filter of the list that returns one decides, before weights, partitions and affinity
    /// keys. Without such a cluster in the configuration the request gets 503. `head` is the request
    /// as received. Called before the other methods, and perhaps more than once for a request.
    fn cluster(&self, head: &dyn RequestHead, route: &Route) -> Option<&ClusterId> {
        let _ = (head, route);
        None
    }

    /// Called with a request before it is forwarded.
    fn on_request(&self, head: &mut RequestEdit<'_>, context: &FilterContext<'_>) -> Flow;

    /// Called with the response to a request that [`on_request`](Self::on_request) let pass.
    /// Default: no change.
    fn on_response(&self, head: &mut ResponseEdit<'_>, context: &FilterContext<'_>) {
        let _ = (head, context);
    }
}
