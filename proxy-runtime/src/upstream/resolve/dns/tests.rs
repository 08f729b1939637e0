//! The DNS resolver against a name server that shares no code with it.

mod faults;

use std::fs;
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::mpsc;

use futures_util::future::join_all;
use tempfile::TempDir;
use testkit::dns::{DnsAnswer as Says, NameServer};
use testkit::peers;
use tokio::task::{AbortHandle, spawn_blocking, yield_now};
use tokio::time::{advance, pause, resume, sleep};

use discovery_core::resolver::Lookup;

use super::super::Resolver;
use super::super::names::PATIENCE;
use super::*;

const HOUR: Duration = Duration::from_secs(3600);

fn ips(list: &[&str]) -> Vec<IpAddr> {
    list.iter().map(|text| text.parse().unwrap()).collect()
}

/// A name server, and the files of a machine that uses it.
struct World {
    server: NameServer,
    files: TempDir,
}

impl World {
    async fn new(resolv_conf: &str, hosts: &str) -> Self {
        let files = TempDir::new().unwrap();
        fs::write(files.path().join("resolv.conf"), resolv_conf).unwrap();
        fs::write(files.path().join("hosts"), hosts).unwrap();
        Self {
            server: NameServer::start().await,
            files,
        }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.files.path().join(name)
    }

    fn options(&self) -> DnsOptions {
        DnsOptions {
            servers: vec![self.server.address()],
            resolv_conf: self.file("resolv.conf"),
            hosts: self.file("hosts"),
            ..DnsOptions::default()
        }
    }

    fn options_with(&self, servers: &[SocketAddr]) -> DnsOptions {
        DnsOptions {
            servers: servers.to_vec(),
            ..self.options()
        }
    }

    fn dns(&self) -> Dns {
        Dns::new(self.options())
    }

    fn resolver(&self) -> Arc<Resolver> {
        Arc::new(Resolver::with(HOUR, Arc::new(self.dns())))
    }
}

/// A clock that is fifty times slower than the real one, so that a busy machine answers in time.
struct SlowClock {
    /// The runtime does not advance the clock by itself while a thread works for it.
    _working: mpsc::Sender<()>,
    ticking: AbortHandle,
}

impl SlowClock {
    fn new() -> Self {
        let (working, end) = mpsc::channel();
        pause();
        spawn_blocking(move || end.recv());
        let ticking = tokio::spawn(async {
            loop {
                let tick = || std::thread::park_timeout(Duration::from_millis(1));
                spawn_blocking(tick).await.unwrap();
                advance(Duration::from_micros(20)).await;
            }
        });
        Self {
            _working: working,
            ticking: ticking.abort_handle(),
        }
    }

    /// Lets time pass as it does.
    fn ends(self) {
        self.ticking.abort();
        resume();
    }
}

impl Drop for SlowClock {
    fn drop(&mut self) {
        self.ticking.abort();
    }
}

/// Ages the file contents, so that they are read again.
fn age(dns: &Dns) {
    let machine = dns.machine.load_full().unwrap();
    dns.machine.store(Some(Arc::new(Machine {
        config: machine.config.clone(),
        hosts: machine.hosts.clone(),
        generation: machine.generation,
        read: machine.read.checked_sub(REREAD).unwrap(),
    })));
}

/// The addresses or the error of a look-up, and the seconds for which they are valid.
async fn look_up(dns: &Dns, name: &str) -> (Result<Vec<IpAddr>, String>, u64) {
    let outcome = dns.look_up(name).await;
    let found = outcome.found.map_err(|error| error.to_string());
    (found, outcome.lasts.unwrap().as_secs())
}

async fn first(resolver: &Resolver, name: &str) -> String {
    match resolver.resolve(&"c".into(), name, 80).await {
        Ok(found) => found[0].ip().to_string(),
        Err(error) => error.to_string(),
    }
}

#[tokio::test]
async fn answers_of_every_kind_are_read() {
    let world = World::new("options attempts:1 timeout:3", "").await;
    let v4 = ips(&["192.0.2.1", "192.0.2.2"]);
    let v6 = ips(&["2001:db8::1"]);
    let both = [&v4[..], &v6].concat();
    let server = &world.server;
    server.set("v4.example", Says::Addresses(v4.clone(), 20));
    server.set("v6.example", Says::Addresses(v6.clone(), 20));
    server.set("both.example", Says::Addresses(both.clone(), 20));
    server.set(
        "alias.example",
        Says::Alias("a.example".into(), v4.clone(), 30),
    );
    server.set("tcp.example", Says::OverTcp(v4.clone(), 20));
    server.set("only.example", Says::OnlyV4(v4.clone(), 20));
    server.set("forged.example", Says::ForgedFirst(v4.clone(), 20));
    server.set("none.example", Says::Addresses(Vec::new(), 20));
    server.set("no.example", Says::NoName(7));
    server.set("always-no.example", Says::NoName(86_400));
    server.set("fails.example", Says::Fails);
    server.set("silent.example", Says::Silence);
    server.set("nonsense.example", Says::Nonsense);
    server.set("flips.example", Says::Addresses(v4.clone(), 0));
    server.set(
        "for-ever.example",
        Says::Addresses(v4.clone(), u32::MAX / 2),
    );
    let clock = SlowClock::new();
    let dns = world.dns();
    let look_up = |name: &'static str| {
        let dns = &dns;
        async move { look_up(dns, name).await }
    };
    assert_eq!(look_up("v4.example").await, (Ok(v4.clone()), 20));
    assert_eq!(look_up("V4.Example").await, (Ok(v4.clone()), 20));
    assert_eq!(look_up("v6.example").await, (Ok(v6), 20));
    let (found, _) = look_up("both.example").await;
    let mut found = found.unwrap();
    found.sort_unstable();
    assert_eq!(found, both);
    assert_eq!(look_up("alias.example").await, (Ok(v4.clone()), 30));
    assert_eq!(look_up("tcp.example").await, (Ok(v4.clone()), 20));
    assert!(world.server.asked().iter().any(|asked| asked.tcp));
    assert_eq!(look_up("forged.example").await, (Ok(v4.clone()), 20));
    let none = "the name has no address".to_owned();
    assert_eq!(look_up("none.example").await, (Err(none), 1));
    let no = || Err("there is no such name".to_owned());
    assert_eq!(look_up("no.example").await, (no(), 7));
    assert_eq!(look_up("always-no.example").await, (no(), 30));
    let (error, lasts) = look_up("fails.example").await;
    assert!(error.unwrap_err().contains("Server Failure"));
    assert_eq!(lasts, 1);
    assert_eq!(look_up("flips.example").await, (Ok(v4.clone()), 1));
    assert_eq!(look_up("for-ever.example").await, (Ok(v4.clone()), 3600));
    assert!(look_up("a..b").await.0.is_err());

    // What never comes is waited for.
    clock.ends();
    assert_eq!(look_up("only.example").await, (Ok(v4), 20));
    let silent = "no name server answers".to_owned();
    assert_eq!(look_up("silent.example").await, (Err(silent), 1));
    assert!(look_up("nonsense.example").await.0.is_err());
}

/// The other family is waited for half a second, and not the nine of a server that does not respond.
#[tokio::test]
async fn a_family_that_is_never_told_of_holds_nobody_up() {
    let world = World::new("options attempts:1 timeout:9", "").await;
    let v4 = ips(&["192.0.2.1"]);
    world
        .server
        .set("only.example", Says::OnlyV4(v4.clone(), 20));
    let dns = world.dns();
    let begun = Instant::now();
    assert_eq!(look_up(&dns, "only.example").await, (Ok(v4), 20));
    let took = begun.elapsed();
    assert!(took < Duration::from_secs(7), "{took:?}");
}

#[tokio::test]
async fn names_of_the_machine_need_no_server() {
    let hosts = "192.0.2.7 web.example web\n2001:db8::7 web.example\n";
    let world = World::new("", hosts).await;
    let dns = world.dns();
    let look_up = async |dns: &Dns, name: &str| {
        let (found, lasts) = look_up(dns, name).await;
        let sorted = found.map(|mut found| {
            found.sort_unstable();
            found
        });
        (sorted, lasts)
    };
    let expected = ips(&["192.0.2.7", "2001:db8::7"]);
    assert_eq!(look_up(&dns, "web.example").await.0, Ok(expected));
    assert_eq!(look_up(&dns, "web").await.0, Ok(ips(&["192.0.2.7"])));
    let local = ips(&["127.0.0.1", "::1"]);
    assert_eq!(look_up(&dns, "localhost").await.0, Ok(local.clone()));
    assert_eq!(look_up(&dns, "app.localhost.").await.0, Ok(local));
    assert!(world.server.asked().is_empty());
}

/// A silent server must not turn a name into that of another domain.
#[tokio::test]
async fn domains_are_searched_until_a_server_is_silent() {
    let resolv_conf = "search near.example far.example\noptions attempts:1 timeout:1\n";
    let world = World::new(resolv_conf, "").await;
    let far = Says::Addresses(ips(&["192.0.2.9"]), 20);
    world.server.set("db.far.example", far);
    let dns = world.dns();
    let clock = SlowClock::new();
    assert_eq!(look_up(&dns, "db").await.0, Ok(ips(&["192.0.2.9"])));
    clock.ends();
    world.server.set("db.near.example", Says::Silence);
    assert!(look_up(&dns, "db").await.0.is_err());
}

#[tokio::test]
async fn another_server_is_asked_when_one_is_silent_or_cannot_say() {
    let world = World::new("options timeout:9", "").await;
    let other = NameServer::start().await;
    other.set("*.example", Says::Addresses(ips(&["192.0.2.5"]), 20));
    let servers = [world.server.address(), other.address()];
    let dns = Dns::new(world.options_with(&servers));
    world.server.set("fails.example", Says::Fails);
    world.server.set("a.example", Says::Silence);
    world.server.set("b.example", Says::Silence);
    assert_eq!(
        look_up(&dns, "fails.example").await.0,
        Ok(ips(&["192.0.2.5"]))
    );
    // The first server that responds decides: there is no such name.
    assert!(look_up(&dns, "c.example").await.0.is_err());
    assert_eq!(other.times("c.example"), 0);
    // After a second, and not after the nine of the silent server.
    let begun = Instant::now();
    assert_eq!(look_up(&dns, "a.example").await.0, Ok(ips(&["192.0.2.5"])));
    let took = begun.elapsed();
    assert!(took < Duration::from_secs(7), "{took:?}");
    // The silent server comes last from now on.
    assert_eq!(look_up(&dns, "b.example").await.0, Ok(ips(&["192.0.2.5"])));
    assert_eq!(world.server.times("b.example"), 0);
}

#[tokio::test]
async fn what_the_machine_says_is_followed() {
    let world = World::new("", "192.0.2.1 web\n").await;
    let dns = world.dns();
    assert_eq!(look_up(&dns, "web").await.0, Ok(ips(&["192.0.2.1"])));
    fs::write(world.file("hosts"), "192.0.2.2 web\n").unwrap();
    assert_eq!(look_up(&dns, "web").await.0, Ok(ips(&["192.0.2.1"])));
    age(&dns);
    assert_eq!(look_up(&dns, "web").await.0, Ok(ips(&["192.0.2.2"])));
    // While the file is being replaced, its previous contents are used.
    fs::remove_file(world.file("hosts")).unwrap();
    age(&dns);
    assert_eq!(look_up(&dns, "web").await.0, Ok(ips(&["192.0.2.2"])));
}

/// Operators write into the table to override DNS, and expect no wait for times to live.
#[tokio::test]
async fn a_new_line_in_the_table_counts_before_an_answer_that_is_kept() {
    let world = World::new("", "").await;
    let server = &world.server;
    server.set("a.example", Says::Addresses(ips(&["192.0.2.1"]), 3600));
    server.set("no.example", Says::NoName(30));
    let dns = Arc::new(world.dns());
    let resolver = Resolver::with(HOUR, Arc::<Dns>::clone(&dns));
    let no = "there is no such name";
    for _ in 0..3 {
        assert_eq!(first(&resolver, "a.example").await, "192.0.2.1");
        assert_eq!(first(&resolver, "no.example").await, no);
        age(&dns);
    }
    assert_eq!(server.times("a.example"), 1, "the files say the same");
    let lines = "192.0.2.7 a.example\n192.0.2.8 no.example\n";
    fs::write(world.file("hosts"), lines).unwrap();
    assert_eq!(first(&resolver, "a.example").await, "192.0.2.7");
    assert_eq!(first(&resolver, "no.example").await, "192.0.2.8");
    // The same holds for a change of `resolv.conf`.
    fs::write(world.file("hosts"), "").unwrap();
    age(&dns);
    assert_eq!(first(&resolver, "a.example").await, "192.0.2.1");
    fs::write(world.file("resolv.conf"), "search lan\n").unwrap();
    server.set("a.example", Says::Addresses(ips(&["192.0.2.2"]), 3600));
    assert_eq!(first(&resolver, "a.example").await, "192.0.2.1");
    age(&dns);
    assert_eq!(first(&resolver, "a.example").await, "192.0.2.2");
}

/// A disk that hangs delays the task that reads for a moment, and no other one.
#[tokio::test]
async fn nobody_waits_for_who_reads_the_files() {
    let world = World::new("", "").await;
    let says = Says::Addresses(ips(&["192.0.2.1"]), 3600);
    world.server.set("a.example", says);
    let dns = Arc::new(world.dns());
    let resolver = Resolver::with(HOUR, Arc::<Dns>::clone(&dns));
    assert_eq!(first(&resolver, "a.example").await, "192.0.2.1");
    let reading = dns.reading.lock().await;
    age(&dns);
    assert!(!dns.is_due(Instant::now()));
    fs::write(world.file("hosts"), "192.0.2.7 a.example\n").unwrap();
    assert_eq!(first(&resolver, "a.example").await, "192.0.2.1");
    drop(reading);
    assert_eq!(first(&resolver, "a.example").await, "192.0.2.7");
}

#[tokio::test]
async fn addresses_are_kept_for_their_time_and_the_last_ones_while_the_server_fails() {
    let world = World::new("", "").await;
    let server = &world.server;
    server.set("a.example", Says::Addresses(ips(&["192.0.2.1"]), 1));
    server.set("b.example", Says::Addresses(ips(&["192.0.2.1"]), 3600));
    let resolver = world.resolver();
    let _clock = SlowClock::new();
    for _ in 0..20 {
        assert_eq!(first(&resolver, "a.example").await, "192.0.2.1");
        assert_eq!(first(&resolver, "b.example").await, "192.0.2.1");
    }
    assert_eq!(server.times("b.example"), 1);
    server.set("a.example", Says::Addresses(ips(&["192.0.2.2"]), 1));
    advance(Duration::from_millis(1100)).await;
    assert_eq!(first(&resolver, "a.example").await, "192.0.2.2");
    for fault in [Says::Fails, Says::NoName(1), Says::Silence] {
        // Longer than any pause after a failure.
        advance(Duration::from_secs(31)).await;
        server.set("a.example", fault.clone());
        let asked = server.times("a.example");
        let begun = Instant::now();
        let is_asked = async {
            while server.times("a.example") == asked {
                yield_now().await;
            }
        };
        let mut waiting = pin!(first(&resolver, "a.example"));
        let found = tokio::select! {
            found = &mut waiting => found,
            () = is_asked => {
                // Of a silent server it is enough.
                if let Says::Silence = fault {
                    advance(PATIENCE).await;
                }
                waiting.await
            }
        };
        assert_eq!(found, "192.0.2.2", "{fault:?}");
        for _ in 0..20 {
            let found = first(&resolver, "a.example").await;
            assert_eq!(found, "192.0.2.2", "{fault:?}");
        }
        // The first of them waits for a second at most, and the others for nothing.
        assert!(begun.elapsed() < 2 * PATIENCE, "{fault:?}");
        let [unresolved] = &resolver.names().unresolved()[..] else {
            panic!("{fault:?}: the name does not resolve");
        };
        assert!(unresolved.has_addresses, "{fault:?}");
    }
    assert!(resolver.names().counts().stale >= 60);
}

/// Names that hang blocked all others when each look-up had a thread.
#[tokio::test]
async fn six_hundred_names_that_hang_hold_nobody_up() {
    let world = World::new("", "").await;
    let server = &world.server;
    server.set("*.hang.example", Says::Silence);
    server.set("new.example", Says::Addresses(ips(&["192.0.2.1"]), 1));
    let resolver = world.resolver();
    let hanging: Vec<_> = (0..600)
        .map(|number| {
            let resolver = Arc::clone(&resolver);
            tokio::spawn(async move {
                let name = format!("n{number}.hang.example");
                let cluster = name.as_str().into();
                let limit = Duration::from_secs(15);
                timeout(limit, resolver.resolve(&cluster, &name, 80)).await
            })
        })
        .collect();
    // One thread queries all of them; then the server has read its input.
    while resolver.kinds.new.free() > 768 - 600 {
        sleep(Duration::from_millis(5)).await;
    }
    let mut asked = 0;
    while server.asked().len() > asked {
        asked = server.asked().len();
        sleep(Duration::from_millis(200)).await;
    }
    assert_eq!(first(&resolver, "new.example").await, "192.0.2.1");
    assert!(hanging.iter().all(|hangs| !hangs.is_finished()));
    let ends = join_all(hanging).await;
    assert!(ends.iter().all(|end| !matches!(end, Ok(Ok(Ok(_))))));
}

/// A real name server: its messages, negative responses, and responses that exceed a datagram.
#[tokio::test]
async fn dnsmasq_is_understood() {
    let Some(dnsmasq) = peers::find("dnsmasq") else {
        return;
    };
    let many: String = (1..=60)
        .map(|last| format!("192.0.2.{last} many.example\n"))
        .collect();
    let world = World::new("search example\n", "").await;
    fs::write(world.file("many"), many).unwrap();
    let port = peers::free_port();
    let mut command = dnsmasq.command();
    command.args([
        "--no-daemon",
        "--conf-file=/dev/null",
        "--no-resolv",
        "--no-hosts",
        "--bind-interfaces",
        "--listen-address=127.0.0.1",
        "--local=/example/",
        "--host-record=both.example,192.0.2.1,2001:db8::1,7",
        "--cname=alias.example,both.example,5",
        "--srv-host=_http._tcp.orders.example,a.example,8080,10,60",
        "--srv-host=_http._tcp.orders.example,b.example,8443,20",
        "--log-facility=-",
    ]);
    command.arg(format!("--port={port}"));
    command.arg(format!("--addn-hosts={}", world.file("many").display()));
    let _process = peers::spawn(command);
    let servers = [SocketAddr::from(([127, 0, 0, 1], port))];
    let dns = Dns::new(world.options_with(&servers));
    testkit::time::eventually("it answers", async || {
        look_up(&dns, "both.example").await.0.is_ok()
    })
    .await;
    let both = ips(&["192.0.2.1", "2001:db8::1"]);
    for (name, ttl) in [("both", 7), ("both.example.", 7), ("alias.example", 5)] {
        let (found, lasts) = look_up(&dns, name).await;
        let mut found = found.unwrap();
        found.sort_unstable();
        assert_eq!((found, lasts), (both.clone(), ttl), "{name}");
    }
    let (found, _) = look_up(&dns, "many.example").await;
    assert_eq!(found.unwrap().len(), 60);
    let (error, _) = look_up(&dns, "none.example").await;
    assert_eq!(error.unwrap_err(), "there is no such name");

    // The servers of a service, also by the search domain.
    let lookup = DnsLookup::new(world.options_with(&servers));
    for name in ["_http._tcp.orders.example", "_HTTP._tcp.orders"] {
        let (mut found, lasts) = lookup.servers(name).await.unwrap();
        found.sort_unstable();
        let found: Vec<_> = found
            .iter()
            .map(|it| (it.priority, it.weight, it.target.as_str(), it.port))
            .collect();
        let expected = [(10, 60, "a.example", 8080), (20, 0, "b.example", 8443)];
        assert_eq!(found, expected, "{name}");
        assert!(lasts.is_some());
    }
    for (name, expected) in [
        ("_ftp._tcp.orders.example", "there is no such name"),
        ("both.example.", "the name has no server"),
    ] {
        let error = lookup.servers(name).await.unwrap_err();
        assert_eq!(error.to_string(), expected, "{name}");
    }
    let (mut found, lasts) = lookup.addresses("Both.example").await.unwrap();
    found.sort_unstable();
    assert_eq!((found, lasts), (both, Some(Duration::from_secs(7))));
}
