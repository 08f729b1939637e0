//! The protocol between two instances: single bytes, some with a socket attached (`SCM_RIGHTS`, unix(7)).

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};
use tokio::io::Interest;
use tokio::net::UnixStream;

/// The greeting of the running instance: the version of the protocol.
pub(super) const HELLO: u8 = b'1';
/// A socket is attached.
pub(super) const SOCKET: u8 = b's';
/// The end of the sockets.
pub(super) const END: u8 = b'.';
/// Message of the successor: it serves requests.
pub(super) const SERVING: u8 = b'!';
/// Message of the predecessor: it has stopped accepting connections.
pub(super) const YOURS: u8 = b'y';
/// Response to a successor: another one has the sockets already.
pub(super) const TAKEN: u8 = b'n';

/// Sends one message.
pub(super) async fn say(stream: &UnixStream, byte: u8) -> io::Result<()> {
    send(stream, byte, None::<&OwnedFd>).await
}

/// Passes a socket on.
pub(super) async fn give(stream: &UnixStream, socket: &impl AsFd) -> io::Result<()> {
    send(stream, SOCKET, Some(socket)).await
}

async fn send(stream: &UnixStream, byte: u8, attached: Option<&impl AsFd>) -> io::Result<()> {
    let attempt = || {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        let descriptors = attached.map(|socket| [socket.as_fd()]);
        if let Some(descriptors) = &descriptors {
            control.push(SendAncillaryMessage::ScmRights(descriptors));
        }
        // A socket can only be sent together with at least one byte.
        let sent = sendmsg(
            stream,
            &[IoSlice::new(&[byte])],
            &mut control,
            SendFlags::NOSIGNAL,
        )?;
        match sent {
            0 => Err(io::ErrorKind::WriteZero.into()),
            _ => Ok(()),
        }
    };
    stream.async_io(Interest::WRITABLE, attempt).await
}

/// Receives the next byte, with its attached socket. It reads one byte at a time, so that no socket is
/// attributed to the wrong one.
///
/// Cancel safe: no byte is lost.
pub(super) async fn hear(stream: &UnixStream) -> io::Result<(u8, Option<OwnedFd>)> {
    let attempt = || {
        let mut byte = [0];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let mut into = [IoSliceMut::new(&mut byte)];
        // A child process must not inherit the socket.
        let received = recvmsg(stream, &mut into, &mut control, RecvFlags::CMSG_CLOEXEC)?;
        if received.bytes == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let attached = control.drain().find_map(|message| match message {
            RecvAncillaryMessage::ScmRights(mut descriptors) => descriptors.next(),
            _ => None,
        });
        Ok((byte[0], attached))
    };
    stream.async_io(Interest::READABLE, attempt).await
}

/// Returns true if the other end may have the sockets: if it runs as the same user, or as root.
pub(super) fn is_one_of_us(stream: &UnixStream) -> bool {
    let own = rustix::process::geteuid();
    stream.peer_cred().is_ok_and(|other| {
        let other = other.uid();
        other == own.as_raw() || other == rustix::process::Uid::ROOT.as_raw()
    })
}

/// Returns the error of an unexpected byte.
pub(super) fn unexpected(byte: u8) -> io::Error {
    let message = format!("it says {:?}", char::from(byte));
    io::Error::new(io::ErrorKind::InvalidData, message)
}
