use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// `{"Command": "handshake", "Seq": 1}` and `{"Version": 1}`, in MessagePack.
const HANDSHAKE: &[u8] = b"\x82\xa7Command\xa9handshake\xa3Seq\x01\x81\xa7Version\x01";

/// `{"Error": "", "Seq": 1}`.
const WELCOME: &[u8] = b"\x82\xa5Error\xa0\xa3Seq\x01";

/// Pause before the next attempt.
const REST: Duration = Duration::from_millis(10);

/// Returns when the agent at this address responds to RPC. Needs no key.
pub(super) async fn answers(rpc: SocketAddr) {
    while handshake(rpc).await.is_err() {
        tokio::time::sleep(REST).await;
    }
}

async fn handshake(rpc: SocketAddr) -> io::Result<()> {
    let mut stream = TcpStream::connect(rpc).await?;
    stream.write_all(HANDSHAKE).await?;
    let mut reply = [0; WELCOME.len()];
    stream.read_exact(&mut reply).await?;
    if reply == *WELCOME {
        Ok(())
    } else {
        Err(io::Error::other("that is no agent"))
    }
}
