//! Filters: code of the program that sees the heads of a route's messages, and may change them or answer.
//!
//! A filter is the second of three ways to extend a route. Transforms are settings; filters are synchronous code over the
//! head as it was received, whatever the lane that carries the request; [layers](crate::layer) are tower services over
//! `http` types. A route that names no filter pays for none, and a filter that changes nothing allocates nothing.
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
//! # When
//!
//! A request is routed, its cluster is chosen, and it is checked: its framing makes sense, its body is not too large by its
//! own account. Then the filters of its route are called in the order of the list, then the route's transforms are made,
//! then a destination is picked. A filter that answers ends this; filters behind it are not asked.
//!
//! The response passes the same filters in the opposite order, but only those that let the request pass. They see the
//! destination's response as it was received, before the route's transforms; or what a filter behind them answered; or what
//! the proxy says itself, 502 for example. Requests that no route takes, or that are refused before, have no filters.
//!
//! # What is changed
//!
//! Changes concern what is sent on: the route, its cluster and its partition are not chosen anew, route values stay those of
//! the path that was matched, and load balancing policies see the request as it was received. Transforms are made after
//! the filters' changes, so what the configuration says has the last word.
//!
//! Fields by which connections and bodies live can be read and not be changed ([`InvalidEdit::Protected`]); they are not
//! sent on as they came.
//!
//! # Panics
//!
//! A panic of a filter ends the request with 500 and the error [`Extension`](crate::ForwardErrorKind::Extension), and
//! nothing else. The filter is asked again for the next request.

mod chain;
mod context;
mod fields;
mod reply;
mod request;
mod response;
#[cfg(test)]
mod tests;

pub(crate) use self::chain::{Filters, NamedFilter, Verdict};
pub use self::context::FilterContext;
pub use self::reply::{Flow, Reply};
pub use self::request::RequestEdit;
pub use self::response::ResponseEdit;
pub use crate::head::InvalidEdit;

/// Sees the heads of a route's messages, and may change them or answer.
///
/// One value serves all routes that name it, on all threads, for as long as the proxy lives: what it has to remember
/// between requests it keeps behind atomics or locks of its own. It must not block.
///
/// # Examples
///
/// ```
/// use proxy_runtime::filter::{Filter, FilterContext, Flow, RequestEdit};
///
/// /// Gives requests a number.
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
    /// Sees a request before it is sent on.
    fn on_request(&self, head: &mut RequestEdit<'_>, context: &FilterContext<'_>) -> Flow;

    /// Sees the response to a request that [`on_request`](Self::on_request) let pass. Unchanged by default.
    fn on_response(&self, head: &mut ResponseEdit<'_>, context: &FilterContext<'_>) {
        let _ = (head, context);
    }
}
