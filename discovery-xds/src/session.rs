//! The stream to a control plane, and its replacements after failures.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use discovery_core::text::shortened;
use futures_util::stream;
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tonic::Streaming;
use tonic::transport::Channel;
use xds_types::pb::envoy::config::core::v3::Node;
use xds_types::pb::envoy::config::core::v3::node::UserAgentVersionType;
use xds_types::pb::envoy::service::discovery::v3::aggregated_discovery_service_client::AggregatedDiscoveryServiceClient;
use xds_types::pb::envoy::service::discovery::v3::{
    DeltaDiscoveryRequest, DeltaDiscoveryResponse, DiscoveryRequest, DiscoveryResponse,
};
use xds_types::pb::google::protobuf::value::Kind;
use xds_types::pb::google::protobuf::{Struct, Value};

use super::connect::Dial;
use super::protocol::{Answer, Request, Stream};
use super::store::Store;
use super::view::{Lost, View};
use super::{Mode, XdsOptions};
use xds_types::ACCEPTS_IN_PART;
use xds_types::{ResourceType, Version};

/// Maximum number of requests that wait to be sent.
const QUEUE: usize = 64;
/// The time limit for sending a request to a control plane.
const SEND_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum length of a control plane's error text.
const LONGEST_ERROR: usize = 500;
/// The duration after which a stream does not count as failing at once.
const LASTING: Duration = Duration::from_secs(10);
/// The time without an error after which a silent stream counts as working.
const SILENCE: Duration = Duration::from_secs(1);

/// A stream and its state.
pub(super) struct Session {
    options: Arc<XdsOptions>,
    dial: Dial,
    store: Store,
    view: watch::Sender<View>,
}

/// Responses of either variant.
enum Incoming {
    Full(Box<Streaming<DiscoveryResponse>>),
    Delta(Box<Streaming<DeltaDiscoveryResponse>>),
}

impl Incoming {
    async fn next(&mut self) -> Result<Option<Answer>, tonic::Status> {
        Ok(match self {
            Self::Full(stream) => stream.message().await?.map(Answer::from),
            Self::Delta(stream) => stream.message().await?.map(Answer::from),
        })
    }
}

/// Requests of either variant.
enum Outgoing {
    Full(mpsc::Sender<DiscoveryRequest>),
    Delta(mpsc::Sender<DeltaDiscoveryRequest>),
}

impl Outgoing {
    async fn send(&self, request: Request) -> Result<(), String> {
        let sent = match (self, request) {
            (Self::Full(queue), Request::Full(request)) => {
                queue.send_timeout(request, SEND_TIMEOUT).await.is_ok()
            }
            (Self::Delta(queue), Request::Delta(request)) => {
                queue.send_timeout(request, SEND_TIMEOUT).await.is_ok()
            }
            _ => false,
        };
        match sent {
            true => Ok(()),
            false => Err("the control plane reads no requests".to_owned()),
        }
    }
}

/// Returns the first server for a proxy. Proxies with the same file get different ones, so that a fleet
/// uses all of its control planes. One proxy always gets the same, so that it returns to that server after
/// a restart.
fn first_server(node_id: &str) -> usize {
    let hash = u64::from_le_bytes(Version::of([node_id.as_bytes()]).to_bytes());
    // Names differ in their last letters, which hardly change some bits of this hash. Multiplied by the
    // golden ratio, they change the highest bits.
    let mixed = (hash ^ (hash >> 32)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    usize::from((mixed >> 48) as u16)
}

impl Session {
    /// Creates a session that begins with what the `memo` of before a restart has.
    pub(super) fn new(
        options: Arc<XdsOptions>,
        dial: Dial,
        view: watch::Sender<View>,
        memo: Option<&str>,
    ) -> Self {
        let mut store = Store::new(&options);
        if let Some(memo) = memo {
            store.restore(memo);
        }
        Self {
            options,
            dial,
            store,
            view,
        }
    }

    /// Runs until it is dropped.
    pub(super) async fn run(mut self) {
        let (first, longest) = self.options.backoff;
        let first = first.max(Duration::from_millis(10));
        let mut wait = first;
        let mut attempt = first_server(&self.options.node_id);
        loop {
            let begun = Instant::now();
            let error = self.one_stream(attempt).await;
            tracing::warn!(target: "xds::client", error = error.message, "the control plane is lost; its last resources continue to serve");
            self.view.send_modify(|view| {
                view.is_live = false;
                view.error = Some(error);
            });
            attempt = attempt.wrapping_add(1);
            if begun.elapsed() >= LASTING {
                wait = first;
            }
            // From half of it to all of it, so that a fleet does not come back at once.
            let share = fastrand::f64().mul_add(0.5, 0.5);
            sleep(wait.mul_f64(share)).await;
            wait = wait.saturating_mul(2).min(longest.max(first));
        }
    }

    /// Runs one stream from its beginning to its end. Returns the reason for the end.
    async fn one_stream(&mut self, attempt: usize) -> Lost {
        let (channel, server) = match self.dial.connect(attempt).await {
            Ok(connected) => connected,
            Err((server, error)) => return format!("{server}: {error}").into(),
        };
        let error = match self.converse(channel).await {
            Ok(()) => "the stream has ended".to_owned().into(),
            Err(error) => error,
        };
        Lost {
            message: format!("{server}: {}", shortened(&error.message, LONGEST_ERROR)),
            ..error
        }
    }

    async fn converse(&mut self, channel: Channel) -> Result<(), Lost> {
        let mut client = AggregatedDiscoveryServiceClient::new(channel)
            .max_decoding_message_size(self.options.max_message);
        let mut stream = Stream::new(self.options.mode, node(&self.options));
        self.store.begin(Instant::now());
        let first = stream.begin(&self.store);
        match self.options.mode {
            Mode::StateOfTheWorld => {
                let (queue, receiver) = mpsc::channel(QUEUE);
                let queue = Outgoing::Full(queue);
                send_all(&queue, first).await?;
                let opening = client.stream_aggregated_resources(requests(receiver));
                let opening = async { Ok(Incoming::Full(Box::new(opening.await?.into_inner()))) };
                self.follow(opening, &queue, &mut stream).await
            }
            Mode::Delta => {
                let (queue, receiver) = mpsc::channel(QUEUE);
                let queue = Outgoing::Delta(queue);
                send_all(&queue, first).await?;
                let opening = client.delta_aggregated_resources(requests(receiver));
                let opening = async { Ok(Incoming::Delta(Box::new(opening.await?.into_inner()))) };
                self.follow(opening, &queue, &mut stream).await
            }
        }
    }

    /// Applies responses until the stream ends. Some servers send the headers only with the first message, and
    /// there may be none if nothing has changed since the last stream.
    async fn follow(
        &mut self,
        opening: impl Future<Output = Result<Incoming, tonic::Status>>,
        queue: &Outgoing,
        stream: &mut Stream,
    ) -> Result<(), Lost> {
        tokio::pin!(opening);
        let knows_all = self.options.mode == Mode::Delta && self.store.knows_all(&self.options);
        let mut incoming = None;
        let answer_by = Instant::now() + self.options.answer_timeout;
        let silent_until = Instant::now() + SILENCE;
        let mut is_live = false;
        let mut pending = Pending::default();
        loop {
            let next = async {
                match incoming.as_mut() {
                    None => Ok(Next::Opened(opening.as_mut().await?)),
                    Some(incoming) => {
                        let answer: Result<_, tonic::Status> = Incoming::next(incoming).await;
                        Ok::<_, tonic::Status>(Next::Answer(answer?))
                    }
                }
            };
            tokio::select! {
                // Due publications precede further responses, so that a flood of them cannot delay these.
                biased;
                () = pending.due(self.store.waits_until(self.options.fetch_timeout), &self.options), if pending.since.is_some() => {
                    self.publish(&mut pending);
                }
                next = next => match next? {
                    Next::Opened(opened) => incoming = Some(opened),
                    Next::Answer(None) => return Ok(()),
                    Next::Answer(Some(answer)) => {
                        is_live = true;
                        self.apply_response(answer, queue, stream, &mut pending).await?;
                    }
                },
                () = sleep_until(silent_until), if knows_all && !is_live => is_live = true,
                () = sleep_until(answer_by), if !is_live => {
                    return Err(format!("no answer within {:?}", self.options.answer_timeout).into());
                }
            }
            if is_live
                && !self.view.borrow().is_live
                && (knows_all || self.view.borrow().discovery.is_some())
            {
                self.view.send_modify(|view| {
                    view.is_live = true;
                    view.error = None;
                });
            }
        }
    }

    async fn apply_response(
        &mut self,
        answer: Answer,
        queue: &Outgoing,
        stream: &mut Stream,
        pending: &mut Pending,
    ) -> Result<(), String> {
        let Some(kind) = ResourceType::from_type_url(&answer.type_url) else {
            tracing::debug!(target: "xds::client", type_url = %shortened(&answer.type_url, 200), "a response of a type that was not requested");
            return Ok(());
        };
        let now = Instant::now();
        let applied = self.store.apply(kind, answer.update, now);
        if let Some(rejection) = &applied.rejection {
            tracing::warn!(target: "xds::client", %kind, rejection, "resources are rejected");
        }
        let requests = stream.answered(
            kind,
            answer.nonce,
            answer.version,
            applied.rejection,
            &self.store,
        );
        if applied.changed {
            pending.since.get_or_insert(now);
            pending.last = Some(now);
        }
        send_all(queue, requests).await
    }

    fn publish(&mut self, pending: &mut Pending) {
        *pending = Pending::default();
        if !self.store.is_usable() {
            let rejected = self.store.rejected();
            let rejected = (!rejected.is_empty()).then(|| Arc::new(rejected));
            self.view.send_if_modified(|view| {
                let is_news = view.rejected != rejected;
                view.rejected = rejected;
                is_news
            });
            return;
        }
        let discovery = Arc::new(self.store.discovery());
        self.view.send_modify(|view| {
            view.discovery = Some(discovery);
            view.rejected = None;
            view.is_live = true;
            view.error = None;
        });
    }
}

enum Next {
    Opened(Incoming),
    Answer(Option<Answer>),
}

/// A change that has not been published yet.
#[derive(Debug, Default)]
struct Pending {
    since: Option<Instant>,
    last: Option<Instant>,
}

impl Pending {
    /// Waits until it is time to publish: soon, unless a part of the change is missing.
    async fn due(&self, waits_until: Option<Instant>, options: &XdsOptions) {
        let (Some(since), Some(last)) = (self.since, self.last) else {
            return std::future::pending().await;
        };
        let latest = since + options.fetch_timeout;
        let settled = last + options.settle;
        sleep_until(
            waits_until
                .map_or(settled, |until| until.max(settled))
                .min(latest),
        )
        .await;
    }
}

async fn send_all(queue: &Outgoing, requests: Vec<Request>) -> Result<(), String> {
    for request in requests {
        queue.send(request).await?;
    }
    Ok(())
}

/// Converts a queue to a stream.
fn requests<T: Send + 'static>(
    receiver: mpsc::Receiver<T>,
) -> impl stream::Stream<Item = T> + Send + 'static {
    stream::unfold(receiver, |mut receiver| async move {
        receiver.recv().await.map(|request| (request, receiver))
    })
}

fn node(options: &XdsOptions) -> Node {
    let text = |text: &String| Value {
        kind: Some(Kind::StringValue(text.clone())),
    };
    let fields: HashMap<String, Value> = (options.node_metadata.iter())
        .map(|(key, value)| (key.clone(), text(value)))
        .collect();
    Node {
        id: options.node_id.clone(),
        cluster: options.node_cluster.clone(),
        metadata: (!fields.is_empty()).then_some(Struct { fields }),
        client_features: vec![ACCEPTS_IN_PART.to_owned()],
        user_agent_name: env!("CARGO_PKG_NAME").to_owned(),
        user_agent_version_type: Some(UserAgentVersionType::UserAgentVersion(
            env!("CARGO_PKG_VERSION").to_owned(),
        )),
        ..Node::default()
    }
}

/// Waits for a view that `is_wanted`.
pub(super) async fn wait_for(
    views: &mut watch::Receiver<View>,
    limit: Duration,
    is_wanted: impl FnMut(&View) -> bool,
) -> Option<View> {
    let found = timeout(limit, views.wait_for(is_wanted)).await.ok()?.ok()?;
    Some(found.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fleet_begins_at_all_of_its_control_planes() {
        let begin = |node: usize| first_server(&format!("gateway-{node}"));
        for servers in [2, 3] {
            let mut at = vec![0; servers];
            for node in 0..300 {
                at[begin(node) % servers] += 1;
            }
            let fair = 300 / servers;
            assert!(at.iter().all(|&n| n > fair * 2 / 3), "{at:?}");
        }
        assert_eq!(begin(1), begin(1));
    }
}
