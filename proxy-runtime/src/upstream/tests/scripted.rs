//! Transports that do what a test says.

use std::fmt::Debug;

use tokio::io::{AsyncRead, AsyncWrite};

/// A transport that does what a test says.
pub(in crate::upstream) trait Scripted:
    AsyncRead + AsyncWrite + Unpin + Send + Sync + Debug
{
}

impl<T: AsyncRead + AsyncWrite + Unpin + Send + Sync + Debug> Scripted for T {}
