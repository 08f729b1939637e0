//! Queries to name servers.

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

use super::answer::QueryResult;
use super::config::Config;

/// Time after which the next server is queried in parallel.
const NEXT_SERVER: Duration = Duration::from_secs(1);

/// Time after which all servers are queried again: a datagram may be lost.
const NEXT_ROUND: Duration = Duration::from_secs(2);

/// Time for which a server that did not respond is queried last.
const AVOIDED: Duration = Duration::from_secs(30);

/// The state of the name servers.
#[derive(Debug, Default)]
pub(super) struct Servers {
    silent: Mutex<HashMap<SocketAddr, Instant>>,
    next: AtomicUsize,
}

impl Servers {
    /// Queries the addresses of one family. The first response wins; a server that fails is
    /// followed by the next one in the configured order.
    pub(super) async fn ask(&self, config: &Config, name: &Name, kind: RecordType) -> QueryResult {
        let order = self.order(config);
        let mut tries = std::iter::repeat_n(&order, config.attempts).flatten();
        let mut asked = FuturesUnordered::new();
        let mut pause = pin!(sleep(Duration::ZERO));
        let mut last = QueryResult::Silent;
        let (mut begun, mut is_over) = (0_usize, false);
        // Servers without a response, with the time of the query.
        let mut waited_for: Vec<(SocketAddr, Instant)> = Vec::new();
        loop {
            tokio::select! {
                biased;
                Some((server, answer)) = asked.next(), if !asked.is_empty() => {
                    if let QueryResult::Silent = answer {
                        // Silence starts no query here: the timer has not waited for it.
                        continue;
                    }
                    waited_for.retain(|(waiting, _)| *waiting != server);
                    self.answers(server);
                    match answer {
                        // Kept for the case that all servers fail.
                        QueryResult::Failed(_) => last = answer,
                        known => return known,
                    }
                    // The next server is queried at once.
                    pause.as_mut().reset(Instant::now());
                }
                () = &mut pause, if !is_over => {
                    let now = Instant::now();
                    self.are_silent(&waited_for, now);
                    let Some(server) = tries.next() else {
                        // Only queries in flight are left.
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

    /// The servers in the order of queries. Servers that were silent recently come last.
    pub(super) fn order(&self, config: &Config) -> Vec<SocketAddr> {
        let mut servers = config.servers.clone();
        if config.rotate {
            let first = self.next.fetch_add(1, Ordering::Relaxed) % servers.len();
            servers.rotate_left(first);
        }
        let now = Instant::now();
        let mut silent = self.silent.lock();
        silent.retain(|_, since| now.duration_since(*since) < AVOIDED);
        // A stable sort keeps the configured order otherwise.
        servers.sort_by_key(|server| silent.contains_key(server));
        servers
    }

    /// Records the servers that have been silent for too long.
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
) -> (SocketAddr, QueryResult) {
    let answer = match exchange(server, config, name, kind).await {
        Ok(response) if response.truncation => {
            let why = "the name server's answer is cut off";
            QueryResult::Failed(io::Error::new(io::ErrorKind::InvalidData, why))
        }
        Ok(response) => QueryResult::read(&response, name, kind),
        Err(NetError::Timeout) => QueryResult::Silent,
        Err(NetError::Io(error)) if error.kind() == io::ErrorKind::TimedOut => QueryResult::Silent,
        Err(error) => QueryResult::Failed(io::Error::other(error)),
    };
    (server, answer)
}

/// Sends one query, from a socket of its own with an unpredictable port. A truncated response is
/// queried again over TCP.
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
            // The caller retries, since it knows the other servers.
            .with_max_retries(1)
            .with_os_port_selection(true)
            .build();
        let response = udp.send_message(request.clone()).first_answer().await?;
        if !response.truncation {
            return Ok(response);
        }
    }
    // The background task of the connection ends with the provider.
    let own = provider.clone();
    let connecting = TcpClientStream::exchange(server, None, config.timeout, Some(1), own);
    connecting.await?.send(request).first_answer().await
}
