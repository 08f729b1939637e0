//! The HTTP/1.1 server in front of the calls: connections, limits, and bodies.

mod accept;
mod activity;
mod body;
mod connection;
mod places;
mod request;
mod seldom;
#[cfg(test)]
mod tests;

use std::future::Future;

use http::{Request, Response};
use hyper::body::Incoming;

pub(crate) use self::accept::{Server, until};
pub(crate) use self::body::Reply;
pub(crate) use self::connection::{ClosedByFault, Connection, Peer};
pub(crate) use self::request::Gateway;
pub(crate) use self::seldom::Seldom;

/// The handler of a [`Server`]'s requests.
pub(crate) trait Answers: Send + Sync + 'static {
    /// Handles a request. An error closes the connection in place of a response.
    fn serve(
        &self,
        request: Request<Incoming>,
        peer: Peer,
    ) -> impl Future<Output = Result<Response<Reply>, ClosedByFault>> + Send;
}
