//! The Envoys, in a separate process: each subscribes to the given resources and acknowledges everything.

use std::process::{Child, Command};
use std::sync::Arc;

use futures_util::{Stream, stream};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tonic::transport::{Channel, Endpoint};
use xds_control_plane::snapshot::ResourceType;
use xds_types::pb::envoy::service::discovery::v3::aggregated_discovery_service_client::AggregatedDiscoveryServiceClient;
use xds_types::pb::envoy::service::discovery::v3::{DeltaDiscoveryRequest, DiscoveryRequest};

use crate::fleet::{ROUTES, clusters};

/// Number of streams of one connection. Envoys have one each, but the descriptors of a test machine are
/// limited.
const STREAMS_PER_CONNECTION: usize = 50;

/// The environment variable that turns the process into the clients: server, variant, subscription,
/// services, streams.
const TOLD: &str = "SCALE_CLIENTS";

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Variant {
    Delta,
    StateOfTheWorld,
}

impl Variant {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Delta => "delta",
            Self::StateOfTheWorld => "state of the world",
        }
    }
}

/// The resources that a stream subscribes to.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Subscribed {
    Endpoints,
    /// Clusters, endpoints and routes, as an Envoy.
    Everything,
}

impl Subscribed {
    const fn name(self) -> &'static str {
        match self {
            Self::Endpoints => "endpoints",
            Self::Everything => "everything",
        }
    }

    /// Number of types.
    pub(crate) const fn types(self) -> u64 {
        match self {
            Self::Endpoints => 1,
            Self::Everything => 3,
        }
    }
}

/// The process with the clients; killed when dropped.
pub(crate) struct Clients(Child);

impl Clients {
    pub(crate) fn start(
        server: &str,
        variant: Variant,
        subscribed: Subscribed,
        services: usize,
        streams: usize,
    ) -> Self {
        let told = [
            server,
            variant.name(),
            subscribed.name(),
            &services.to_string(),
            &streams.to_string(),
        ];
        let program = std::env::current_exe().unwrap();
        let started = Command::new(program).env(TOLD, told.join(",")).spawn();
        Self(started.unwrap())
    }

    pub(crate) fn id(&self) -> u32 {
        self.0.id()
    }
}

impl Drop for Clients {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Is the clients, until it is killed, if that is what the process is for.
pub(crate) async fn run_if_told() {
    let Ok(told) = std::env::var(TOLD) else {
        return;
    };
    let told: Vec<&str> = told.split(',').collect();
    let [server, variant, subscribed, services, streams] = told[..] else {
        panic!("{TOLD} has five parts");
    };
    let endpoints = clusters(services.parse().unwrap()).collect();
    let endpoints = (ResourceType::Endpoint, endpoints);
    let subscriptions: Arc<[(ResourceType, Vec<String>)]> =
        if subscribed == Subscribed::Endpoints.name() {
            Arc::new([endpoints])
        } else {
            let routes = (ResourceType::Route, vec![ROUTES.to_owned()]);
            Arc::new([(ResourceType::Cluster, Vec::new()), endpoints, routes])
        };
    let streams: usize = streams.parse().unwrap();
    let mut clients = JoinSet::new();
    let mut channel = None;
    for stream in 0..streams {
        if stream % STREAMS_PER_CONNECTION == 0 {
            let server = Endpoint::from_shared(server.to_owned()).unwrap();
            channel = Some(server.connect().await.unwrap());
        }
        let service = AggregatedDiscoveryServiceClient::new(channel.clone().unwrap())
            .max_decoding_message_size(usize::MAX);
        let subscriptions = Arc::clone(&subscriptions);
        match variant == Variant::Delta.name() {
            true => clients.spawn(delta(service, subscriptions)),
            false => clients.spawn(full(service, subscriptions)),
        };
    }
    clients.join_all().await;
    panic!("the server has gone");
}

fn requests<T: Send + 'static>(queue: mpsc::Receiver<T>) -> impl Stream<Item = T> + Send + 'static {
    stream::unfold(queue, |mut queue| async move {
        queue.recv().await.map(|request| (request, queue))
    })
}

async fn delta(
    mut service: AggregatedDiscoveryServiceClient<Channel>,
    subscriptions: Arc<[(ResourceType, Vec<String>)]>,
) {
    let (queue, outbound) = mpsc::channel(16);
    for (of, names) in &*subscriptions {
        let first = DeltaDiscoveryRequest {
            type_url: of.type_url().to_owned(),
            resource_names_subscribe: names.clone(),
            ..DeltaDiscoveryRequest::default()
        };
        queue.send(first).await.unwrap();
    }
    let answered = service.delta_aggregated_resources(requests(outbound)).await;
    let mut responses = answered.unwrap().into_inner();
    while let Ok(Some(response)) = responses.message().await {
        let acknowledgement = DeltaDiscoveryRequest {
            type_url: response.type_url,
            response_nonce: response.nonce,
            ..DeltaDiscoveryRequest::default()
        };
        if queue.send(acknowledgement).await.is_err() {
            return;
        }
    }
}

/// Runs a state-of-the-world client. Like Envoy, it names everything that it subscribes to in each request.
async fn full(
    mut service: AggregatedDiscoveryServiceClient<Channel>,
    subscriptions: Arc<[(ResourceType, Vec<String>)]>,
) {
    let (queue, outbound) = mpsc::channel(16);
    let request = |type_url: String, version_info, response_nonce| {
        let subscribed = subscriptions.iter();
        let names = subscribed.filter(|(of, _)| of.type_url() == type_url);
        DiscoveryRequest {
            resource_names: names.flat_map(|(_, names)| names.clone()).collect(),
            type_url,
            version_info,
            response_nonce,
            ..DiscoveryRequest::default()
        }
    };
    for (of, _) in &*subscriptions {
        let first = request(of.type_url().to_owned(), String::new(), String::new());
        queue.send(first).await.unwrap();
    }
    let answered = service
        .stream_aggregated_resources(requests(outbound))
        .await;
    let mut responses = answered.unwrap().into_inner();
    while let Ok(Some(response)) = responses.message().await {
        let acknowledgement = request(response.type_url, response.version_info, response.nonce);
        if queue.send(acknowledgement).await.is_err() {
            return;
        }
    }
}
