//! cargo run --package tours --example consul
//!
//! Services in two datacenters of Consul become routes. Shows a registration, a failing check, the
//! loss of a datacenter, and a restart of an agent without its state.
//!
//! The example starts the agents; `cargo xtask peers consul` fetches the program. With
//! `--agent URL` it only registers one service at that agent and deregisters it again; its token
//! comes from `CONSUL_HTTP_TOKEN`.

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::time::Duration;

use discovery_consul::ConsulDiscoverer;
use discovery_consul::client::{ConsulClient, ConsulOptions, ServiceDefinition};
use discovery_consul::options::DiscoveryOptions;
use discovery_consul::registration::{Registered, Registration};
use discovery_consul::watch::{Datacenters, WatchOptions};
use examples::{Failure, Followed, once, start_service_on, wait_unless_once};
use proxy_model::{ClusterId, Snapshot};
use testkit::consul::{Consul, ConsulAgent};

/// Limit of each step. Steps take 1 or 2 s, except for the recovery after an agent's restart.
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
        let mut arguments = std::env::args().skip_while(|argument| argument != "--agent");
        if let Some(address) = arguments.nth(1) {
            return at_an_agent(ConsulOptions::from_env()?.with_address(address)).await;
        }
        match Consul::find() {
            Some(consul) => with_own_agents(&consul).await,
            None if once() => Ok(()),
            None => Err(
                "there is no program `consul` to start agents: `cargo xtask peers consul` fetches it, \
                 or name an agent of yours: `--agent http://127.0.0.1:8500`"
                    .into(),
            ),
        }
    };
    tokio::select! {
        ended = story => ended,
        // The agents end with this function.
        stopped = tokio::signal::ctrl_c() => Ok(stopped?),
    }
}

/// The whole tour, in two datacenters.
async fn with_own_agents(consul: &Consul) -> Result<(), Failure> {
    println!("1. two datacenters, `here` and `there`, a server each");
    let here = consul.datacenter("here").start().await;
    let mut there = consul.datacenter("there").join(&here).start().await;
    here.wait_for_datacenter("there").await;
    println!("   {} and {}", here.url(), there.url());

    println!("2. a service registers in both: its tags select its requests");
    let near = register(&here, "orders-here").await?;
    let _far = [
        register(&there, "orders-there-1").await?,
        register(&there, "orders-there-2").await?,
    ];

    println!("3. a proxy that follows the datacenter `here`, and knows of `there`");
    let watch = WatchOptions::default().with_datacenters(Datacenters::All);
    let options = DiscoveryOptions::default()
        .with_consul(ConsulOptions::default().with_address(here.url()))
        .with_watch(watch);
    let proxy = follow(options).await?;
    proxy.until("all instances", |s| instances(s) == 3).await?;
    println!("   curl http://{}/orders/17", proxy.address());
    let shares = proxy.shares().await?;
    assert_eq!(shares["orders-here"], 100, "the nearest serve: {shares:?}");

    println!("4. the near instance drains: the far ones take over");
    near.drain().await?;
    proxy.until("two instances", |s| instances(s) == 2).await?;
    let shares = proxy.shares().await?;
    assert!(is_of_far(&shares), "{shares:?}");

    println!("5. the servers of `there` are lost: what is known of it stays");
    there.kill().await;
    let shares = proxy.shares().await?;
    assert!(is_of_far(&shares), "{shares:?}");

    println!(
        "6. they come back with an empty memory, which is not believed until it is looked at again;"
    );
    println!("   meanwhile the instances register again by themselves");
    there.restart().await;
    here.wait_for_datacenter("there").await;
    let shares = proxy.shares().await?;
    assert!(is_of_far(&shares), "{shares:?}");

    wait_unless_once().await?;
    near.deregister().await?;
    proxy.stop().await;
    Ok(())
}

/// The part of the tour that is safe at a foreign agent: a service is registered and deregistered.
async fn at_an_agent(consul: ConsulOptions) -> Result<(), Failure> {
    println!("1. a service registers at {}", consul.address);
    let client = ConsulClient::new(consul.clone())?;
    let registered = register_with(&client, "127.0.0.1".parse()?, "orders-example").await?;

    println!("2. a proxy that follows its datacenter");
    let proxy = follow(DiscoveryOptions::default().with_consul(consul)).await?;
    proxy.until("the service", |s| instances(s) == 1).await?;
    println!("   curl http://{}/orders/17", proxy.address());
    proxy.get("/orders/17").await?;

    wait_unless_once().await?;
    println!("3. the service is deregistered");
    registered.deregister().await?;
    proxy.until("no service", |s| instances(s) == 0).await?;
    proxy.stop().await;
    Ok(())
}

async fn follow(options: DiscoveryOptions) -> Result<Followed, Failure> {
    Followed::start(ConsulDiscoverer::new(options)?.runner(), PATIENCE).await
}

async fn register(agent: &ConsulAgent, id: &'static str) -> Result<Registered, Failure> {
    let client = ConsulClient::new(ConsulOptions::default().with_address(agent.url()))?;
    register_with(&client, agent.ip(), id).await
}

/// Starts an instance of the service, and registers it.
async fn register_with(
    client: &ConsulClient,
    ip: std::net::IpAddr,
    id: &'static str,
) -> Result<Registered, Failure> {
    let address = start_service_on(ip, id).await?;
    let service = ServiceDefinition::new("orders", address.port())
        .with_id(id)
        .with_address(ip.to_string())
        .with_tag("proxy.enable=true")
        .with_tag("proxy.routes.main.path=/{**rest}");
    println!("   {id} at {address}: {}", service.tags.join(" "));
    Ok(Registration::new(service).register(client).await?)
}

/// Returns true if only far instances have responded.
fn is_of_far(shares: &BTreeMap<String, u32>) -> bool {
    shares.keys().all(|name| name.starts_with("orders-there"))
}

/// Number of instances of the service.
fn instances(snapshot: &Snapshot) -> usize {
    let cluster = snapshot.cluster(&ClusterId::from("orders"));
    cluster.map_or(0, |cluster| cluster.destinations().len())
}
