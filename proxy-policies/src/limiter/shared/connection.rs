//! One connection to Redis, which all decisions of a policy share: commands are sent as they come, and their replies
//! come in the same order.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::io::{AsyncReadExt, AsyncWriteExt, ReadHalf, WriteHalf};
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, sleep, sleep_until, timeout};

use super::dial::{Stream, dial};
use super::resp::{Reply, read_reply, write_command};
use crate::authorization::{Service, ServiceKind};
use crate::config::SharedConfig;

/// The time limit for a connection with its first commands.
const CONNECT_LIMIT: Duration = Duration::from_secs(1);
/// The pause between two attempts to connect.
const PAUSE: Duration = Duration::from_secs(1);
/// The time without a reply after which a connection is given up. Requests wait for less.
const LATE: Duration = Duration::from_secs(1);
/// The most decisions that wait to be sent.
const MOST_WAITING: usize = 1024;
/// The most bytes of replies that are read at once.
const READ: usize = 16 * 1024;
/// The most bytes of commands that are written at once.
const WRITTEN: usize = 64 * 1024;

/// The script that takes a permit.
const SCRIPT: &[u8] = include_bytes!("decide.lua");

/// A command whose reply a request waits for.
struct Call {
    /// The key of the count, and the arguments of the script.
    key: Vec<u8>,
    arguments: Arc<[Vec<u8>]>,
    told: oneshot::Sender<Decision>,
}

/// The decision of Redis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Decision {
    pub(super) may_pass: bool,
    pub(super) left: u32,
    pub(super) reset: Duration,
}

/// A Redis, with the connection to it while it is used.
pub(super) struct Redis {
    shared: Arc<Link>,
    /// Dropped with this, which ends the task of the connection.
    calls: Mutex<Option<mpsc::Sender<Call>>>,
}

/// The part that the task of the connection and waiting requests have, too.
pub(super) struct Link {
    config: SharedConfig,
    service: Service,
    /// False from a failure of Redis until it is there again: requests do not wait for it meanwhile.
    is_usable: AtomicBool,
}

impl Redis {
    pub(super) fn new(policy: &Arc<str>, config: &SharedConfig) -> Self {
        let url = config.address.parse().unwrap_or_default();
        Self {
            shared: Arc::new(Link {
                service: Service::new(ServiceKind::Limits, policy, &url),
                config: config.clone(),
                is_usable: AtomicBool::new(true),
            }),
            calls: Mutex::default(),
        }
    }

    /// Sends a decision to be made, unless Redis is known to be away.
    pub(super) fn ask(
        &self,
        key: Vec<u8>,
        arguments: &Arc<[Vec<u8>]>,
    ) -> Option<(Arc<Link>, oneshot::Receiver<Decision>)> {
        let is_usable = self.shared.is_usable.load(Ordering::Relaxed);
        let mut calls = self.calls.lock();
        let sender = match &*calls {
            Some(sender) if !sender.is_closed() => sender.clone(),
            // The first call, or the runtime of the task has ended.
            _ => {
                let (sender, receiver) = mpsc::channel(MOST_WAITING);
                tokio::spawn(follow(Arc::clone(&self.shared), receiver));
                *calls = Some(sender.clone());
                sender
            }
        };
        drop(calls);
        if !is_usable {
            return None;
        }
        let (told, decision) = oneshot::channel();
        let call = Call {
            key,
            arguments: Arc::clone(arguments),
            told,
        };
        sender.try_send(call).ok()?;
        Some((Arc::clone(&self.shared), decision))
    }

    /// The address, without what may be secret.
    pub(super) fn url(&self) -> &str {
        self.shared.service.url()
    }

    /// The address and the latest error, while Redis does not decide.
    pub(super) fn failing(&self) -> Option<String> {
        self.shared.service.failing()
    }

    /// Returns true if a request was decided about.
    pub(super) fn is_asked(&self) -> bool {
        self.calls.lock().is_some()
    }
}

impl Link {
    /// The time limit of a decision.
    pub(super) fn limit(&self) -> Duration {
        self.config.timeout.duration()
    }

    /// Notes a decision in time.
    pub(super) fn decided(&self) {
        self.service.answered();
    }

    /// Notes a decision that did not come in time, while the connection lasts.
    pub(super) fn is_late(&self) {
        let limit = self.config.timeout;
        self.service.failed(&format!("no decision within {limit}"));
    }
}

/// Keeps a connection until the policy is gone.
async fn follow(link: Arc<Link>, mut calls: mpsc::Receiver<Call>) {
    while !calls.is_closed() {
        let error = match timeout(CONNECT_LIMIT, Connection::open(&link.config)).await {
            Err(_) => io::Error::from(io::ErrorKind::TimedOut),
            Ok(Err(error)) => error,
            Ok(Ok(mut connection)) => {
                link.is_usable.store(true, Ordering::Relaxed);
                link.service.answered();
                match connection.serve(&link, &mut calls).await {
                    Ok(()) => return,
                    Err(error) => error,
                }
            }
        };
        link.is_usable.store(false, Ordering::Relaxed);
        link.service.failed(&error.to_string());
        // Those who wait decide for themselves at once.
        while calls.try_recv().is_ok() {}
        sleep(PAUSE).await;
    }
}

struct Connection {
    reader: ReadHalf<Stream>,
    writer: WriteHalf<Stream>,
    /// The name of the script at Redis.
    script: Vec<u8>,
    input: Vec<u8>,
    output: Vec<u8>,
}

impl Connection {
    /// Connects, authenticates, and makes the script known.
    async fn open(config: &SharedConfig) -> io::Result<Self> {
        let (reader, writer) = tokio::io::split(dial(config).await?);
        let mut connection = Self {
            reader,
            writer,
            script: Vec::new(),
            input: Vec::new(),
            output: Vec::new(),
        };
        if let Some(password) = &config.password {
            let mut command: Vec<&[u8]> = vec![b"AUTH"];
            command.extend(config.username.as_ref().map(|name| name.as_bytes()));
            command.push(password.as_bytes());
            connection.call(&command).await?;
        }
        if config.database > 0 {
            let database = config.database.to_string();
            connection.call(&[b"SELECT", database.as_bytes()]).await?;
        }
        match connection.call(&[b"SCRIPT", b"LOAD", SCRIPT]).await? {
            Reply::Text(script) => connection.script = script,
            _ => return Err(unexpected()),
        }
        Ok(connection)
    }

    async fn call(&mut self, command: &[&[u8]]) -> io::Result<Reply> {
        self.output.clear();
        write_command(&mut self.output, command);
        self.writer.write_all(&self.output).await?;
        self.writer.flush().await?;
        self.output.clear();
        loop {
            if let Some(reply) = self.next()? {
                return match reply {
                    Reply::Error(error) => Err(io::Error::other(error)),
                    reply => Ok(reply),
                };
            }
            self.read().await?;
        }
    }

    /// Serves calls until the policy is gone.
    ///
    /// # Errors
    ///
    /// The connection broke, Redis told an error, or did not reply in time.
    async fn serve(&mut self, link: &Link, calls: &mut mpsc::Receiver<Call>) -> io::Result<()> {
        let limit = link.config.timeout.duration();
        let mut waiting: VecDeque<(Instant, oneshot::Sender<Decision>)> = VecDeque::new();
        let mut written = 0;
        // TLS may keep what was written.
        let mut is_flushed = true;
        loop {
            while let Some(reply) = self.next()? {
                let Some((_, told)) = waiting.pop_front() else {
                    return Err(unexpected());
                };
                let decision = decision(&reply)?;
                // The request may have given up.
                let _ = told.send(decision);
            }
            if written == self.output.len() {
                self.output.clear();
                written = 0;
            }
            let due = waiting.front().map(|(sent, _)| *sent + limit.max(LATE));
            let has_room = self.output.len() < WRITTEN && waiting.len() < MOST_WAITING;
            let unwritten = &self.output[written..];
            let (reader, writer) = (&mut self.reader, &mut self.writer);
            self.input.reserve(READ);
            tokio::select! {
                call = calls.recv(), if has_room => {
                    let Some(call) = call else { return Ok(()) };
                    self.push(call, &mut waiting);
                    while self.output.len() < WRITTEN && waiting.len() < MOST_WAITING {
                        let Ok(call) = calls.try_recv() else { break };
                        self.push(call, &mut waiting);
                    }
                }
                read = reader.read_buf(&mut self.input) => {
                    if read? == 0 {
                        return Err(io::ErrorKind::UnexpectedEof.into());
                    }
                }
                sent = send_some(writer, unwritten), if !unwritten.is_empty() || !is_flushed => {
                    is_flushed = unwritten.is_empty();
                    written += sent?;
                }
                () = sleep_until(due.unwrap_or_else(Instant::now)), if due.is_some() => {
                    return Err(io::ErrorKind::TimedOut.into());
                }
            }
        }
    }

    fn push(&mut self, call: Call, waiting: &mut VecDeque<(Instant, oneshot::Sender<Decision>)>) {
        let mut command: Vec<&[u8]> = vec![b"EVALSHA", &self.script, b"1", &call.key];
        command.extend(call.arguments.iter().map(Vec::as_slice));
        write_command(&mut self.output, &command);
        waiting.push_back((Instant::now(), call.told));
    }

    /// The next reply that was read.
    fn next(&mut self) -> io::Result<Option<Reply>> {
        let read = read_reply(&self.input).map_err(io::Error::other)?;
        Ok(read.map(|(reply, length)| {
            self.input.drain(..length);
            reply
        }))
    }

    async fn read(&mut self) -> io::Result<()> {
        self.input.reserve(READ);
        match self.reader.read_buf(&mut self.input).await? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            _ => Ok(()),
        }
    }
}

/// Writes what there is to write, else sends what TLS has kept of it. Returns the number of bytes that were written.
///
/// Cancel safe.
async fn send_some(writer: &mut WriteHalf<Stream>, bytes: &[u8]) -> io::Result<usize> {
    match bytes {
        [] => writer.flush().await.map(|()| 0),
        bytes => writer.write(bytes).await,
    }
}

pub(super) fn decision(reply: &Reply) -> io::Result<Decision> {
    let elements = match reply {
        Reply::List(elements) => elements,
        Reply::Error(error) => return Err(rejected(error)),
        _ => return Err(unexpected()),
    };
    let [
        Reply::Number(may_pass),
        Reply::Number(left),
        Reply::Number(reset),
    ] = &elements[..]
    else {
        return Err(unexpected());
    };
    Ok(Decision {
        may_pass: *may_pass == 1,
        left: u32::try_from(*left).unwrap_or_default(),
        reset: Duration::from_millis(u64::try_from(*reset).unwrap_or_default()),
    })
}

/// The error that Redis tells. A node of a cluster sends clients to others, and a limit would be there twice.
fn rejected(error: &str) -> io::Error {
    let is_of_cluster = ["MOVED ", "ASK ", "CLUSTERDOWN "];
    match is_of_cluster.iter().any(|begin| error.starts_with(begin)) {
        true => io::Error::other(format!("Redis Cluster is not supported: {error}")),
        false => io::Error::other(error.to_owned()),
    }
}

fn unexpected() -> io::Error {
    io::Error::other("the reply is not one of this command")
}
