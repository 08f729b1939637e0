//! HAProxy as a judge of how agents are heard: it and the proxy ask the same agent, and do the same.

use std::net::SocketAddr;
use std::sync::Arc;

use proxy_runtime::Proxy;
use proxy_runtime::health::Health;
use proxy_runtime::proxy_model::config::ProxyConfig;
use proxy_runtime::proxy_model::{CompileOptions, Snapshot};
use serde_json::json;
use testkit::agent::Agent;
use testkit::origin::Origin;
use testkit::peers;
use testkit::time::eventually;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// The reason why a destination gets no new clients, its weight, and its limit of connections.
type Standing = (String, String, String);

/// The standing of a server of HAProxy.
async fn of_haproxy(stats: SocketAddr) -> Option<Standing> {
    let mut stream = TcpStream::connect(stats).await.ok()?;
    stream.write_all(b"show stat\n").await.ok()?;
    let mut table = String::new();
    stream.read_to_string(&mut table).await.ok()?;
    let mut lines = table.lines();
    let names: Vec<_> = lines.next()?.split(',').collect();
    let server = lines.find(|line| line.starts_with("b,s,"))?;
    let server: Vec<_> = server.split(',').collect();
    let field = |name: &str| {
        let at = names.iter().position(|known| *known == name)?;
        server.get(at).map(|value| (*value).to_owned())
    };
    let status = field("status")?;
    let why = match (status.split(' ').next()?, &*field("uweight")?) {
        // Its web page calls this DRAIN.
        ("UP", "0") => "drained by its agent",
        ("UP", _) => "",
        ("DRAIN", _) => "drained by its agent",
        ("MAINT", _) => "in maintenance by its agent",
        ("DOWN", _) => "down by its agent",
        _ => return None,
    };
    // The `weight` that is in use stays what it was until maintenance ends.
    Some((why.to_owned(), field("uweight")?, field("slim")?))
}

/// The standing of the only destination of a proxy, which has the weight 100.
fn of_proxy(proxy: &Proxy) -> Standing {
    let destination = proxy.clusters()[0].destinations[0].clone();
    let agent = destination.agent.unwrap();
    let weight = agent.weight.unwrap_or_else(|| "100%".to_owned());
    // Its health does not matter for the only destination.
    let is_down = destination.health == Health::Unhealthy;
    let why = destination
        .why
        .or_else(|| is_down.then(|| "down by its agent".to_owned()));
    let limit = agent.max_connections.filter(|limit| *limit > 0);
    (
        why.unwrap_or_default(),
        weight.trim_end_matches('%').to_owned(),
        limit.map(|limit| limit.to_string()).unwrap_or_default(),
    )
}

#[tokio::test]
async fn haproxy_hears_an_agent_as_the_proxy_does() {
    let Some(haproxy) = peers::find("haproxy") else {
        return;
    };
    let origin = Origin::named("a");
    let agent = Agent::saying("up ready\n");
    let stats = SocketAddr::from(([127, 0, 0, 1], peers::free_port()));
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("haproxy.cfg");
    let text = format!(
        "global\n  stats socket ipv4@{stats} level admin\n\
         defaults\n  mode http\n  timeout connect 5s\n  timeout client 5s\n  timeout server 5s\n\
         backend b\n  balance roundrobin\n  \
         server s {} weight 100 check inter 50 agent-check agent-port {} agent-inter 50 agent-send \"b s\\n\"\n",
        origin.addr(),
        agent.port(),
    );
    std::fs::write(&file, text).unwrap();
    let mut command = haproxy.command();
    command.args(["-db", "-f"]).arg(&file);
    let _process = peers::spawn(command);
    let config = json!({ "Clusters": { "c": {
        "HealthCheck": { "Agent": {
            "Enabled": true, "Port": agent.port(), "Interval": "00:00:00.05", "Timeout": "00:00:05", "Send": "b s\n",
        } },
        "Destinations": { "d": { "Address": origin.url(), "Weight": 100 } },
    } } });
    let config = ProxyConfig::from_json(&config.to_string()).unwrap();
    let (snapshot, _) = Snapshot::compile(config, &CompileOptions::default()).unwrap();
    let builder = Proxy::builder().snapshot(Arc::new(snapshot));
    let (proxy, driver) = builder.build().unwrap();
    tokio::spawn(driver);
    for (line, why, weight, limit) in [
        ("up ready", "", "100", ""),
        ("75%", "", "75", ""),
        ("drain", "drained by its agent", "75", ""),
        ("MAINT", "in maintenance by its agent", "75", ""),
        ("50%", "in maintenance by its agent", "50", ""),
        ("Ready,up\t100%", "", "100", ""),
        ("0%", "drained by its agent", "0", ""),
        ("maxconn:30 40%", "", "40", "30"),
        ("nonsense 60%", "", "60", "30"),
        ("up stopped", "down by its agent", "60", "30"),
        ("ready maxconn:0", "down by its agent", "60", ""),
        ("down up drain ready", "", "60", ""),
        ("fail #up", "down by its agent", "60", ""),
        ("100% up#x", "down by its agent", "100", ""),
        ("up 100%", "", "100", ""),
        ("30%x", "", "100", ""),
        ("50% 30%x", "", "100", ""),
        ("maxconn:5 maxconn:x", "", "100", ""),
        ("150%", "", "150", ""),
        ("maint 60%", "in maintenance by its agent", "60", ""),
        ("drain", "drained by its agent", "60", ""),
        ("0% ready", "drained by its agent", "0", ""),
        ("MaxConn:5 100%", "", "100", "5"),
        // HAProxy shows only one of the reasons why there are no new clients.
        (
            "down 0%",
            "down by its agent, drained by its agent",
            "0",
            "5",
        ),
        ("drain", "down by its agent, drained by its agent", "0", "5"),
        ("maint", "in maintenance by its agent", "0", "5"),
        ("ready 100%", "down by its agent", "100", "5"),
        ("up maxconn:0", "", "100", ""),
    ] {
        agent.say(format!("{line}\r\n"));
        let (of_haproxy_why, why) = why.split_once(", ").unwrap_or((why, why));
        let expected = (
            of_haproxy_why.to_owned(),
            weight.to_owned(),
            limit.to_owned(),
        );
        eventually(format!("HAProxy hears {line:?}"), async || {
            of_haproxy(stats).await.as_ref() == Some(&expected)
        })
        .await;
        let expected = (why.to_owned(), weight.to_owned(), limit.to_owned());
        eventually(format!("the proxy hears {line:?}"), async || {
            of_proxy(&proxy) == expected
        })
        .await;
    }
    assert!(agent.heard().iter().all(|heard| heard == "b s\n"));
    // A line without an end changes nothing.
    for line in ["drain", ""] {
        agent.say(line);
        agent.wait_for(6).await;
        let expected = (String::new(), "100".to_owned(), String::new());
        assert_eq!(of_haproxy(stats).await.as_ref(), Some(&expected));
        assert_eq!(of_proxy(&proxy), expected);
    }
}
