//! Followers of a Consul in memory, by the requests that they make.

use super::*;
use crate::client::{ConsulClient, ConsulErrorKind, HealthEntry, ServiceDefinition};
use crate::testing::{FakeConsul, Fault};

const WAIT: Duration = Duration::from_secs(30);

fn follower(client: &ConsulClient) -> Follower<Vec<HealthEntry>> {
    let client = client.clone();
    Follower::new(FollowOptions::default(), Query::new(), move |query| {
        let client = client.clone();
        async move { client.health_service("web", &query).await }
    })
}

fn indexes(consul: &FakeConsul) -> Vec<u64> {
    consul
        .requests()
        .iter()
        .map(|request| request.index())
        .collect()
}

fn changed(followed: Followed<Vec<HealthEntry>>) -> (usize, bool) {
    match followed {
        Followed::Changed { answer, is_anew } => (answer.value.len(), is_anew),
        other => panic!("{other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn news_come_at_once_and_silence_costs_one_request_per_wait() {
    let consul = FakeConsul::new("sas");
    let mut web = follower(&consul.client());
    assert_eq!(changed(web.next().await), (0, true));
    let started = Instant::now();
    assert!(matches!(web.next().await, Followed::Quiet));
    assert!(started.elapsed() >= WAIT && started.elapsed() <= WAIT + WAIT / 16);

    let registering = async {
        sleep(Duration::from_secs(5)).await;
        consul.register("sas", "n1", ServiceDefinition::new("web", 80));
    };
    let started = Instant::now();
    let (followed, ()) = tokio::join!(web.next(), registering);
    assert_eq!(changed(followed), (1, false));
    assert_eq!(started.elapsed(), Duration::from_secs(5));
    assert_eq!(indexes(&consul), [0, 10, 10]);
}

/// An agent whose `max_query_time` is lower than our wait.
#[tokio::test(start_paused = true)]
async fn changes_are_seen_at_once_where_the_agent_waits_for_a_shorter_time() {
    let consul = FakeConsul::new("sas");
    let client = consul.client();
    let last = Arc::new(parking_lot::Mutex::new(None));
    let mut web = Follower::new(FollowOptions::default(), Query::new(), move |query| {
        let (client, last) = (client.clone(), Arc::clone(&last));
        async move {
            let asked = client.health_service("web", &query);
            match tokio::time::timeout(Duration::from_secs(5), asked).await {
                Ok(answer) => {
                    let answer = answer?;
                    *last.lock() = Some(answer.clone());
                    Ok(answer)
                }
                Err(_) => Ok(last.lock().clone().unwrap()),
            }
        }
    });
    web.next().await;
    for change in 0..6 {
        let registering = async {
            sleep(Duration::from_secs(22)).await;
            consul.register("sas", "n1", ServiceDefinition::new("web", 80 + change));
            Instant::now()
        };
        let seeing = async {
            while !matches!(web.next().await, Followed::Changed { .. }) {}
            Instant::now()
        };
        let (registered, seen) = tokio::join!(registering, seeing);
        assert!(
            seen - registered < Duration::from_secs(1),
            "{change}: {:?}",
            seen - registered
        );
    }
    let asked = consul.requests().len();
    assert!(
        asked <= 6 * 6 + 1,
        "at most one query per 5 s and change: {asked}"
    );
}

#[tokio::test(start_paused = true)]
async fn an_index_that_goes_back_is_asked_anew_and_content_that_is_the_same_is_no_change() {
    let consul = FakeConsul::new("sas");
    consul.register("sas", "n1", ServiceDefinition::new("web", 80));
    let mut web = follower(&consul.client());
    assert_eq!(changed(web.next().await), (1, true));
    consul.fail("health", Fault::Index(5));
    assert!(matches!(
        web.next().await,
        Followed::Woken { is_anew: true, .. }
    ));
    consul.heal();
    assert!(matches!(
        web.next().await,
        Followed::Woken { is_anew: true, .. }
    ));
    assert_eq!(indexes(&consul), [0, 11, 0]);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_says_0_is_asked_with_1_and_seldom() {
    let consul = FakeConsul::new("sas");
    consul.fail("health", Fault::Index(0));
    let mut web = follower(&consul.client());
    let started = Instant::now();
    assert_eq!(changed(web.next().await), (0, true));
    for _ in 0..10 {
        assert!(matches!(web.next().await, Followed::Quiet));
    }
    assert_eq!(indexes(&consul)[1..], [1; 10]);
    let took = started.elapsed();
    // Two at once, and then one every 15 s.
    assert!(took >= Duration::from_secs(7 * 15), "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn errors_are_backed_off_from_and_begin_anew_with_their_index_forgotten() {
    let consul = FakeConsul::new("sas");
    consul.register("sas", "n1", ServiceDefinition::new("web", 80));
    let mut web = follower(&consul.client());
    web.next().await;
    consul.fail("health", Fault::Status(500, "rpc error making call: EOF"));
    let mut gaps = Vec::new();
    for _ in 0..8 {
        let started = Instant::now();
        assert!(matches!(web.next().await, Followed::Failed(_)));
        gaps.push(started.elapsed());
    }
    assert!(gaps[1] < Duration::from_millis(600), "{gaps:?}");
    let longest = Duration::from_millis(700)..=Duration::from_millis(1_600);
    assert!(
        gaps[3..].iter().all(|gap| longest.contains(gap)),
        "{gaps:?}"
    );
    consul.heal();
    assert!(matches!(
        web.next().await,
        Followed::Woken { is_anew: true, .. }
    ));
    assert_eq!(indexes(&consul), [0, 11, 0, 0, 0, 0, 0, 0, 0, 0]);
}

#[tokio::test(start_paused = true)]
async fn a_rejection_is_asked_again_seldom_and_its_end_is_known_at_once() {
    let consul = FakeConsul::new("sas");
    consul.register("sas", "n1", ServiceDefinition::new("web", 80));
    let mut web = follower(&consul.client());
    web.next().await;
    consul.fail("health", Fault::Status(403, "ACL not found"));
    for _ in 0..2 {
        let Followed::Failed(error) = web.next().await else {
            panic!("it is rejected");
        };
        assert_eq!(error.kind(), ConsulErrorKind::Denied);
    }
    let requests = consul.requests();
    assert!(requests[2].at - requests[1].at >= Duration::from_secs(15));
    consul.heal();
    for _ in 0..2 {
        assert!(matches!(web.next().await, Followed::Quiet));
    }
    // What is known is not waited for, and afterwards changes are.
    assert_eq!(indexes(&consul), [0, 11, 0, 0, 11]);
    let requests = consul.requests();
    assert!(requests[4].at - requests[3].at < Duration::from_secs(2));
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_hangs_is_given_up_and_asked_anew() {
    let consul = FakeConsul::new("sas");
    let mut web = follower(&consul.client());
    web.next().await;
    consul.fail("health", Fault::Hang);
    let started = Instant::now();
    let Followed::Failed(error) = web.next().await else {
        panic!("it hangs");
    };
    assert_eq!(error.kind(), ConsulErrorKind::TimedOut);
    // The wait, a sixteenth, and the time for a response.
    let limit = WAIT + WAIT / 16 + Duration::from_secs(10);
    assert_eq!(started.elapsed(), limit);
    consul.heal();
    assert!(matches!(
        web.next().await,
        Followed::Woken { is_anew: true, .. }
    ));
    assert_eq!(indexes(&consul), [0, 10, 0]);
}

#[tokio::test(start_paused = true)]
async fn what_has_no_index_is_asked_now_and_then() {
    let consul = FakeConsul::new("sas");
    consul.fail("health", Fault::NoIndex);
    let mut web = follower(&consul.client());
    web.next().await;
    let started = Instant::now();
    assert!(matches!(web.next().await, Followed::Quiet));
    let took = started.elapsed().as_secs();
    assert!((40..=50).contains(&took), "{took}");
    assert_eq!(indexes(&consul), [0, 0]);
}

#[tokio::test(start_paused = true)]
async fn constant_news_are_taken_at_a_bounded_rate() {
    let consul = FakeConsul::new("sas");
    let mut web = follower(&consul.client());
    let started = Instant::now();
    for port in 1..=41 {
        consul.register("sas", "n1", ServiceDefinition::new("web", port));
        web.next().await;
    }
    // Two at once, and then four a second.
    assert_eq!(started.elapsed(), Duration::from_millis(39 * 250));
}

#[tokio::test(start_paused = true)]
async fn a_key_that_is_not_there_is_waited_for() {
    let consul = FakeConsul::new("sas");
    let client = consul.client();
    let mut key = Follower::new(FollowOptions::default(), Query::new(), move |query| {
        let client = client.clone();
        async move { client.kv_get("a/b", &query).await }
    });
    let value = |followed| match followed {
        Followed::Changed { answer, .. } => {
            let answer: Answer<Arc<Option<crate::client::KvPair>>> = answer;
            (*answer.value).clone().map(|pair| pair.value)
        }
        other => panic!("{other:?}"),
    };
    assert_eq!(value(key.next().await), None);
    consul.put("sas", "a/b", b"1");
    assert_eq!(value(key.next().await), Some(b"1".to_vec()));
    consul.put("sas", "a/b", b"");
    assert_eq!(value(key.next().await), Some(Vec::new()));
}

/// A rejected query is not retried for long, unless its cause changes.
#[tokio::test(start_paused = true)]
async fn a_pause_after_a_rejection_ends_when_the_cause_goes_away() {
    let consul = FakeConsul::new("sas");
    let wake = Arc::new(tokio::sync::Notify::new());
    let changed = Arc::clone(&wake);
    let mut web = follower(&consul.client()).woken_by(move || {
        let changed = Arc::clone(&changed);
        async move { changed.notified().await }
    });
    consul.fail("health", Fault::Status(403, "Permission denied"));
    let rejected = |followed: Followed<Vec<HealthEntry>>| matches!(followed, Followed::Failed(_));
    assert!(rejected(web.next().await));
    let started = Instant::now();
    assert!(rejected(web.next().await));
    assert!(started.elapsed() >= Duration::from_secs(15));
    consul.heal();
    let started = Instant::now();
    wake.notify_one();
    assert!(matches!(web.next().await, Followed::Changed { .. }));
    assert!(
        started.elapsed() <= Duration::from_secs(1),
        "{:?}",
        started.elapsed()
    );

    // An outage may pass, and is retried at least every two seconds.
    consul.fail("", Fault::Reset);
    for _ in 0..20 {
        let started = Instant::now();
        assert!(rejected(web.next().await));
        assert!(started.elapsed() <= Duration::from_secs(2) + WAIT / 16);
    }
}

/// A proxy before the agent, or a faulty server, which would otherwise be queried four times a second.
#[tokio::test(start_paused = true)]
async fn an_index_that_goes_back_and_forth_is_asked_rarely() {
    let consul = FakeConsul::new("sas");
    consul.register("sas", "n1", ServiceDefinition::new("web", 80));
    let mut web = follower(&consul.client());
    let started = Instant::now();
    for turn in 0..20 {
        consul.heal();
        consul.fail("health", Fault::Index([11, 0][turn % 2]));
        let followed = web.next().await;
        assert!(!matches!(followed, Followed::Failed(_)), "{followed:?}");
    }
    let took = started.elapsed();
    assert!(took >= Duration::from_secs(7 * 15), "{took:?}");
}
