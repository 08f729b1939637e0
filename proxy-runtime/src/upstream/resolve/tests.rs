use std::collections::BTreeMap;
use std::time::Duration;

use futures_util::future::join_all;
use parking_lot::Mutex;
use tokio::task::{JoinHandle, yield_now};
use tokio::time::{Instant, sleep, timeout};

use super::*;

/// Names of a name server: `hang…` are never answered, `slow…` after a second, `none…` have no address, and all others have
/// 192.0.2.1. It counts who is asked for.
#[derive(Clone, Default)]
struct Script(Arc<Mutex<BTreeMap<String, usize>>>);

impl Script {
    /// A resolver with room for three look-ups.
    fn resolver(&self) -> Arc<Resolver> {
        let script = self.clone();
        let look_up = move |name: Arc<str>| -> Lookup {
            let mut asked = script.0.lock();
            *asked.entry(name.to_string()).or_default() += 1;
            Box::pin(async move {
                if name.starts_with("hang") {
                    std::future::pending::<()>().await;
                }
                if name.starts_with("slow") {
                    sleep(Duration::from_secs(1)).await;
                }
                match name.starts_with("none") {
                    true => Ok(Vec::new()),
                    false => Ok(vec![IpAddr::from([192, 0, 2, 1])]),
                }
            })
        };
        Arc::new(Resolver::with(3, Arc::new(look_up)))
    }

    fn asked(&self, name: &str) -> usize {
        self.0.lock().get(name).copied().unwrap_or(0)
    }
}

/// So many requests for a name, each of which gives up after 15 s.
fn requests(resolver: &Arc<Resolver>, name: &'static str, count: usize) -> Vec<JoinHandle<bool>> {
    let request = |_| {
        let resolver = Arc::clone(resolver);
        let limit = Duration::from_secs(15);
        tokio::spawn(async move { timeout(limit, resolver.resolve(name, 80)).await.is_ok() })
    };
    (0..count).map(request).collect()
}

#[tokio::test(start_paused = true)]
async fn who_wants_a_name_at_the_same_time_shares_its_look_up() {
    let script = Script::default();
    let resolver = script.resolver();
    let names = ["slow.example", "SLOW.example", "slow.example"];
    let found = join_all(names.map(|name| resolver.resolve(name, 8080))).await;
    for found in found {
        assert_eq!(found.unwrap(), ["192.0.2.1:8080".parse().unwrap()]);
    }
    assert_eq!(script.asked("slow.example"), 1);
    // What was found is not kept: names change.
    resolver.resolve("slow.example", 80).await.unwrap();
    assert_eq!(script.asked("slow.example"), 2);
}

#[tokio::test(start_paused = true)]
async fn errors_are_shared_too() {
    let script = Script::default();
    let resolver = script.resolver();
    let found = join_all(["none.example"; 3].map(|name| resolver.resolve(name, 80))).await;
    for found in found {
        assert_eq!(found.unwrap_err().kind(), io::ErrorKind::NotFound);
    }
    assert_eq!(script.asked("none.example"), 1);
}

#[tokio::test(start_paused = true)]
async fn a_name_that_hangs_leaves_room_for_others() {
    let script = Script::default();
    let resolver = script.resolver();
    let mut hanging = requests(&resolver, "hang.example", 1_000);
    for second in 0..60 {
        let begun = Instant::now();
        let name = ["a.example", "slow.example"][second % 2];
        resolver.resolve(name, 80).await.unwrap();
        assert!(begun.elapsed() <= Duration::from_secs(1), "{second}");
        sleep(Duration::from_secs(1) - begun.elapsed()).await;
        hanging.extend(requests(&resolver, "hang.example", 100));
    }
    assert_eq!(script.asked("hang.example"), 2);
    for request in hanging {
        assert!(
            !request.await.unwrap(),
            "nobody waits for longer than they want"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_look_up_that_takes_long_is_asked_anew_once() {
    let script = Script::default();
    let resolver = script.resolver();
    for (wait, asked) in [(0, 1), (4, 1), (2, 2), (4, 2), (20, 2)] {
        sleep(Duration::from_secs(wait)).await;
        requests(&resolver, "hang.example", 3);
        yield_now().await;
        yield_now().await;
        assert_eq!(script.asked("hang.example"), asked, "after {wait} s more");
    }
}

#[tokio::test(start_paused = true)]
async fn what_nobody_waits_for_any_more_is_not_begun() {
    let script = Script::default();
    let resolver = script.resolver();
    for name in [
        "hang1.example",
        "hang2.example",
        "hang3.example",
        "late.example",
    ] {
        requests(&resolver, name, 1);
    }
    sleep(Duration::from_secs(16)).await;
    assert_eq!(script.asked("hang3.example"), 1);
    assert_eq!(script.asked("late.example"), 0);
    resolver.lookups.add_permits(1);
    yield_now().await;
    assert_eq!(script.asked("late.example"), 0);
    resolver.resolve("late.example", 80).await.unwrap();
    assert_eq!(script.asked("late.example"), 1);
}

#[tokio::test]
async fn literals_need_no_lookup() {
    let resolver = Resolver::with(0, Arc::new(by_the_system));
    let found = resolver.resolve("::1", 8080).await.unwrap();
    assert_eq!(found, ["[::1]:8080".parse().unwrap()]);
}

#[tokio::test]
async fn localhost_is_found() {
    let found = Resolver::new().resolve("localhost", 81).await.unwrap();
    assert!(found.iter().all(|a| a.ip().is_loopback() && a.port() == 81));
    assert!(!found.is_empty());
}
