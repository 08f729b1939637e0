//! The cause for which the server drops requests that are in progress.
//!
//! A request that is dropped in the middle counts as cancelled: nearly always its client has gone. A server drops
//! requests for other reasons, too, which only it knows, while the counters are behind the types of a tower service.
//! And the code that carries a tunnel knows why it ends, while the server logs that when it drops the client's
//! connection.

use std::cell::Cell;

use super::{Cause, ForwardErrorKind};

thread_local! {
    static REASON: Cell<DropReason> = const {
        Cell::new(DropReason {
            cause: Cause::ClientGone,
            tunnel: None,
        })
    };
}

#[derive(Clone, Copy)]
struct DropReason {
    cause: Cause,
    /// The error of a tunnel.
    #[cfg_attr(not(feature = "server"), expect(dead_code, reason = "servers log it"))]
    tunnel: Option<ForwardErrorKind>,
}

/// Sets the cause that requests get which this thread drops, until this value is dropped.
pub(crate) struct Dropping {
    before: DropReason,
}

impl Dropping {
    /// Requests that are dropped end for this cause.
    #[cfg(feature = "server")]
    pub(crate) fn because(cause: Cause) -> Self {
        Self::set(DropReason {
            cause,
            ..REASON.get()
        })
    }

    /// A tunnel that is dropped has ended with this error.
    pub(crate) fn tunnel(error: ForwardErrorKind) -> Self {
        Self::set(DropReason {
            tunnel: Some(error),
            ..REASON.get()
        })
    }

    fn set(reason: DropReason) -> Self {
        Self {
            before: REASON.replace(reason),
        }
    }
}

impl Drop for Dropping {
    fn drop(&mut self) {
        REASON.set(self.before);
    }
}

impl Cause {
    /// Returns the cause for a request that is dropped now: its client has disconnected, unless the server has set
    /// [another reason](Dropping).
    pub(crate) fn of_drop() -> Self {
        REASON.get().cause
    }
}

impl ForwardErrorKind {
    /// The error of a tunnel that is dropped now.
    #[cfg(feature = "server")]
    pub(crate) fn of_tunnel() -> Option<Self> {
        REASON.get().tunnel
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
