//! The memory that idle connections hold in total. A read buffer that one of them keeps is sixteen times as much as
//! it may have.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;

use allocation_counter::measure;
use tokio::runtime::LocalRuntime;
use tokio::sync::{oneshot, watch};
use tokio::task::{spawn_local, yield_now};

use crate::Proxy;
use crate::fixtures::snapshot;
use crate::server::Limits;
use crate::server::handler::ProxyHandler;
use crate::server::metrics::ServerMetrics;
use crate::server::shared::WorkerShared;
use crate::server::worker::{self, Command, Socket, WorkerPart};

const REQUEST: &[u8] = b"GET /a HTTP/1.1\r\nHost: shop.example\r\n\r\n";

const RESPONSE: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

const CONNECTIONS: usize = 200;

/// Maximum memory of one connection in bytes. It guards the magnitude; benches/COMPARISON.md has the measured value.
const MOST: i64 = 2 * 1024;

/// A destination that answers whatever comes, in threads of its own, whose memory is not counted.
fn origin() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            thread::spawn(move || {
                while read_to(&mut stream, b"\r\n\r\n").is_ok() {
                    stream.write_all(RESPONSE).unwrap();
                }
            });
        }
    });
    address
}

fn read_to(stream: &mut TcpStream, end: &[u8]) -> io::Result<()> {
    let mut bytes = Vec::new();
    while !bytes.ends_with(end) {
        let mut byte = [0];
        stream.read_exact(&mut byte)?;
        bytes.extend_from_slice(&byte);
    }
    Ok(())
}

/// Connects clients in a thread. With `ask`, each sends a request and reads the response.
fn clients(server: SocketAddr, ask: bool) -> oneshot::Receiver<Vec<TcpStream>> {
    let (done, clients) = oneshot::channel();
    thread::spawn(move || {
        let client = |_| {
            let mut stream = TcpStream::connect(server).unwrap();
            if ask {
                stream.write_all(REQUEST).unwrap();
                read_to(&mut stream, b"\r\n\r\nok").unwrap();
            }
            stream
        };
        let _ = done.send((0..CONNECTIONS).map(client).collect());
    });
    clients
}

/// A worker with a proxy in the current thread, whose connections are idle.
struct Bench {
    runtime: LocalRuntime,
    address: SocketAddr,
    metrics: Arc<ServerMetrics>,
    clients: Vec<TcpStream>,
    _commands: watch::Sender<Command>,
}

impl Bench {
    fn new() -> Self {
        let runtime = worker::runtime().unwrap();
        let snapshot = snapshot(&format!(
            r#"{{"Routes":{{"r":{{"ClusterId":"c","Match":{{"Path":"/{{**all}}"}}}}}},
                "Clusters":{{"c":{{"Destinations":{{"d":{{"Address":"http://{}/"}}}}}}}}}}"#,
            origin()
        ));
        let (proxy, _driver) = Proxy::builder().snapshot(snapshot).build().unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let address = listener.local_addr().unwrap();
        let socket = Socket {
            rules: Default::default(),
            proxy_protocol: None,
            listener,
            #[cfg(feature = "tls")]
            tls: None,
        };
        let metrics = Arc::new(ServerMetrics::new(1));
        let own = metrics.worker(0).clone();
        let shared = WorkerShared::new(Limits::default(), 4 * CONNECTIONS, own, None);
        let (commands, told) = watch::channel(Command::Serve);
        runtime.block_on(async {
            let service = proxy.service();
            let run = worker::run(
                vec![socket],
                ProxyHandler::new(service),
                Arc::new(shared),
                told,
                WorkerPart::new(),
            );
            spawn_local(run);
        });
        Self {
            runtime,
            address,
            metrics,
            clients: Vec::new(),
            _commands: commands,
        }
    }

    /// Bytes that each of so many further connections holds once they are idle.
    fn connect(&mut self, ask: bool) -> i64 {
        let before = self.metrics.counts().active_connections;
        let mut connected = Vec::new();
        let held = measure(|| {
            self.runtime.block_on(async {
                connected = clients(self.address, ask).await.unwrap();
                while self.metrics.counts().active_connections < before + CONNECTIONS as u64 {
                    yield_now().await;
                }
                // The last of them has its turn.
                yield_now().await;
                yield_now().await;
            });
        });
        self.clients.append(&mut connected);
        held.bytes_current / CONNECTIONS as i64
    }
}

#[test]
fn an_idle_connection_holds_no_buffer() {
    let mut bench = Bench::new();
    // The first ones fill what is kept for all of them.
    bench.connect(true);
    for ask in [true, false] {
        let held = bench.connect(ask);
        assert!((500..=MOST).contains(&held), "{held} bytes, {ask}");
    }
}
