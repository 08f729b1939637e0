//! Lost, late and rejected queries between the resolver and a name server.

use std::sync::atomic::{AtomicBool, Ordering};

use tokio::net::UdpSocket;
use tokio::task::JoinHandle;

use super::*;

/// The type AAAA in a query.
const AAAA: [u8; 2] = [0, 28];

/// The fate of a query.
#[derive(Clone, Copy, Debug)]
enum Fault {
    /// The name server responds.
    Passes,
    /// The query is lost.
    Lost,
    /// SERVFAIL, after this time.
    Fails(Duration),
}

/// A relay to a name server, with faults. Dropping it closes it.
struct Relay {
    address: SocketAddr,
    task: JoinHandle<()>,
}

impl Relay {
    /// Starts a relay that applies `fault` to each query. `fault` is called with true if the query
    /// is for IPv6.
    async fn to(
        server: &NameServer,
        mut fault: impl FnMut(bool) -> Fault + Send + 'static,
    ) -> Self {
        let socket = Arc::new(UdpSocket::bind("127.0.0.1:0").await.unwrap());
        let address = socket.local_addr().unwrap();
        let server = server.address();
        let task = tokio::spawn(async move {
            let mut buffer = [0; 4096];
            while let Ok((length, client)) = socket.recv_from(&mut buffer).await {
                let question = buffer[..length].to_vec();
                // A query ends with its type and class.
                let is_v6 = question[length - 4..length - 2] == AAAA;
                let fault = fault(is_v6);
                let socket = Arc::clone(&socket);
                tokio::spawn(async move {
                    if let Some(answer) = answer(question, fault, server).await {
                        socket.send_to(&answer, client).await.unwrap();
                    }
                });
            }
        });
        Self { address, task }
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn answer(mut question: Vec<u8>, fault: Fault, server: SocketAddr) -> Option<Vec<u8>> {
    match fault {
        Fault::Lost => None,
        Fault::Fails(after) => {
            sleep(after).await;
            // The response bit, and the code of SERVFAIL.
            question[2] |= 0x80;
            question[3] = 2;
            Some(question)
        }
        Fault::Passes => {
            let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
            socket.send_to(&question, server).await.unwrap();
            let mut buffer = vec![0; 4096];
            let length = socket.recv(&mut buffer).await.unwrap();
            buffer.truncate(length);
            Some(buffer)
        }
    }
}

async fn all(resolver: &Resolver, name: &str) -> Vec<String> {
    let found = resolver.resolve(&"c".into(), name, 80).await.unwrap();
    let mut found: Vec<_> = found.iter().map(|it| it.ip().to_string()).collect();
    found.sort_unstable();
    found
}

/// A lost response made a name IPv6-only until its time to live was over.
#[tokio::test]
async fn a_family_that_was_not_told_of_is_asked_for_again_soon() {
    for fault in [Fault::Lost, Fault::Fails(Duration::ZERO)] {
        let world = World::new("options attempts:1 timeout:1", "").await;
        let both = ["192.0.2.1", "2001:db8::1"];
        let says = Says::Addresses(ips(&both), 3600);
        world.server.set("a.example", says);
        let is_broken = Arc::new(AtomicBool::new(true));
        let broken = Arc::clone(&is_broken);
        let relay = Relay::to(&world.server, move |is_v6| {
            match broken.load(Ordering::SeqCst) && !is_v6 {
                true => fault,
                false => Fault::Passes,
            }
        })
        .await;
        let dns = Dns::new(world.options_with(&[relay.address]));
        let outcome = dns.look_up("a.example").await;
        assert!(outcome.is_part, "{fault:?}");
        assert_eq!(outcome.found.unwrap(), ips(&both[1..]), "{fault:?}");
        let resolver = Resolver::with(HOUR, Arc::new(dns));
        assert_eq!(all(&resolver, "a.example").await, both[1..], "{fault:?}");
        is_broken.store(false, Ordering::SeqCst);
        // After a second.
        testkit::time::eventually("it is asked for again", async || {
            all(&resolver, "a.example").await == both
        })
        .await;
    }
}

/// A wildcard in a later search domain was used for its time to live.
#[tokio::test]
async fn a_name_further_on_does_not_take_over_while_the_first_one_fails() {
    let world = World::new("search near.example far.example\n", "").await;
    let server = &world.server;
    let near = |ttl| Says::Addresses(ips(&["192.0.2.1"]), ttl);
    server.set("db.near.example", near(1));
    let far = Says::Addresses(ips(&["203.0.113.66"]), 3600);
    server.set("*.far.example", far);
    let resolver = world.resolver();
    let _clock = SlowClock::new();
    assert_eq!(first(&resolver, "db").await, "192.0.2.1");
    server.set("db.near.example", Says::Fails);
    advance(Duration::from_millis(1100)).await;
    assert_eq!(first(&resolver, "db").await, "192.0.2.1");
    assert_eq!(server.times("db.far.example"), 1);
    // With no better knowledge it is used, for a second.
    let dns = world.dns();
    let outcome = dns.look_up("db").await;
    assert_eq!(outcome.full_name.as_deref(), Some("db.far.example."));
    assert!(outcome.unsure.is_some());
    let resolver = Resolver::with(HOUR, Arc::new(dns));
    assert_eq!(first(&resolver, "db").await, "203.0.113.66");
    server.set("db.near.example", near(3600));
    advance(Duration::from_millis(1100)).await;
    assert_eq!(first(&resolver, "db").await, "192.0.2.1");
    // "No such name" is a result: the next domain is intended.
    server.set("web.near.example", Says::NoName(1));
    assert_eq!(first(&resolver, "web").await, "203.0.113.66");
    let outcome = world.dns().look_up("web").await;
    assert!(outcome.unsure.is_none());
}

#[tokio::test]
async fn a_server_that_was_just_asked_is_not_silent() {
    let world = World::new("options attempts:1 timeout:4 no-aaaa", "").await;
    let says = Says::Addresses(ips(&["192.0.2.1"]), 20);
    world.server.set("a.example", says);
    let late = Duration::from_millis(1400);
    let failing = Relay::to(&world.server, move |_| Fault::Fails(late)).await;
    let silent = Relay::to(&world.server, |_| Fault::Lost).await;
    let servers = [failing.address, silent.address, world.server.address()];
    let dns = Dns::new(world.options_with(&servers));
    assert_eq!(look_up(&dns, "a.example").await.0, Ok(ips(&["192.0.2.1"])));
    // The second server was queried after 1 s, the third when the first one failed.
    let machine = dns.machine().await;
    assert_eq!(dns.servers.order(&machine.config), servers);
}
