//! The wire format between a client and an agent: MessagePack objects, one after the other on one
//! connection, without length prefixes.
//!
//! A request is a header, and a body for the commands that take one. A reply is a header, and a body for
//! the commands that have one; the wire does not show whether a body follows. [`frames`] finds the end of
//! an object, [`messages`] decodes its content.

pub(crate) mod encode;
pub(crate) mod frames;
pub(crate) mod messages;
pub(crate) mod text;
