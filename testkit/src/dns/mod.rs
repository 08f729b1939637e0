//! A scripted name server, over UDP and TCP.
//!
//! It parses and writes messages itself (RFC 1035 section 4), so that it shares no error with a
//! resolver library.

mod message;

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UdpSocket};

use crate::listen::{V4, listen};
use crate::tasks::{Spawner, Tasks};

use self::message::Question;

/// The response for a name.
#[derive(Clone, Debug)]
pub enum DnsAnswer {
    /// Addresses, with a time to live in seconds.
    Addresses(Vec<IpAddr>, u32),
    /// An alias to another name, with its addresses.
    Alias(String, Vec<IpAddr>, u32),
    /// No such name, for this time in seconds.
    NoName(u32),
    /// SERVFAIL.
    Fails,
    /// No response.
    Silence,
    /// Addresses to queries for IPv4, and no response to others.
    OnlyV4(Vec<IpAddr>, u32),
    /// A truncated message over UDP, and these addresses over TCP.
    OverTcp(Vec<IpAddr>, u32),
    /// Bytes that are no message.
    Nonsense,
    /// A response to another query, then these addresses.
    ForgedFirst(Vec<IpAddr>, u32),
}

/// A received query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked {
    /// The name in lower case, without a final dot.
    pub name: String,
    /// True for IPv6.
    pub v6: bool,
    /// True over TCP.
    pub tcp: bool,
}

/// A name server on loopback. Dropping it stops it.
#[derive(Debug)]
pub struct NameServer {
    address: SocketAddr,
    script: Arc<Script>,
    _tasks: Tasks,
}

#[derive(Debug, Default)]
struct Script {
    answers: Mutex<BTreeMap<String, DnsAnswer>>,
    asked: Mutex<Vec<Asked>>,
}

impl NameServer {
    /// Starts a server without names.
    ///
    /// # Panics
    ///
    /// Panics if no port is free for both UDP and TCP.
    pub async fn start() -> Self {
        for _ in 0..100 {
            let (tcp, address) = listen(V4);
            let Ok(udp) = UdpSocket::bind(address).await else {
                continue;
            };
            let script = Arc::<Script>::default();
            let tasks = Tasks::new();
            tasks.spawn(datagrams(udp, Arc::clone(&script)));
            tasks.spawn(connections(tcp, Arc::clone(&script), tasks.spawner()));
            return Self {
                address,
                script,
                _tasks: tasks,
            };
        }
        panic!("no port is free for UDP and TCP");
    }

    /// The address of the server.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Sets the response for a name; a prefix `*.` sets it for all names below.
    pub fn set(&self, name: &str, answer: DnsAnswer) {
        let mut answers = self.script.answers.lock();
        answers.insert(name.to_ascii_lowercase(), answer);
    }

    /// The queries received so far.
    pub fn asked(&self) -> Vec<Asked> {
        self.script.asked.lock().clone()
    }

    /// The number of queries for the IPv4 addresses of a name.
    pub fn times(&self, name: &str) -> usize {
        let asked = self.script.asked.lock();
        let those = asked.iter().filter(|asked| asked.name == name && !asked.v6);
        those.count()
    }
}

impl Script {
    /// The messages to send; may be empty.
    fn answer(&self, bytes: &[u8], tcp: bool) -> Vec<Vec<u8>> {
        let Some(question) = Question::read(bytes) else {
            return Vec::new();
        };
        self.asked.lock().push(Asked {
            name: question.name.clone(),
            v6: question.is_v6(),
            tcp,
        });
        match self.find(&question.name) {
            DnsAnswer::Addresses(addresses, ttl) => vec![question.addresses(&addresses, ttl)],
            DnsAnswer::Alias(name, addresses, ttl) => vec![question.alias(&name, &addresses, ttl)],
            DnsAnswer::NoName(ttl) => vec![question.no_name(ttl)],
            DnsAnswer::Fails => vec![question.fails()],
            DnsAnswer::OnlyV4(addresses, ttl) if !question.is_v6() => {
                vec![question.addresses(&addresses, ttl)]
            }
            DnsAnswer::Silence | DnsAnswer::OnlyV4(..) => Vec::new(),
            DnsAnswer::OverTcp(addresses, ttl) if tcp => vec![question.addresses(&addresses, ttl)],
            DnsAnswer::OverTcp(..) => vec![question.cut_off()],
            DnsAnswer::Nonsense => vec![question.nonsense()],
            DnsAnswer::ForgedFirst(addresses, ttl) => vec![
                question
                    .with_another_id()
                    .addresses(&[IpAddr::from([203, 0, 113, 66])], ttl),
                question
                    .with_another_name()
                    .addresses(&[IpAddr::from([203, 0, 113, 66])], ttl),
                question.addresses(&addresses, ttl),
            ],
        }
    }

    fn find(&self, name: &str) -> DnsAnswer {
        let answers = self.answers.lock();
        let mut below = name;
        let mut found = answers.get(name);
        while found.is_none() {
            let Some((_, rest)) = below.split_once('.') else {
                break;
            };
            found = answers.get(&format!("*.{rest}"));
            below = rest;
        }
        found.cloned().unwrap_or(DnsAnswer::NoName(1))
    }
}

async fn datagrams(socket: UdpSocket, script: Arc<Script>) {
    let mut buffer = [0; 4096];
    loop {
        let Ok((length, client)) = socket.recv_from(&mut buffer).await else {
            continue;
        };
        for message in script.answer(&buffer[..length], false) {
            // The client may be gone.
            let _ = socket.send_to(&message, client).await;
        }
    }
}

async fn connections(listener: TcpListener, script: Arc<Script>, tasks: Spawner) {
    while let Ok((stream, _)) = listener.accept().await {
        tasks.spawn(connection(stream, Arc::clone(&script)));
    }
}

/// Handles messages with a length prefix (RFC 1035 section 4.2.2).
async fn connection(mut stream: TcpStream, script: Arc<Script>) {
    while let Ok(length) = stream.read_u16().await {
        let mut message = vec![0; length.into()];
        if stream.read_exact(&mut message).await.is_err() {
            return;
        }
        for message in script.answer(&message, true) {
            let Ok(length) = u16::try_from(message.len()) else {
                return;
            };
            let framed = [&length.to_be_bytes()[..], &message].concat();
            if stream.write_all(&framed).await.is_err() {
                return;
            }
        }
    }
}
