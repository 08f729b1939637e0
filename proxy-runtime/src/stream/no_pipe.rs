//! Where the system moves no bytes from socket to socket.

/// There is none.
#[derive(Debug)]
pub(crate) enum Pipe {}

impl Pipe {
    pub(crate) fn take() -> Option<Self> {
        None
    }

    pub(crate) fn give_back(self) {
        match self {}
    }

    pub(crate) fn is_empty(&self) -> bool {
        match *self {}
    }
}
