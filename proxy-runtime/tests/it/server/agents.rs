//! Agents on the destinations, on every way through the proxy: clients of both versions of HTTP, as bytes and over
//! `http` types, with and without layers.

use std::collections::BTreeMap;
use std::sync::Arc;

use http::Request;
use proxy_runtime::Proxy;
use proxy_runtime::health::Health;
use proxy_runtime::proxy_model::config::ProxyConfig;
use proxy_runtime::proxy_model::{CompileOptions, Snapshot};
use proxy_runtime::status::{AgentStatus, DestinationStatus};
use serde_json::{Value, json};
use testkit::agent::Agent;
use testkit::faults::RefusingPort;
use testkit::origin::{NamedOrigin, Origin};
use testkit::time::eventually;

use crate::server::affinity::{NAME, Way, ways};

/// A short interval, so that words count soon.
pub(super) const SOON: &str = "00:00:00.02";

/// A cluster with these settings, of destinations with these agents.
pub(super) fn config(
    cluster: &Value,
    agent: &Value,
    destinations: &[(&NamedOrigin, u16)],
) -> Value {
    let named = destinations.iter().map(|(origin, port)| {
        let metadata = json!({ "AgentCheck.Port": port.to_string() });
        let settings = json!({ "Address": origin.url(), "Metadata": metadata });
        (origin.name().to_owned(), settings)
    });
    let mut cluster = cluster.clone();
    let mut check = json!({ "Enabled": true, "Interval": SOON, "Timeout": "00:00:05" });
    check
        .as_object_mut()
        .unwrap()
        .extend(agent.as_object().unwrap().clone());
    cluster["HealthCheck"]["Agent"] = check;
    cluster["Destinations"] = Value::Object(named.collect());
    json!({
        "Routes": { "r": { "ClusterId": "c", "Match": { "Path": "/{**rest}" } } },
        "Clusters": { "c": cluster },
    })
}

pub(super) fn destination(proxy: &Proxy, id: &str) -> DestinationStatus {
    let cluster = proxy.clusters().remove(0);
    let mut all = cluster.destinations.into_iter();
    all.find(|destination| destination.id.as_str() == id)
        .unwrap()
}

pub(super) fn agent(proxy: &Proxy, id: &str) -> AgentStatus {
    destination(proxy, id).agent.unwrap()
}

/// Lets an agent say a line, and waits until the proxy has heard it.
pub(super) async fn say(proxy: &Proxy, id: &str, speaker: &Agent, line: &str) {
    speaker.say(format!("{line}\n"));
    let shown: String = line.chars().filter(|c| !c.is_control()).collect();
    eventually(format!("{id} is heard to say {line:?}"), || async {
        agent(proxy, id).last.as_deref() == Some(&*shown)
    })
    .await;
}

impl Way {
    async fn says(&self, id: &str, speaker: &Agent, line: &str) {
        say(&self.proxy, id, speaker, line).await;
    }

    /// The number of responses of each destination to this many clients without a key.
    async fn shares(&mut self, clients: usize) -> BTreeMap<String, usize> {
        let mut shares = BTreeMap::new();
        for _ in 0..clients {
            let answer = self.ask(None).await;
            let by = match answer.status.as_u16() {
                200 => answer.text().trim().to_owned(),
                other => other.to_string(),
            };
            *shares.entry(by).or_default() += 1;
        }
        shares
    }
}

pub(super) fn shares<const N: usize>(of: [(&str, usize); N]) -> BTreeMap<String, usize> {
    of.map(|(by, count)| (by.to_owned(), count)).into()
}

#[tokio::test]
async fn an_agent_says_what_its_destination_gets() {
    let (a, b) = (Origin::named("a"), Origin::named("b"));
    let cluster = json!({
        "LoadBalancingPolicy": "RoundRobin",
        "SessionAffinity": { "Enabled": true, "AffinityKeyName": NAME },
    });
    let (of_a, of_b) = (Agent::saying("ready up\n"), Agent::saying("ready up\n"));
    let config = config(
        &cluster,
        &json!({}),
        &[(&a, of_a.port()), (&b, of_b.port())],
    );
    for mut way in ways(&config).await {
        way.says("a", &of_a, "ready up 100%").await;
        way.says("b", &of_b, "ready up 100%").await;
        assert_eq!(destination(&way.proxy, "a").health, Health::Healthy);
        assert_eq!(
            way.shares(10).await,
            shares([("a", 5), ("b", 5)]),
            "{}",
            way.name
        );
        let at_a = way.settle("a").await;

        // A drained destination keeps its clients and gets no others, even if there is no other.
        way.says("a", &of_a, "drain").await;
        assert_eq!(way.shares(6).await, shares([("b", 6)]), "{}", way.name);
        way.expect(&at_a, "a", false, "its destination drains")
            .await;
        let shown = destination(&way.proxy, "a");
        assert_eq!(shown.why.as_deref(), Some("drained by its agent"));
        way.says("b", &of_b, "drain").await;
        assert_eq!(way.shares(2).await, shares([("503", 2)]), "{}", way.name);
        way.expect(&at_a, "a", false, "all destinations drain")
            .await;
        way.says("b", &of_b, "ready").await;

        // So does one of no weight.
        way.says("a", &of_a, "ready 0%").await;
        assert_eq!(way.shares(4).await, shares([("b", 4)]), "{}", way.name);
        way.expect(&at_a, "a", false, "its destination has no weight")
            .await;

        // A part of the weight, which stays until the agent says another.
        way.says("a", &of_a, "50%").await;
        assert_eq!(
            way.shares(30).await,
            shares([("a", 10), ("b", 20)]),
            "{}",
            way.name
        );
        way.says("a", &of_a, "up").await;
        way.says("b", &of_b, "weight:3").await;
        assert_eq!(
            way.shares(35).await,
            shares([("a", 5), ("b", 30)]),
            "{}",
            way.name
        );
        assert_eq!(agent(&way.proxy, "a").weight.as_deref(), Some("50%"));
        assert_eq!(agent(&way.proxy, "b").weight.as_deref(), Some("3"));

        // One in maintenance gets nothing.
        way.says("a", &of_a, "maint").await;
        let moved = way
            .expect(&at_a, "b", true, "its destination is in maintenance")
            .await;
        way.expect(&moved.unwrap(), "b", false, "it has moved")
            .await;
        way.says("b", &of_b, "maint").await;
        assert_eq!(way.shares(2).await, shares([("503", 2)]), "{}", way.name);
        way.says("a", &of_a, "ready").await;
        way.says("b", &of_b, "ready").await;

        // One that is down gets requests only if all are.
        way.says("a", &of_a, "down #disk full").await;
        assert_eq!(way.shares(3).await, shares([("b", 3)]), "{}", way.name);
        let shown = destination(&way.proxy, "a");
        assert_eq!(
            (shown.health, shown.why.as_deref()),
            (Health::Unhealthy, Some("down by its agent"))
        );
        let words = shown.agent.unwrap();
        assert_eq!(
            (words.health.as_deref(), words.reason.as_deref()),
            (Some("down"), Some("disk full"))
        );
        way.says("b", &of_b, "stopped 50%").await;
        way.says("a", &of_a, "fail 50%").await;
        assert_eq!(
            way.shares(4).await,
            shares([("a", 2), ("b", 2)]),
            "{}",
            way.name
        );
        let request = Request::get("http://h/x").body(()).unwrap().into_parts().0;
        let explained = way
            .proxy
            .explain(&request, proxy_runtime::ConnectionInfo::default());
        assert!(explained.panic, "{}", way.name);
        for (id, speaker) in [("a", &of_a), ("b", &of_b)] {
            way.says(id, speaker, "up ready 100%").await;
        }
        way.says("a", &of_a, "drain").await;
        let explained = way
            .proxy
            .explain(&request, proxy_runtime::ConnectionInfo::default());
        assert_eq!(
            explained.destinations[0].why.as_deref(),
            Some("drained by its agent")
        );
        way.says("a", &of_a, "ready").await;
    }
}

/// The time for which a drained destination keeps its clients counts from the word of its agent.
#[tokio::test]
async fn a_drain_by_an_agent_ends() {
    let (a, b) = (Origin::named("a"), Origin::named("b"));
    let cluster = json!({
        "SessionAffinity": { "Enabled": true, "AffinityKeyName": NAME, "DrainTimeout": "00:00:00.001" },
    });
    let (of_a, of_b) = (Agent::saying("ready\n"), Agent::saying("ready\n"));
    let config = config(
        &cluster,
        &json!({}),
        &[(&a, of_a.port()), (&b, of_b.port())],
    );
    for mut way in ways(&config).await {
        way.says("a", &of_a, "ready up").await;
        let at_a = way.settle("a").await;
        // A new configuration is no drain, and does not end one.
        way.publish(&config);
        way.expect(&at_a, "a", false, "a new configuration").await;
        way.says("a", &of_a, "drain up").await;
        way.publish(&config);
        eventually("the drain is over", || async {
            destination(&way.proxy, "a").why.as_deref() == Some("drained by its agent")
        })
        .await;
        tokio::time::sleep(std::time::Duration::from_millis(2)).await;
        way.expect(&at_a, "b", true, "the drain is over").await;
        of_a.say("ready\n");
    }
}

pub(super) fn compiled(config: &Value) -> Arc<Snapshot> {
    let config = ProxyConfig::from_json(&config.to_string()).unwrap();
    Arc::new(
        Snapshot::compile(config, &CompileOptions::default())
            .unwrap()
            .0,
    )
}

pub(super) fn start(config: &Value) -> Proxy {
    let builder = Proxy::builder().snapshot(compiled(config));
    let (proxy, driver) = builder.build().unwrap();
    tokio::spawn(driver);
    proxy
}

#[tokio::test]
async fn an_agent_that_says_nothing_right_changes_nothing() {
    let a = Origin::named("a");
    let speaker = Agent::saying("drain 50% maxconn:7 down #why\n");
    let closed = RefusingPort::new();
    let short = json!({ "Timeout": "00:00:00.2" });
    let proxy = start(&config(&json!({}), &short, &[(&a, speaker.port())]));
    let hears = async |what: &str| {
        let last = || agent(&proxy, "a").last.unwrap_or_default();
        eventually(format!("{what} is heard"), || async {
            last().contains(what)
        })
        .await;
        agent(&proxy, "a")
    };
    let first = hears("drain 50% maxconn:7 down").await;
    assert_eq!(first.max_connections, Some(7));
    let unchanged = |now: &AgentStatus| {
        let kept = |status: &AgentStatus| AgentStatus::clone(status);
        let (mut before, mut now) = (kept(&first), kept(now));
        (before.checks, now.checks) = (0, 0);
        (before.last, now.last) = (None, None);
        assert_eq!(now, before);
    };
    // Its end is missing, it comes too late, it has too many bytes, and it is of no word.
    speaker.say("ready up 100%");
    unchanged(&hears("end of file").await);
    speaker.be_silent();
    unchanged(&hears("no line within 200ms").await);
    speaker.say_endlessly("up ready ");
    unchanged(&hears("more than 1024 bytes").await);
    speaker.say(format!("up{}\n", " ".repeat(2000)));
    unchanged(&hears("more than 1024 bytes").await);
    speaker.say(b"\xff\x00 hello, 75 weight:x maxconn:-1\n".to_vec());
    unchanged(&hears("hello").await);
    speaker.say("\n");
    eventually("an empty line", || async {
        agent(&proxy, "a").last.as_deref() == Some("")
    })
    .await;
    unchanged(&agent(&proxy, "a"));
    // No agent listens; the words stay, as the destination does.
    proxy
        .publish(compiled(&config(
            &json!({}),
            &short,
            &[(&a, closed.addr().port())],
        )))
        .unwrap();
    unchanged(&hears("refused").await);
    // The words count again once the check is enabled again.
    let off = json!({ "Enabled": false });
    proxy
        .publish(compiled(&config(&json!({}), &off, &[(&a, speaker.port())])))
        .unwrap();
    let shown = destination(&proxy, "a");
    assert_eq!(
        (shown.agent, shown.health, shown.eligible),
        (None, Health::Unknown, true)
    );
    proxy
        .publish(compiled(&config(
            &json!({}),
            &short,
            &[(&a, speaker.port())],
        )))
        .unwrap();
    assert!(!destination(&proxy, "a").eligible);
    // A line that ends in the middle of more bytes is a line.
    speaker.say("ready up\r\ndown\n");
    eventually("it is up", || async {
        agent(&proxy, "a").health.as_deref() == Some("up")
    })
    .await;
    assert_eq!(agent(&proxy, "a").reason, None);
}

#[tokio::test]
async fn an_agent_is_sent_a_text_and_asked_at_once_when_it_is_new() {
    let a = Origin::named("a");
    let (first, second) = (Agent::saying("up\n"), Agent::saying("down\n"));
    let rare = json!({ "Interval": "1h", "Send": "orders\n" });
    let proxy = start(&config(&json!({}), &rare, &[(&a, first.port())]));
    first.wait_for(1).await;
    eventually("the text is sent", || async {
        first.heard() == ["orders\n"]
    })
    .await;
    // The agent of a destination is at another port.
    proxy
        .publish(compiled(&config(&json!({}), &rare, &[(&a, second.port())])))
        .unwrap();
    eventually("it is down", || async {
        agent(&proxy, "a").health.as_deref() == Some("down")
    })
    .await;
    assert_eq!((first.answered(), second.answered()), (1, 1));
    assert_eq!(agent(&proxy, "a").checks, 2);
    // Another setting is no reason to wait.
    let other = json!({ "Interval": "1h", "Send": "" });
    proxy
        .publish(compiled(&config(
            &json!({}),
            &other,
            &[(&a, second.port())],
        )))
        .unwrap();
    eventually("it is asked again", || async {
        second.heard() == ["orders\n", ""]
    })
    .await;
    // The same configuration is.
    proxy
        .publish(compiled(&config(
            &json!({}),
            &other,
            &[(&a, second.port())],
        )))
        .unwrap();
    let b = Origin::named("b");
    let both = [(&a, second.port()), (&b, first.port())];
    proxy
        .publish(compiled(&config(&json!({}), &other, &both)))
        .unwrap();
    eventually("the new one is asked", || async { first.answered() == 2 }).await;
    assert_eq!(second.answered(), 2);
}

#[tokio::test]
async fn active_checks_leave_out_what_is_in_maintenance() {
    let (a, b) = (Origin::named("a"), Origin::named("b"));
    let (of_a, of_b) = (Agent::saying("maint\n"), Agent::saying("ready\n"));
    let active = json!({ "HealthCheck": { "Active": {
        "Enabled": true, "Path": "/health", "Interval": SOON, "Policy": "ConsecutiveFailures",
    } } });
    let proxy = start(&config(
        &active,
        &json!({}),
        &[(&a, of_a.port()), (&b, of_b.port())],
    ));
    eventually("a is in maintenance", || async {
        agent(&proxy, "a").mode == "maint"
    })
    .await;
    // Probes on their way may still arrive.
    let waits = async |more: u64| {
        let from = b.health_checks();
        eventually("probes of b", || async { b.health_checks() >= from + more }).await;
    };
    waits(3).await;
    let before = a.health_checks();
    waits(5).await;
    assert_eq!(a.health_checks(), before);
    of_a.say("ready\n");
    eventually("a is probed again", || async { a.health_checks() > before }).await;
    // An agent that is up does not outdo a probe, nor the other way round.
    a.set_healthy(false);
    eventually("a is unhealthy", || async {
        destination(&proxy, "a").health == Health::Unhealthy
    })
    .await;
    say(&proxy, "a", &of_a, "up ready").await;
    assert_eq!(destination(&proxy, "a").health, Health::Unhealthy);
    say(&proxy, "b", &of_b, "down").await;
    assert_eq!(destination(&proxy, "b").health, Health::Unhealthy);
}

/// Destinations of HTTP/2 get what their agents say, too.
#[cfg(feature = "http2")]
#[tokio::test]
async fn an_agent_says_what_its_destination_of_http2_gets() {
    let named = |name: &str| {
        let builder = Origin::builder().protocols(testkit::origin::Protocols::Http2);
        builder.start_named(name)
    };
    let (a, b) = (named("a"), named("b"));
    let cluster = json!({
        "LoadBalancingPolicy": "RoundRobin",
        "SessionAffinity": { "Enabled": true, "AffinityKeyName": NAME },
        "HttpRequest": { "Version": "2", "VersionPolicy": "RequestVersionExact" },
    });
    let (of_a, of_b) = (Agent::saying("ready up\n"), Agent::saying("ready up\n"));
    let config = config(
        &cluster,
        &json!({}),
        &[(&a, of_a.port()), (&b, of_b.port())],
    );
    for mut way in ways(&config).await {
        way.says("a", &of_a, "ready up 100%").await;
        way.says("b", &of_b, "ready up 100%").await;
        let at_a = way.settle("a").await;
        for (line, expected, keeps) in [
            ("50%", shares([("a", 2), ("b", 4)]), true),
            ("drain", shares([("b", 6)]), true),
            ("ready 0%", shares([("b", 6)]), true),
            ("100% down", shares([("b", 6)]), false),
            ("up maint", shares([("b", 6)]), false),
            ("ready", shares([("a", 3), ("b", 3)]), true),
        ] {
            way.says("a", &of_a, line).await;
            assert_eq!(way.shares(6).await, expected, "{}: {line}", way.name);
            let answer = way.ask(Some(&at_a)).await.text();
            let by = if keeps { "a" } else { "b" };
            assert_eq!(answer.trim(), by, "{}: {line}", way.name);
        }
    }
}

/// The passive check and the agent do not outdo each other.
#[tokio::test]
async fn an_agent_does_not_undo_a_passive_check() {
    let (closed, a) = (RefusingPort::new(), Origin::named("a"));
    let (of_a, of_b) = (Agent::saying("ready up\n"), Agent::saying("ready up\n"));
    let cluster = json!({
        "LoadBalancingPolicy": "RoundRobin",
        "HealthCheck": { "Passive": { "Enabled": true, "ReactivationPeriod": "01:00:00" } },
    });
    let mut config = config(&cluster, &json!({}), &[(&a, of_a.port())]);
    config["Clusters"]["c"]["Destinations"]["b"] = json!({
        "Address": closed.url(), "Metadata": { "AgentCheck.Port": of_b.port().to_string() },
    });
    for mut way in ways(&config).await {
        let why = |way: &Way, id: &str| destination(&way.proxy, id).why.unwrap_or_default();
        way.says("a", &of_a, "ready up").await;
        way.says("b", &of_b, "ready up").await;
        // A request that cannot connect goes elsewhere.
        assert_eq!(way.shares(20).await, shares([("a", 20)]), "{}", way.name);
        assert_eq!(why(&way, "b"), "unhealthy by its passive check");
        // The word `up` is none about requests.
        way.says("b", &of_b, "up ready 200%").await;
        assert_eq!(why(&way, "b"), "unhealthy by its passive check");
        assert_eq!(destination(&way.proxy, "b").health, Health::Unhealthy);
        assert_eq!(way.shares(6).await, shares([("a", 6)]), "{}", way.name);
        // One is down, the other fails: all are tried, and the one that is up answers.
        way.says("a", &of_a, "down").await;
        assert_eq!(destination(&way.proxy, "a").health, Health::Unhealthy);
        assert_eq!(way.shares(4).await, shares([("a", 4)]), "{}", way.name);
        // Maintenance leaves nothing but the one that fails.
        way.says("a", &of_a, "up maint").await;
        assert_eq!(way.shares(2).await, shares([("502", 2)]), "{}", way.name);
        way.says("b", &of_b, "drain").await;
        assert_eq!(way.shares(2).await, shares([("503", 2)]), "{}", way.name);
        assert_eq!(why(&way, "b"), "drained by its agent", "{}", way.name);
        // A destination that fails and was drained is still one that fails.
        way.says("a", &of_a, "ready").await;
        way.says("b", &of_b, "ready").await;
        assert_eq!(why(&way, "b"), "unhealthy by its passive check");
        assert_eq!(way.shares(4).await, shares([("a", 4)]), "{}", way.name);
    }
}
