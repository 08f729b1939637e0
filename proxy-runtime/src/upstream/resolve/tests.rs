mod doubts;

use std::collections::BTreeMap;
use std::net::Ipv6Addr;
use std::time::Duration;

use futures_util::future::join_all;
use parking_lot::Mutex;
use tokio::task::{JoinHandle, yield_now};
use tokio::time::{sleep, timeout};

use super::*;

/// A scripted name server: `hang…` never resolves, `slow…` takes a second, `none…` has no address,
/// and all others have 192.0.2.1. It counts the look-ups of each name.
#[derive(Clone, Default)]
struct Script {
    asked: Arc<Mutex<BTreeMap<String, usize>>>,
    mood: Arc<Mutex<Mood>>,
}

/// The behaviour of the name server.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
enum Mood {
    /// The configured addresses of the names.
    #[default]
    Well,
    /// Another address for all of them.
    Moved,
    /// NXDOMAIN, SERVFAIL: an error at once.
    Fails,
    /// No answer, until the system gives up after 10 s.
    Silent,
    /// 2001:db8::1, and no response for IPv4.
    HalfSilent,
    /// 203.0.113.66 as `a.example.elsewhere`, because `a.example` fails.
    Elsewhere,
}

const V6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1);

const FEW: Most = Most {
    known: 3,
    new: 3,
    hanging: 3,
};

const HOUR: Duration = Duration::from_secs(3600);

/// The cluster of a name.
fn of(name: &str) -> ClusterId {
    name.into()
}

async fn resolve(
    resolver: &Resolver,
    name: &str,
    port: u16,
) -> Result<Vec<SocketAddr>, Arc<io::Error>> {
    resolver.resolve(&of(name), name, port).await
}

/// The scripted name server, used like the system or like DNS.
struct Scripted {
    script: Script,
    most: Most,
    stops: bool,
    lasts: Option<Duration>,
}

#[async_trait]
impl LookUp for Scripted {
    fn most(&self) -> Most {
        self.most
    }

    fn can_be_stopped(&self) -> bool {
        self.stops
    }

    async fn at_hand(&self, name: &str) -> Vec<IpAddr> {
        hosts::find(name).await
    }

    async fn look_up(&self, name: &str) -> LookupOutcome {
        let found = self.script.answer(name).await;
        let mood = *self.script.mood.lock();
        let full_name = match mood {
            Mood::Elsewhere => format!("{name}.elsewhere"),
            _ => name.to_owned(),
        };
        LookupOutcome {
            lasts: self.lasts,
            full_name: found.is_ok().then_some(full_name),
            is_part: mood == Mood::HalfSilent,
            unsure: (mood == Mood::Elsewhere).then(|| io::Error::other("SERVFAIL")),
            ..LookupOutcome::from(found)
        }
    }
}

impl Script {
    /// A resolver with permits for three look-ups.
    fn resolver(&self) -> Arc<Resolver> {
        self.with(FEW, false, None)
    }

    fn with(&self, most: Most, stops: bool, lasts: Option<Duration>) -> Arc<Resolver> {
        let look_up = Scripted {
            script: self.clone(),
            most,
            stops,
            lasts,
        };
        Arc::new(Resolver::with(HOUR, Arc::new(look_up)))
    }

    async fn answer(&self, name: &str) -> io::Result<Vec<IpAddr>> {
        *self.asked.lock().entry(name.to_owned()).or_default() += 1;
        let mood = *self.mood.lock();
        match mood {
            Mood::Well => {}
            Mood::Moved => return Ok(vec![IpAddr::from([192, 0, 2, 2])]),
            Mood::HalfSilent => return Ok(vec![V6.into()]),
            Mood::Elsewhere => return Ok(vec![IpAddr::from([203, 0, 113, 66])]),
            Mood::Fails => return Err(io::Error::other("SERVFAIL")),
            Mood::Silent => {
                sleep(Duration::from_secs(10)).await;
                return Err(io::Error::other("no answer"));
            }
        }
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
    }

    /// Changes the behaviour for all names.
    fn turn(&self, mood: Mood) {
        *self.mood.lock() = mood;
    }

    fn asked(&self, name: &str) -> usize {
        self.asked.lock().get(name).copied().unwrap_or(0)
    }
}

/// Starts `count` requests for a name, with a timeout of 15 s each.
fn requests(resolver: &Arc<Resolver>, name: &'static str, count: usize) -> Vec<JoinHandle<bool>> {
    let request = |_| {
        let resolver = Arc::clone(resolver);
        let limit = Duration::from_secs(15);
        tokio::spawn(async move {
            timeout(limit, resolver.resolve(&of(name), name, 80))
                .await
                .is_ok()
        })
    };
    (0..count).map(request).collect()
}

#[tokio::test(start_paused = true)]
async fn who_wants_a_name_at_the_same_time_shares_its_look_up() {
    let script = Script::default();
    let resolver = script.resolver();
    let names = ["slow.example", "SLOW.example", "slow.example"];
    let found = join_all(names.map(|name| resolve(&resolver, name, 8080))).await;
    for found in found {
        assert_eq!(found.unwrap(), ["192.0.2.1:8080".parse().unwrap()]);
    }
    assert_eq!(script.asked("slow.example"), 1);
    // The result is not cached: names change.
    resolver
        .resolve(&of("slow.example"), "slow.example", 80)
        .await
        .unwrap();
    assert_eq!(script.asked("slow.example"), 2);
}

#[tokio::test(start_paused = true)]
async fn errors_are_shared_too() {
    let script = Script::default();
    let resolver = script.resolver();
    let found = join_all(["none.example"; 3].map(|name| resolve(&resolver, name, 80))).await;
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
        resolver.resolve(&of(name), name, 80).await.unwrap();
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
    let places: Vec<_> = ["a", "b", "c"]
        .iter()
        .map_while(|cluster| resolver.kinds.new.try_take(&of(cluster)))
        .collect();
    assert_eq!(places.len(), 3);
    requests(&resolver, "late.example", 1);
    sleep(Duration::from_secs(16)).await;
    drop(places);
    yield_now().await;
    assert_eq!(script.asked("late.example"), 0);
    resolver
        .resolve(&of("late.example"), "late.example", 80)
        .await
        .unwrap();
    assert_eq!(script.asked("late.example"), 1);
}

#[tokio::test]
async fn literals_need_no_lookup() {
    let resolver = Resolver::with(HOUR, Arc::new(system::System));
    let found = resolver.resolve(&of("::1"), "::1", 8080).await.unwrap();
    assert_eq!(found, ["[::1]:8080".parse().unwrap()]);
}

#[tokio::test]
async fn localhost_is_found() {
    let found = Resolver::with(HOUR, Arc::new(system::System))
        .resolve(&of("localhost"), "localhost", 81)
        .await
        .unwrap();
    assert!(found.iter().all(|a| a.ip().is_loopback() && a.port() == 81));
    assert!(!found.is_empty());
}

const NAME: &str = "a.example";

async fn first(resolver: &Resolver) -> String {
    match resolver.resolve(&of(NAME), NAME, 80).await {
        Ok(found) => found[0].ip().to_string(),
        Err(error) => error.to_string(),
    }
}

#[tokio::test(start_paused = true)]
async fn the_last_addresses_are_used_while_the_name_server_fails() {
    for mood in [Mood::Fails, Mood::Silent] {
        let script = Script::default();
        let resolver = script.resolver();
        assert_eq!(first(&resolver).await, "192.0.2.1");
        script.turn(mood);
        // For an hour from the first failure.
        sleep(2 * HOUR).await;
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_secs(3590) {
            let asked = Instant::now();
            assert_eq!(first(&resolver).await, "192.0.2.1", "{mood:?}");
            assert!(asked.elapsed() <= PATIENCE, "{mood:?}");
            sleep(Duration::from_secs(7)).await;
        }
        let [unresolved] = &resolver.names().unresolved()[..] else {
            panic!("{mood:?}: the name is failing");
        };
        assert_eq!((&*unresolved.name, unresolved.has_addresses), (NAME, true));
        assert!(unresolved.since > Duration::from_secs(3500));
        sleep(Duration::from_secs(60)).await;
        let error = first(&resolver).await;
        assert!(["SERVFAIL", "no answer"].contains(&&*error), "{error}");
        assert!(!resolver.names().unresolved()[0].has_addresses);
        let counts = resolver.names().counts();
        assert!(counts.failures > 50 && counts.stale > 400, "{counts:?}");
        // The name is looked up again after at most half a minute, and a new result is used at
        // once.
        script.turn(Mood::Moved);
        sleep(Duration::from_secs(41)).await;
        assert_eq!(first(&resolver).await, "192.0.2.2");
        assert!(resolver.names().unresolved().is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn a_slow_answer_does_not_hold_up_requests_for_longer_than_a_second() {
    let script = Script::default();
    let resolver = script.resolver();
    first(&resolver).await;
    script.turn(Mood::Silent);
    let begun = Instant::now();
    assert_eq!(first(&resolver).await, "192.0.2.1");
    assert_eq!(begun.elapsed(), PATIENCE);
    sleep(Duration::from_millis(1)).await;
    for _ in 0..100 {
        assert_eq!(first(&resolver).await, "192.0.2.1");
    }
    assert!(begun.elapsed() < 2 * PATIENCE, "the others do not wait");
    assert_eq!(script.asked(NAME), 2);
}

#[tokio::test(start_paused = true)]
async fn nothing_is_kept_if_nothing_is_to_be() {
    let script = Script::default();
    let resolver = {
        let full = script.resolver();
        Resolver::with(Duration::ZERO, Arc::clone(&full.look_up))
    };
    assert_eq!(first(&resolver).await, "192.0.2.1");
    script.turn(Mood::Fails);
    assert_eq!(first(&resolver).await, "SERVFAIL");
}

#[tokio::test(start_paused = true)]
async fn many_names_that_hang_leave_room_for_those_that_answer() {
    let script = Script::default();
    let resolver = script.with(system::System.most(), false, None);
    first(&resolver).await;
    let hanging: Vec<_> = (0..600)
        .map(|number| {
            let resolver = Arc::clone(&resolver);
            tokio::spawn(async move {
                let name = format!("hang{number}.example");
                timeout(
                    Duration::from_secs(15),
                    resolver.resolve(&of(&name), &name, 80),
                )
                .await
                .is_ok()
            })
        })
        .collect();
    yield_now().await;
    let begun = Instant::now();
    assert_eq!(first(&resolver).await, "192.0.2.1", "it answered before");
    let found = resolver
        .resolve(&of("localhost"), "localhost", 80)
        .await
        .unwrap();
    assert!(
        found[0].ip().is_loopback(),
        "it is in the table of the system"
    );
    assert!(begun.elapsed() <= PATIENCE, "{:?}", begun.elapsed());
    for request in hanging {
        assert!(!request.await.unwrap());
    }
}

/// Names known to hang have few threads, and others do not wait for those.
#[tokio::test(start_paused = true)]
async fn names_that_hung_are_asked_less_often_and_fail_at_once() {
    let script = Script::default();
    let resolver = script.with(system::System.most(), false, None);
    script.turn(Mood::Silent);
    let names: Vec<String> = (0..100)
        .map(|number| format!("n{number}.example"))
        .collect();
    let all = || join_all(names.iter().map(|name| resolve(&resolver, name, 80)));
    assert!(all().await.iter().all(Result::is_err));
    let begun = Instant::now();
    assert!(all().await.iter().all(Result::is_err));
    assert_eq!(begun.elapsed(), Duration::ZERO, "a moment ago they hung");
    // When they may be looked up again, those without a thread fail at once.
    sleep(Duration::from_secs(2)).await;
    let asked: usize = names.iter().map(|name| script.asked(name)).sum();
    assert_eq!(asked, 100);
    assert!(all().await.iter().all(Result::is_err));
    let asked: usize = names.iter().map(|name| script.asked(name)).sum();
    assert_eq!(asked, 100 + system::System.most().hanging);
    assert_eq!(resolver.kinds.new.free(), system::System.most().new);
}

#[tokio::test(start_paused = true)]
async fn what_was_found_holds_for_as_long_as_was_said() {
    let script = Script::default();
    let resolver = script.with(FEW, true, Some(Duration::from_secs(5)));
    assert_eq!(first(&resolver).await, "192.0.2.1");
    script.turn(Mood::Moved);
    sleep(Duration::from_millis(4999)).await;
    assert_eq!(first(&resolver).await, "192.0.2.1");
    assert_eq!(script.asked(NAME), 1);
    sleep(Duration::from_millis(1)).await;
    assert_eq!(first(&resolver).await, "192.0.2.2");
    assert_eq!(script.asked(NAME), 2);
    assert_eq!(resolver.names().counts().stale, 0, "it was fresh");
}

#[tokio::test(start_paused = true)]
async fn failures_hold_for_as_long_as_was_said() {
    let lasts = Duration::from_secs(5);
    for is_known in [true, false] {
        let script = Script::default();
        let resolver = script.with(FEW, true, Some(lasts));
        if is_known {
            first(&resolver).await;
            sleep(lasts).await;
        }
        script.turn(Mood::Fails);
        let expected = ["SERVFAIL", "192.0.2.1"][usize::from(is_known)];
        let asked = script.asked(NAME) + 1;
        for _ in 0..10 {
            assert_eq!(first(&resolver).await, expected);
        }
        assert_eq!(script.asked(NAME), asked);
        sleep(lasts).await;
        script.turn(Mood::Moved);
        assert_eq!(first(&resolver).await, "192.0.2.2");
    }
}

/// Neither one cluster with many hanging names nor many clusters with one each delay a new name.
#[tokio::test(start_paused = true)]
async fn new_names_do_not_wait_for_those_that_hang() {
    let most = Most {
        known: 10,
        new: 100,
        hanging: 10,
    };
    for (is_one_cluster, longest) in [(true, Duration::ZERO), (false, SLOW)] {
        let script = Script::default();
        let resolver = script.with(most, true, None);
        let hanging: Vec<_> = (0..190)
            .map(|number| {
                let resolver = Arc::clone(&resolver);
                tokio::spawn(async move {
                    let name = format!("hang{number}.example");
                    let cluster = match is_one_cluster {
                        true => of("greedy"),
                        false => of(&name),
                    };
                    let limit = Duration::from_secs(15);
                    timeout(limit, resolver.resolve(&cluster, &name, 80)).await
                })
            })
            .collect();
        sleep(Duration::from_millis(1)).await;
        let begun = Instant::now();
        assert_eq!(first(&resolver).await, "192.0.2.1");
        assert!(begun.elapsed() <= longest, "{:?}", begun.elapsed());
        for hanging in hanging {
            assert!(!matches!(hanging.await, Ok(Ok(Ok(_)))));
        }
        assert_eq!(resolver.kinds.new.free(), most.new);
    }
}
