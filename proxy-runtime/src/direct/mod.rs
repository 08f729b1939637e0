//! Parts of the proxy on their own, for programs that decide more themselves: a [`Forwarder`] sends requests to
//! addresses that no configuration names, and [`Proxy::pick`](crate::Proxy::pick) finds a destination and sends
//! nothing.

mod forwarder;
mod pick;

pub use self::forwarder::{Forwarder, ForwarderOptions};
pub use self::pick::PickedDestination;
