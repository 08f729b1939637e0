//! Asks servers one question.

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::stream::{FuturesUnordered, StreamExt};
use hickory_net::NetError;
use hickory_net::proto::op::{DnsRequest, DnsRequestOptions, DnsResponse, Query};
use hickory_net::proto::rr::{Name, RecordType};
use hickory_net::runtime::TokioRuntimeProvider;
use hickory_net::tcp::TcpClientStream;
use hickory_net::udp::UdpClientStream;
use hickory_net::xfer::{DnsHandle, DnsRequestSender, FirstAnswer};
use parking_lot::Mutex;
use tokio::time::{Instant, sleep};

use super::answer::Answer;
use super::config::Config;

/// The wait for a server before the next one is asked beside it.
const NEXT_SERVER: Duration = Duration::from_secs(1);

/// The wait for the servers before all of them are asked once more: the message may be lost.
const NEXT_ROUND: Duration = Duration::from_secs(2);

/// A server that did not answer is asked after the others for so long.
const AVOIDED: Duration = Duration::from_secs(30);

/// The memory of servers.
#[derive(Debug, Default)]
pub(super) struct Servers {
    silent: Mutex<HashMap<SocketAddr, Instant>>,
    next: AtomicUsize,
}

impl Servers {
    /// Asks for the addresses of one family. The first answer counts, in the order in which the servers are configured; one that
    /// cannot say gives way to the next.
    pub(super) async fn ask(&self, config: &Config, name: &Name, kind: RecordType) -> Answer {
        let order = self.order(config);
        let mut tries = std::iter::repeat_n(&order, config.attempts).flatten();
        let mut asked = FuturesUnordered::new();
        let mut pause = pin!(sleep(Duration::ZERO));
        let mut last = Answer::Silent;
        let (mut begun, mut is_over) = (0_usize, false);
        // Those that have not answered yet, and since when.
        let mut waited_for: Vec<(SocketAddr, Instant)> = Vec::new();
        loop {
            tokio::select! {
                biased;
                Some((server, answer)) = asked.next(), if !asked.is_empty() => {
                    if let Answer::Silent = answer {
                        continue;
                    }
                    waited_for.retain(|(waiting, _)| *waiting != server);
                    self.answers(server);
                    match answer {
                        Answer::Failed(_) => last = answer,
                        known => return known,
                    }
                    pause.as_mut().reset(Instant::now());
                }
                () = &mut pause, if !is_over => {
                    let now = Instant::now();
                    self.are_silent(&waited_for, now);
                    let Some(server) = tries.next() else {
                        is_over = true;
                        continue;
                    };
                    asked.push(question(*server, config, name, kind));
                    waited_for.push((*server, now));
                    begun += 1;
                    let wait = match begun % order.len() {
                        0 => NEXT_ROUND,
                        _ => NEXT_SERVER,
                    };
                    pause.as_mut().reset(now + wait);
                }
                else => return last,
            }
        }
    }

    /// Those that were silent a moment ago come last.
    pub(super) fn order(&self, config: &Config) -> Vec<SocketAddr> {
        let mut servers = config.servers.clone();
        if config.rotate {
            let first = self.next.fetch_add(1, Ordering::Relaxed) % servers.len();
            servers.rotate_left(first);
        }
        let now = Instant::now();
        let mut silent = self.silent.lock();
        silent.retain(|_, since| now.duration_since(*since) < AVOIDED);
        servers.sort_by_key(|server| silent.contains_key(server));
        servers
    }

    /// Remembers those that have been waited for long enough.
    fn are_silent(&self, waited_for: &[(SocketAddr, Instant)], now: Instant) {
        let silent = waited_for
            .iter()
            .filter(|(_, asked)| now.duration_since(*asked) >= NEXT_SERVER)
            .map(|(server, _)| (*server, now));
        self.silent.lock().extend(silent);
    }

    fn answers(&self, server: SocketAddr) {
        self.silent.lock().remove(&server);
    }
}

async fn question(
    server: SocketAddr,
    config: &Config,
    name: &Name,
    kind: RecordType,
) -> (SocketAddr, Answer) {
    let answer = match exchange(server, config, name, kind).await {
        Ok(response) if response.truncation => {
            let why = "the name server's answer is cut off";
            Answer::Failed(io::Error::new(io::ErrorKind::InvalidData, why))
        }
        Ok(response) => Answer::read(&response, name, kind),
        Err(NetError::Timeout) => Answer::Silent,
        Err(NetError::Io(error)) if error.kind() == io::ErrorKind::TimedOut => Answer::Silent,
        Err(error) => Answer::Failed(io::Error::other(error)),
    };
    (server, answer)
}

/// Sends one question. The socket is its own, with a port that nobody can guess. What does not fit into a datagram comes over TCP.
async fn exchange(
    server: SocketAddr,
    config: &Config,
    name: &Name,
    kind: RecordType,
) -> Result<DnsResponse, NetError> {
    let provider = TokioRuntimeProvider::new();
    let mut options = DnsRequestOptions::default();
    options.use_edns = config.edns;
    let request = DnsRequest::from_query(Query::query(name.clone(), kind), options);
    if !config.tcp_only {
        let mut udp = UdpClientStream::builder(server, provider.clone())
            .with_timeout(Some(config.timeout))
            // Asking again is for who knows the other servers.
            .with_max_retries(1)
            .with_os_port_selection(true)
            .build();
        let response = udp.send_message(request.clone()).first_answer().await?;
        if !response.truncation {
            return Ok(response);
        }
    }
    // What goes on with the connection ends with the provider.
    let own = provider.clone();
    let connecting = TcpClientStream::exchange(server, None, config.timeout, Some(1), own);
    connecting.await?.send(request).first_answer().await
}
