//! cargo run --package tours --example serf
//!
//! Membership becomes routing, step by step: services that register at Serf agents on their nodes,
//! a proxy that follows the cluster, a canary, a crash and a restart.
//!
//! The example starts the agents; `cargo xtask peers serf` fetches the program. If there is an
//! agent at `127.0.0.1:7373` already, or at the address after `--agent`, the example only registers
//! one service there and deregisters it again. The key of that agent comes from `SERF_RPC_AUTH`.

use std::net::Ipv4Addr;
use std::process::ExitCode;
use std::time::Duration;

use discovery_serf::client::{ConnectOptions, SerfClient};
use discovery_serf::generate::GenerateOptions;
use discovery_serf::registration::{Registered, Registration};
use discovery_serf::{SerfDiscoverer, SerfOptions};
use examples::{Failure, Followed, once, send_request, start_service_on, wait_unless_once};
use proxy_model::{ClusterId, Snapshot};
use testkit::serf::{Serf, SerfAgent, SerfAgentBuilder};

/// The default address of an agent.
const DEFAULT_AGENT: &str = "127.0.0.1:7373";

/// The cluster detects a crash in five to eight seconds; everything else takes a second or two.
const PATIENCE: Duration = Duration::from_secs(60);

#[tokio::main]
async fn main() -> ExitCode {
    let Err(failure) = run().await else {
        return ExitCode::SUCCESS;
    };
    eprintln!("{failure}");
    let mut cause = failure.source();
    while let Some(error) = cause {
        eprintln!("  because: {error}");
        cause = error.source();
    }
    ExitCode::FAILURE
}

async fn run() -> Result<(), Failure> {
    let story = async {
        if let Some(agent) = agent_that_is_there().await? {
            return at_an_agent(&agent).await;
        }
        match Serf::find() {
            Some(serf) => with_own_agents(&serf).await,
            None if once() => Ok(()),
            None => Err(format!(
                "there is no agent at {DEFAULT_AGENT}, and no program `serf` to start one: \
                 `cargo xtask peers serf` fetches it"
            )
            .into()),
        }
    };
    tokio::select! {
        ended = story => ended,
        // The agents end with this function.
        stopped = tokio::signal::ctrl_c() => Ok(stopped?),
    }
}

/// The whole tour, in a cluster of four nodes.
async fn with_own_agents(serf: &Serf) -> Result<(), Failure> {
    println!("1. a cluster: an agent beside the proxy, and one beside each instance of a service");
    let gateway = start(serf.agent("gateway")).await;
    let mut beside_orders = start(serf.agent("orders-1").join(&gateway)).await;
    let beside_stable = start(serf.agent("web-1").join(&gateway)).await;
    let beside_canary = start(serf.agent("web-2").join(&gateway)).await;

    println!("2. two services: each instance registers at its agent, which is to set tags");
    let orders = Registration::new("orders", service_beside(&beside_orders, "orders").await?)
        .route_path("/orders/{**rest}")
        .instance("orders-1");
    let orders = register(&orders, &beside_orders).await?;
    let web = |port| Registration::new("web", port).route_path("/{**page}");
    let stable = web(service_beside(&beside_stable, "stable").await?);
    let stable = stable.instance("web-1").version("stable").weight(9);
    let _stable = register(&stable, &beside_stable).await?;
    let canary = web(service_beside(&beside_canary, "canary").await?);
    let canary = canary.instance("web-2").version("canary").weight(1);
    let canary = register(&canary, &beside_canary).await?;

    println!("3. a proxy that follows the cluster, by way of the agent beside it");
    let options = SerfOptions::of([gateway.rpc_addr().to_string()]);
    let by_version = GenerateOptions::default().with_version_header("X-Version");
    let proxy = follow(options.with_generate(by_version)).await?;
    proxy
        .until("both services", |s| {
            weights(s, "web").len() == 2 && weights(s, "orders").len() == 1
        })
        .await?;
    println!("   curl http://{}/orders/17", proxy.address());
    println!("   curl http://{}/", proxy.address());
    println!("   curl -H 'X-Version: canary' http://{}/", proxy.address());
    assert_eq!(
        proxy.get("/orders/17").await?.text,
        "orders: GET /orders/17\n"
    );
    proxy.get("/").await?;
    let canary_only = http::Request::get("/").header("X-Version", "canary");
    let answer = send_request(proxy.address(), canary_only).await?;
    assert_eq!(answer.text, "canary: GET /\n");

    println!("4. weights: one request in ten is the canary's");
    let before = proxy.shares().await?;
    assert!((5..=15).contains(&before["canary"]), "{before:?}");

    println!("5. the canary does well: it says that its weight is 9 from now on");
    canary.set_weight(9).await?;
    proxy
        .until("the weight", |s| weights(s, "web") == [9, 9])
        .await?;
    let after = proxy.shares().await?;
    assert!((40..=60).contains(&after["canary"]), "{after:?}");

    println!("6. the agent of orders is killed: its node fails, and so the service is gone");
    beside_orders.kill().await;
    proxy
        .until("no orders", |s| weights(s, "orders").is_empty())
        .await?;
    // Only web is left, which matches every path.
    assert_ne!(
        proxy.get("/orders/17").await?.text,
        "orders: GET /orders/17\n"
    );

    println!(
        "7. the agent is started again: it has forgotten its tags, and the registration tells it again"
    );
    beside_orders.restart().await;
    proxy
        .until("orders", |s| weights(s, "orders").len() == 1)
        .await?;
    assert_eq!(
        proxy.get("/orders/17").await?.text,
        "orders: GET /orders/17\n"
    );

    wait_unless_once().await?;
    println!("8. the end: the canary is withdrawn, orders leaves with its agent");
    canary.withdraw().await?;
    orders.leave().await?;
    proxy
        .until("one instance", |s| {
            weights(s, "orders").is_empty() && weights(s, "web") == [9]
        })
        .await?;
    proxy.stop().await;
    Ok(())
}

/// The part of the tour that is safe at a foreign agent: a service is registered and deregistered.
async fn at_an_agent(agent: &ConnectOptions) -> Result<(), Failure> {
    let client = SerfClient::connect(agent).await?;
    let node = client
        .stats()
        .await?
        .get("agent", "name")
        .unwrap_or_default()
        .to_owned();
    let members = client.members().await?;
    println!(
        "1. an agent is there: {node}, one of {} members",
        members.len()
    );
    let own = members.iter().find(|member| *member.name == *node);
    let ip = own
        .and_then(|own| own.address)
        .unwrap_or_else(|| Ipv4Addr::LOCALHOST.into());

    println!("2. a service registers there");
    let service = "example-orders";
    let port = start_service_on(ip, "orders").await?.port();
    let registration = Registration::new(service, port).route_path("/orders/{**rest}");
    let registered = registration.register(agent).await?;

    println!("3. a proxy that follows the cluster");
    let mut options = SerfOptions::of([agent.address.clone()]);
    options.auth_key = agent.auth_key.clone();
    let proxy = follow(options).await?;
    proxy
        .until("the service", |s| weights(s, service).len() == 1)
        .await?;
    println!("   curl http://{}/orders/17", proxy.address());
    assert_eq!(
        proxy.get("/orders/17").await?.text,
        "orders: GET /orders/17\n"
    );

    wait_unless_once().await?;
    println!("4. the service is withdrawn; the node stays");
    registered.withdraw().await?;
    proxy
        .until("no service", |s| weights(s, service).is_empty())
        .await?;
    proxy.stop().await;
    Ok(())
}

/// An agent that is already running.
async fn agent_that_is_there() -> Result<Option<ConnectOptions>, Failure> {
    let mut arguments = std::env::args().skip_while(|argument| argument != "--agent");
    let named = arguments.nth(1);
    let mut agent = ConnectOptions::new(named.as_deref().unwrap_or(DEFAULT_AGENT));
    if let Ok(key) = std::env::var("SERF_RPC_AUTH") {
        agent = agent.with_auth_key(key);
    }
    match SerfClient::connect(&agent).await {
        Ok(_) => Ok(Some(agent)),
        // The default address was not requested explicitly.
        Err(_) if named.is_none() => Ok(None),
        Err(error) => Err(error.into()),
    }
}

async fn start(agent: SerfAgentBuilder) -> SerfAgent {
    let agent = agent.start().await;
    println!("   {}", agent.command_line());
    agent
}

/// Starts a service at the gossip address of an agent, where the discoverer expects it.
async fn service_beside(agent: &SerfAgent, name: &'static str) -> Result<u16, Failure> {
    Ok(start_service_on(agent.gossip_addr().ip(), name)
        .await?
        .port())
}

async fn register(registration: &Registration, agent: &SerfAgent) -> Result<Registered, Failure> {
    let at = ConnectOptions::new(agent.rpc_addr().to_string());
    let registered = registration.register(&at).await?;
    println!(
        "   {}: {:?}, {} of 512 bytes",
        registered.node(),
        registration.tags(),
        registration.encoded_len()
    );
    Ok(registered)
}

async fn follow(options: SerfOptions) -> Result<Followed, Failure> {
    Followed::start(SerfDiscoverer::new(options).runner(), PATIENCE).await
}

/// The weights of a service's instances, in the order of their names; empty if there is no such
/// service.
fn weights(snapshot: &Snapshot, service: &str) -> Vec<u32> {
    let id = ClusterId::from(format!("service:{service}"));
    let cluster = snapshot.cluster(&id);
    let destinations = cluster
        .into_iter()
        .flat_map(|cluster| cluster.destinations());
    destinations
        .map(|destination| destination.weight())
        .collect()
}
