//! What travels between a client and an agent: MessagePack objects, one after the other on one connection, without lengths
//! around them.
//!
//! A request is a header, and a body for the commands that take one. A reply is a header, and a body for the commands that
//! have one; nothing on the wire says whether a body follows. [`frames`] finds where an object ends, [`messages`] knows
//! what is in it.

pub(crate) mod encode;
pub(crate) mod frames;
pub(crate) mod messages;
pub(crate) mod text;
