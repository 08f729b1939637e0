//! What a change costs in a large fleet: one endpoint, or all of them, for every stream that is connected.
//!
//! `cargo bench -p xds-control-plane` has 5,000 services of 10 instances and 1,000 streams; `SERVICES`, `INSTANCES` and `STREAMS`
//! in the environment say otherwise. Clients are in the same process, and their work is in the figures: reading and
//! acknowledging. Without `--bench`, as when tests are run, it is small.

#![allow(clippy::unwrap_used, reason = "a benchmark ends at the first surprise")]

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use envoy_types::pb::envoy::config::core::v3::socket_address::PortSpecifier;
use envoy_types::pb::envoy::config::core::v3::{Address, SocketAddress, address};
use envoy_types::pb::envoy::config::endpoint::v3::lb_endpoint::HostIdentifier;
use envoy_types::pb::envoy::config::endpoint::v3::{
    ClusterLoadAssignment, Endpoint, LbEndpoint, LocalityLbEndpoints,
};
use envoy_types::pb::envoy::service::discovery::v3::DeltaDiscoveryRequest;
use envoy_types::pb::envoy::service::discovery::v3::aggregated_discovery_service_client::AggregatedDiscoveryServiceClient;
use futures_util::stream;
use prometheus_client::registry::Registry;
use prost::Message;
use tokio::net::TcpListener;
use tokio::sync::{mpsc, watch};
use tonic::transport::Endpoint as Server;
use xds_control_plane::server::{ServerOptions, XdsServer};
use xds_control_plane::snapshot::{Bodies, Resource, ResourceSet, ResourceType, Snapshot};

/// Streams of one connection: Envoys have one each, and a test machine has only so many descriptors.
const STREAMS_PER_CONNECTION: usize = 50;

fn setting(name: &str, large: usize, small: usize) -> usize {
    let is_bench = std::env::args().any(|argument| argument == "--bench");
    let set = std::env::var(name).ok();
    set.map_or(if is_bench { large } else { small }, |value| {
        value.parse().unwrap()
    })
}

fn name(service: usize) -> String {
    format!("service-{service:05}-http")
}

/// All services have the port `port`, but for the first, which has `first`.
fn snapshot(services: usize, instances: usize, port: u32, first: u32) -> Arc<Snapshot> {
    let set: ResourceSet = (0..services)
        .map(|service| {
            let port = if service == 0 { first } else { port };
            let endpoints = (0..instances).map(|instance| {
                let address = SocketAddress {
                    address: format!("10.{}.{}.{instance}", service / 250, service % 250),
                    port_specifier: Some(PortSpecifier::PortValue(port)),
                    ..SocketAddress::default()
                };
                LbEndpoint {
                    host_identifier: Some(HostIdentifier::Endpoint(Endpoint {
                        address: Some(Address {
                            address: Some(address::Address::SocketAddress(address)),
                        }),
                        ..Endpoint::default()
                    })),
                    ..LbEndpoint::default()
                }
            });
            let assignment = ClusterLoadAssignment {
                cluster_name: name(service),
                endpoints: vec![LocalityLbEndpoints {
                    lb_endpoints: endpoints.collect(),
                    ..LocalityLbEndpoints::default()
                }],
                ..ClusterLoadAssignment::default()
            };
            let body = Bytes::from(assignment.encode_to_vec());
            Arc::new(Resource::new(name(service), Bodies::Same(body)))
        })
        .collect();
    Arc::new(Snapshot::default().with(ResourceType::Endpoint, Arc::new(set)))
}

/// What the server counts, summed over all labels.
fn counted(registry: &Registry, metric: &str) -> u64 {
    let mut text = String::new();
    prometheus_client::encoding::text::encode(&mut text, registry).unwrap();
    let values = text
        .lines()
        .filter(|line| line.starts_with(metric))
        .filter_map(|line| line.rsplit_once(' ')?.1.parse::<u64>().ok());
    values.sum()
}

/// What the process has used of the processor; zero where the kernel does not say so in this way.
fn cpu() -> Duration {
    const TICKS_PER_SECOND: u64 = 100;
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let after = stat.rsplit(')').next().unwrap_or_default();
    let fields: Vec<u64> = after
        .split_whitespace()
        .skip(11)
        .take(2)
        .filter_map(|field| field.parse().ok())
        .collect();
    Duration::from_millis(fields.iter().sum::<u64>() * 1000 / TICKS_PER_SECOND)
}

/// A client that subscribes to all endpoints and acknowledges everything.
async fn client(
    mut service: AggregatedDiscoveryServiceClient<tonic::transport::Channel>,
    names: Arc<[String]>,
) {
    let (requests, outbound) = mpsc::channel(16);
    let type_url = ResourceType::Endpoint.type_url();
    let first = DeltaDiscoveryRequest {
        type_url: type_url.to_owned(),
        resource_names_subscribe: names.to_vec(),
        ..DeltaDiscoveryRequest::default()
    };
    requests.send(first).await.unwrap();
    let outbound = stream::unfold(outbound, |mut outbound| async move {
        outbound.recv().await.map(|request| (request, outbound))
    });
    let answered = service.delta_aggregated_resources(outbound).await;
    let mut responses = answered.unwrap().into_inner();
    while let Ok(Some(response)) = responses.message().await {
        let acknowledgement = DeltaDiscoveryRequest {
            type_url: type_url.to_owned(),
            response_nonce: response.nonce,
            ..DeltaDiscoveryRequest::default()
        };
        if requests.send(acknowledgement).await.is_err() {
            return;
        }
    }
}

#[tokio::main]
async fn main() {
    let services = setting("SERVICES", 5_000, 50);
    let instances = setting("INSTANCES", 10, 10);
    let streams = setting("STREAMS", 1_000, 20);
    println!("{services} services of {instances} instances, {streams} aggregated delta streams");

    let (snapshots, receiver) = watch::channel(Some(snapshot(services, instances, 1, 1)));
    let options = ServerOptions::default().with_patience(Duration::from_secs(600));
    let server = XdsServer::new(receiver, options);
    let mut registry = Registry::default();
    server.handle().register(&mut registry);
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    let serving = tokio::spawn(server.serve(listener, std::future::pending()));

    let names: Arc<[String]> = (0..services).map(name).collect();
    let mut clients = tokio::task::JoinSet::new();
    let measure = async |what: &str, expected: usize, change: &mut dyn FnMut()| {
        let acknowledged = counted(&registry, "xds_acknowledgements_total");
        let bytes = counted(&registry, "xds_sent_bytes_total");
        let (start, used) = (Instant::now(), cpu());
        change();
        while counted(&registry, "xds_acknowledgements_total") < acknowledged + expected as u64 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        println!(
            "{what:<24} {:>12} bytes {:>8.3} s to the last acknowledgement {:>8.2} s of processor",
            counted(&registry, "xds_sent_bytes_total") - bytes,
            start.elapsed().as_secs_f64(),
            (cpu() - used).as_secs_f64(),
        );
    };

    let mut channels = Vec::new();
    for _ in 0..streams.div_ceil(STREAMS_PER_CONNECTION) {
        let connecting = Server::from_shared(format!("http://{address}")).unwrap();
        channels.push(connecting.connect().await.unwrap());
    }
    measure("all clients connect", streams, &mut || {
        for stream in 0..streams {
            let channel = channels[stream / STREAMS_PER_CONNECTION].clone();
            let service = AggregatedDiscoveryServiceClient::new(channel)
                .max_decoding_message_size(usize::MAX);
            clients.spawn(client(service, Arc::clone(&names)));
        }
    })
    .await;
    let one = snapshot(services, instances, 1, 2);
    measure("one endpoint changes", streams, &mut || {
        snapshots.send_replace(Some(Arc::clone(&one)));
    })
    .await;
    let all = snapshot(services, instances, 3, 3);
    measure("all endpoints change", streams, &mut || {
        snapshots.send_replace(Some(Arc::clone(&all)));
    })
    .await;
    clients.abort_all();
    serving.abort();
}
