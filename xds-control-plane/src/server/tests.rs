//! The server over real connections.
