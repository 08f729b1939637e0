//! Leases: one of several programs writes. The time is virtual.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use azure_loadbalancer::sources::kubernetes::{KubernetesClient, Lease, LeaseLost, LeaseOptions};
use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use parking_lot::Mutex;
use serde_json::json;
use tokio::time::{Instant, sleep, timeout};

use crate::support::leases::{Leases, NAME};

const SECOND: Duration = Duration::from_secs(1);

/// The state of a program's connection to the API server.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Way {
    Open,
    Rejected,
    /// Requests are dropped: no effect and no response.
    Silent,
    /// Requests take effect, but their responses are lost.
    Deaf,
}

/// The connection of one program to an API server.
#[derive(Clone)]
struct Api {
    leases: Leases,
    way: Arc<Mutex<Way>>,
    calls: Arc<AtomicUsize>,
}

impl Api {
    fn new(leases: &Leases) -> Self {
        Self {
            leases: leases.clone(),
            way: Arc::new(Mutex::new(Way::Open)),
            calls: Arc::default(),
        }
    }

    fn set(&self, way: Way) {
        *self.way.lock() = way;
    }

    fn lease(&self, identity: &str) -> Lease<Self> {
        let client = KubernetesClient::new(self.clone(), "https://kubernetes.test").unwrap();
        let mut options = LeaseOptions::default();
        options.namespace = "infra".to_owned();
        options.name = NAME.to_owned();
        options.identity = identity.to_owned();
        Lease::new(client, options)
    }
}

impl tower_service::Service<Request<Bytes>> for Api {
    type Response = Response<Full<Bytes>>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, io::Error>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Bytes>) -> Self::Future {
        let way = *self.way.lock();
        self.calls.fetch_add(1, Ordering::Relaxed);
        let leases = self.leases.clone();
        Box::pin(async move {
            let (method, path) = (request.method().as_str(), request.uri().path());
            let answer = |leases: &Leases| leases.answer(method, path, request.body());
            match way {
                Way::Open => {
                    sleep(Duration::from_millis(5)).await;
                    let (status, body) = answer(&leases);
                    let body = Full::new(Bytes::from(body.to_string()));
                    Ok(Response::builder().status(status).body(body).unwrap())
                }
                Way::Rejected => Err(io::Error::other("connection refused")),
                Way::Silent => std::future::pending().await,
                Way::Deaf => {
                    answer(&leases);
                    std::future::pending().await
                }
            }
        })
    }
}

async fn acquired(lease: &mut Lease<Api>) {
    timeout(SECOND * 120, lease.acquire(|_| ())).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn the_first_holds_it_and_the_second_waits_until_it_is_over() {
    let leases = Leases::default();
    let (one, two) = (Api::new(&leases), Api::new(&leases));
    let (mut first, mut second) = (one.lease("one"), two.lease("two"));
    acquired(&mut first).await;
    let lease = leases.now();
    assert_eq!(lease["spec"]["holderIdentity"], "one");
    assert_eq!(lease["spec"]["leaseDurationSeconds"], 15);
    assert_eq!(lease["spec"]["leaseTransitions"], 0);
    // The clock of the other machine is an hour behind, and its last write is old: neither proves that it is
    // dead.
    leases.change(|lease| {
        lease["spec"]["renewTime"] = json!("2020-01-01T00:00:00.000000Z");
    });
    let mut told = Vec::new();
    let began = Instant::now();
    second.acquire(|holder| told.push(holder.to_owned())).await;
    assert_eq!(told, ["one"], "once");
    assert!(began.elapsed() >= SECOND * 15, "{:?}", began.elapsed());
    assert!(began.elapsed() < SECOND * 20, "{:?}", began.elapsed());
    let lease = leases.now();
    assert_eq!(lease["spec"]["holderIdentity"], "two");
    assert_eq!(lease["spec"]["leaseTransitions"], 1);
    // A program that was suspended beyond its deadline does not even send a request.
    let calls = one.calls.load(Ordering::Relaxed);
    let lost = first.keep().await;
    assert!(matches!(lost, LeaseLost::NotRenewed { .. }), "{lost}");
    assert_eq!(one.calls.load(Ordering::Relaxed), calls);
}

#[tokio::test(start_paused = true)]
async fn a_holder_that_renews_keeps_it_and_one_that_releases_is_followed_at_once() {
    let leases = Leases::default();
    let (one, two) = (Api::new(&leases), Api::new(&leases));
    let (mut first, mut second) = (one.lease("one"), two.lease("two"));
    acquired(&mut first).await;
    let acquire_time = leases.now()["spec"]["acquireTime"].clone();
    let waiting = async {
        acquired(&mut second).await;
    };
    tokio::select! {
        lost = first.keep() => panic!("{lost}"),
        () = waiting => panic!("two hold it"),
        () = sleep(SECOND * 100) => {}
    }
    assert_eq!(leases.now()["spec"]["acquireTime"], acquire_time);
    // One write for each renewal, and no read.
    let calls = one.calls.load(Ordering::Relaxed);
    assert!((45..55).contains(&calls), "{calls}");
    first.release().await;
    assert_eq!(leases.now()["spec"]["holderIdentity"], "");
    let began = Instant::now();
    acquired(&mut second).await;
    assert!(began.elapsed() < SECOND * 5, "{:?}", began.elapsed());
    // It does not release another program's lease.
    first.release().await;
    assert_eq!(leases.now()["spec"]["holderIdentity"], "two");
}

#[tokio::test(start_paused = true)]
async fn a_holder_gives_up_before_others_may_take_it() {
    for way in [Way::Rejected, Way::Silent] {
        let leases = Leases::default();
        let api = Api::new(&leases);
        let mut lease = api.lease("one");
        acquired(&mut lease).await;
        // A short absence is no reason to lose the lease.
        let blink = async {
            api.set(way);
            sleep(SECOND * 7).await;
            api.set(Way::Open);
            sleep(SECOND * 60).await;
        };
        tokio::select! {
            lost = lease.keep() => panic!("{way:?}: {lost}"),
            () = blink => {}
        }
        let began = Instant::now();
        api.set(way);
        let lost = lease.keep().await;
        assert!(matches!(lost, LeaseLost::NotRenewed { .. }), "{lost}");
        // The last renewal may be two seconds older.
        let after = began.elapsed();
        assert!(
            (SECOND * 8..=SECOND * 10).contains(&after),
            "{way:?}: {after:?}"
        );
        // When the connection works again, the program can take its own lease back.
        api.set(Way::Open);
        let began = Instant::now();
        acquired(&mut lease).await;
        assert!(began.elapsed() < SECOND * 5);
    }
}

#[tokio::test(start_paused = true)]
async fn writes_of_others_are_told_from_other_holders() {
    let leases = Leases::default();
    let api = Api::new(&leases);
    let mut lease = api.lease("one");
    acquired(&mut lease).await;
    let meddling = async {
        sleep(SECOND * 3).await;
        leases.change(|lease| lease["metadata"]["labels"] = json!({ "team": "front" }));
        sleep(SECOND * 20).await;
        leases.delete();
        sleep(SECOND * 20).await;
    };
    tokio::select! {
        lost = lease.keep() => panic!("{lost}"),
        () = meddling => {}
    }
    assert_eq!(leases.now()["spec"]["holderIdentity"], "one");
    leases.change(|lease| {
        lease["spec"]["holderIdentity"] = json!("kubectl");
        lease["spec"]["leaseDurationSeconds"] = json!(3_600);
    });
    let lost = timeout(SECOND * 3, lease.keep()).await.unwrap();
    assert_eq!(
        lost,
        LeaseLost::Taken {
            holder: "kubectl".to_owned()
        }
    );
}

/// Labels that others write do not extend the lease of a dead holder.
#[tokio::test(start_paused = true)]
async fn what_is_no_renewal_prolongs_nothing() {
    let leases = Leases::default();
    let api = Api::new(&leases);
    acquired(&mut api.lease("dead")).await;
    let mut next = api.lease("next");
    let labels = async {
        for count in 0.. {
            sleep(SECOND * 4).await;
            leases.change(|lease| {
                lease["metadata"]["labels"] = json!({ "count": count.to_string() })
            });
        }
    };
    let began = Instant::now();
    tokio::select! {
        () = next.acquire(|_| ()) => {}
        () = labels => {}
    }
    assert!(began.elapsed() < SECOND * 20, "{:?}", began.elapsed());
}

/// Checks with three programs and faulty connections that two never lead, and that one leads when the
/// connections work.
#[tokio::test(start_paused = true)]
async fn never_do_two_lead() {
    let leading = Arc::new(Mutex::new(Vec::new()));
    let terms = Arc::new(AtomicUsize::new(0));
    for seed in 0..20 {
        let mut random = fastrand::Rng::with_seed(seed);
        let leases = Leases::default();
        leading.lock().clear();
        let mut tasks = Vec::new();
        let ways: Vec<Api> = (0..3).map(|_| Api::new(&leases)).collect();
        for (number, api) in ways.iter().enumerate() {
            let name = format!("program-{number}");
            let mut lease = api.lease(&name);
            let (leading, terms) = (Arc::clone(&leading), Arc::clone(&terms));
            tasks.push(tokio::spawn(async move {
                loop {
                    lease.acquire(|_| ()).await;
                    let others = leading.lock().clone();
                    assert!(others.is_empty(), "{seed}: {name} beside {others:?}");
                    leading.lock().push(name.clone());
                    terms.fetch_add(1, Ordering::Relaxed);
                    lease.keep().await;
                    leading.lock().clear();
                }
            }));
        }
        for _ in 0..100 {
            let all = [Way::Open, Way::Open, Way::Rejected, Way::Silent, Way::Deaf];
            ways[random.usize(..3)].set(all[random.usize(..all.len())]);
            sleep(Duration::from_millis(random.u64(100..8_000))).await;
            assert!(tasks.iter().all(|task| !task.is_finished()), "{seed}");
        }
        ways.iter().for_each(|api| api.set(Way::Open));
        sleep(SECOND * 60).await;
        assert_eq!(leading.lock().len(), 1, "{seed}");
        assert!(tasks.iter().all(|task| !task.is_finished()), "{seed}");
        tasks.iter().for_each(tokio::task::JoinHandle::abort);
    }
    let terms = terms.load(Ordering::Relaxed);
    assert!(terms > 40, "it changes hands: {terms}");
}
