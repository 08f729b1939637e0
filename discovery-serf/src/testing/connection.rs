//! One connection to an agent in memory.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, WriteHalf};
use tokio::sync::{mpsc, watch};

use super::AgentShared;
use super::commands::{AgentReply, AgentSession, Filter};
use super::state::State;
use crate::client::Event;
use crate::wire::frames::FrameReader;
use crate::wire::messages::{Request, RequestHeader, ResponseHeader, encode_event};

/// Maximum length of a request.
const MAX_REQUEST: usize = 1 << 20;

/// Serves a connection to its end: that of the client, or of the agent's life.
pub(super) async fn serve<Io>(shared: Arc<AgentShared>, io: Io)
where
    Io: AsyncRead + AsyncWrite + Send + Unpin,
{
    let Some((number, events)) = shared.connected() else {
        return;
    };
    let connected = Connected { shared, number };
    let mut state = connected.shared.state.subscribe();
    let life = state.borrow().life;
    tokio::select! {
        biased;
        _ = state.wait_for(|state| state.life != life) => {}
        // However it ends: the client sees its end.
        _ = talk(&connected.shared, io, events) => {}
    }
    connected.shared.end_if_stopped();
}

/// Counts a connection as one until it is dropped, with the runtime at the latest.
struct Connected {
    shared: Arc<AgentShared>,
    number: u64,
}

impl Drop for Connected {
    fn drop(&mut self) {
        self.shared.disconnected(self.number);
    }
}

async fn talk<Io>(shared: &AgentShared, io: Io, mut events: mpsc::Receiver<Event>) -> io::Result<()>
where
    Io: AsyncRead + AsyncWrite + Send + Unpin,
{
    let (read, mut write) = tokio::io::split(io);
    let mut frames = FrameReader::new(read, MAX_REQUEST);
    let mut state = shared.state.subscribe();
    let mut session = AgentSession::default();
    let mut streams = BTreeMap::new();
    // The header of a request whose body is still to come.
    let mut header = None;
    loop {
        tokio::select! {
            frame = frames.next() => {
                goes_on(&mut state).await;
                let Ok(Some(frame)) = frame else {
                    return Ok(());
                };
                let garbage = state.borrow().garbage.clone();
                if let Some(garbage) = garbage {
                    write.write_all(&garbage).await?;
                    return write.flush().await;
                }
                let whole = match header.take() {
                    Some(header) => Some((header, frame)),
                    None => {
                        let next = RequestHeader::decode(&frame).map_err(io::Error::other)?;
                        let is_whole = !next.takes_body();
                        if is_whole {
                            Some((next, frame))
                        } else {
                            header = Some(next);
                            None
                        }
                    }
                };
                if let Some((header, body)) = whole {
                    let request = Request::decode(&header, &body).map_err(io::Error::other)?;
                    shared.state.send_modify(|state| state.calls.push(header.command.clone()));
                    let delay = state.borrow().delays.get(&header.command).copied();
                    if let Some(delay) = delay {
                        tokio::time::sleep(delay).await;
                    }
                    goes_on(&mut state).await;
                    let answer = session.answer(shared, &request, &mut streams, header.seq);
                    if !reply(&mut write, header.seq, answer).await? {
                        return Ok(());
                    }
                }
            }
            Some(event) = events.recv() => {
                goes_on(&mut state).await;
                tell(&mut write, &streams, &event).await?;
            }
        }
    }
}

/// Waits while the agent is stalled.
async fn goes_on(state: &mut watch::Receiver<State>) {
    // Without a sender it is never stalled.
    let _ = state.wait_for(|state| !state.is_stalled).await;
}

/// Sends a reply. Returns true if the connection continues.
async fn reply<W: AsyncWrite>(
    write: &mut WriteHalf<W>,
    seq: u64,
    answer: AgentReply,
) -> io::Result<bool> {
    let mut out = Vec::new();
    let header = ResponseHeader {
        seq,
        error: answer.error,
    };
    header.encode(&mut out);
    out.extend(answer.body);
    write.write_all(&out).await?;
    write.flush().await?;
    Ok(!answer.ends)
}

/// Sends an event to each stream whose filter matches.
async fn tell<W: AsyncWrite>(
    write: &mut WriteHalf<W>,
    streams: &BTreeMap<u64, Filter>,
    event: &Event,
) -> io::Result<()> {
    for (&seq, _) in streams.iter().filter(|(_, filter)| filter.wants(event)) {
        let mut out = Vec::new();
        let header = ResponseHeader {
            seq,
            error: String::new(),
        };
        header.encode(&mut out);
        encode_event(event, &mut out);
        write.write_all(&out).await?;
    }
    write.flush().await
}
