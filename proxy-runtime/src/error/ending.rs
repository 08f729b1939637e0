//! The cause for which the server drops requests that are in progress.
//!
//! A request that is dropped in the middle counts as cancelled: nearly always its client has gone. A server drops requests
//! for other reasons, too, which only it knows, while those that count are behind the types of a tower service. And who
//! carries a tunnel knows why it ends, while the server logs that when the client's connection is dropped.

use std::cell::Cell;

use super::{Cause, ForwardErrorKind};

thread_local! {
    static ENDING: Cell<Ending> = const {
        Cell::new(Ending {
            cause: Cause::ClientGone,
            tunnel: None,
        })
    };
}

#[derive(Clone, Copy)]
struct Ending {
    cause: Cause,
    /// The error of a tunnel.
    tunnel: Option<ForwardErrorKind>,
}

/// The reason for what this thread drops, until this value is dropped.
pub(crate) struct Dropping {
    before: Ending,
}

impl Dropping {
    /// Requests that are dropped end for this cause.
    #[cfg(feature = "server")]
    pub(crate) fn because(cause: Cause) -> Self {
        Self::set(Ending {
            cause,
            ..ENDING.get()
        })
    }

    /// A tunnel that is dropped has ended with this error.
    pub(crate) fn tunnel(error: ForwardErrorKind) -> Self {
        Self::set(Ending {
            tunnel: Some(error),
            ..ENDING.get()
        })
    }

    fn set(ending: Ending) -> Self {
        Self {
            before: ENDING.replace(ending),
        }
    }
}

impl Drop for Dropping {
    fn drop(&mut self) {
        ENDING.set(self.before);
    }
}

impl Cause {
    /// The cause of the end of a request that is dropped now: its client has gone, unless the server has
    /// [another reason](Dropping).
    pub(crate) fn of_drop() -> Self {
        ENDING.get().cause
    }
}

impl ForwardErrorKind {
    /// The error of a tunnel that is dropped now.
    #[cfg(feature = "server")]
    pub(crate) fn of_tunnel() -> Option<Self> {
        ENDING.get().tunnel
    }
}

#[cfg(all(test, feature = "server"))]
mod tests {
    use super::*;

    #[test]
    fn the_client_has_gone_unless_the_server_says_otherwise() {
        assert_eq!(Cause::of_drop(), Cause::ClientGone);
        {
            let _outer = Dropping::because(Cause::DrainTimeout);
            {
                let _inner = Dropping::because(Cause::ClientTooSlow);
                assert_eq!(Cause::of_drop(), Cause::ClientTooSlow);
                let error = ForwardErrorKind::UpgradeActivityTimeout;
                let _tunnel = Dropping::tunnel(error);
                assert_eq!(Cause::of_drop(), Cause::ClientTooSlow);
                assert_eq!(ForwardErrorKind::of_tunnel(), Some(error));
            }
            assert_eq!(Cause::of_drop(), Cause::DrainTimeout);
            assert_eq!(ForwardErrorKind::of_tunnel(), None);
        }
        assert_eq!(Cause::of_drop(), Cause::ClientGone);
    }
}
