//! Properties: after any events, a client ends with its subscribed resources of the newest state, gets
//! nothing twice without a cause, and nothing twice in one response.

use std::collections::{BTreeSet, VecDeque};

use proptest::collection::{btree_set, vec};
use proptest::prelude::*;

use super::*;
use crate::server::fixtures::{clusters, endpoints, listeners, routes};

/// The version that clients reject.
const BAD: &str = "bad";
const NAMES: [&str; 4] = ["a", "b", "c", "d"];

type State = BTreeMap<Arc<str>, String>;

#[derive(Debug, Clone)]
enum Event {
    /// The newest state: for each type and name a content, where 0 is none.
    Publish(Vec<u8>),
    /// A subscription to these names, the last of which is the wildcard.
    Want(ResourceType, BTreeSet<usize>),
    /// The client reads the next response.
    Read,
    Reconnect,
    Pass(u8),
}

fn events() -> impl Strategy<Value = Vec<Event>> {
    let resource_type = prop::sample::select(ResourceType::MAKE_BEFORE_BREAK.to_vec());
    let event = prop_oneof![
        2 => vec(0..5_u8, NAMES.len() * 4).prop_map(Event::Publish),
        3 => (resource_type, btree_set(0..=NAMES.len(), 0..4))
            .prop_map(|(resource_type, names)| Event::Want(resource_type, names)),
        6 => Just(Event::Read),
        1 => Just(Event::Reconnect),
        1 => (1..20_u8).prop_map(Event::Pass),
    ];
    vec(event, 1..60)
}

/// A client of either protocol, which rejects bad resources like Envoy: the whole response.
struct Client {
    protocol: StreamProtocol,
    subscription: Subscription,
    exchange: Exchange,
    unread: VecDeque<Reply>,
    wanted: BTreeMap<ResourceType, BTreeSet<Arc<str>>>,
    held: BTreeMap<ResourceType, (State, BTreeMap<Arc<str>, Version>)>,
    read: BTreeMap<ResourceType, u64>,
    /// The versions that the server has no reason to send again.
    told: BTreeMap<(ResourceType, Arc<str>), Version>,
    /// Names from which it unsubscribed in a request about an overtaken response: the server cannot know,
    /// and may send them once more.
    doubted: BTreeSet<(ResourceType, Arc<str>)>,
}

impl Client {
    fn new(protocol: StreamProtocol, subscription: Subscription) -> Self {
        Self {
            protocol,
            subscription,
            exchange: exchange(protocol, subscription),
            unread: VecDeque::new(),
            wanted: BTreeMap::new(),
            held: BTreeMap::new(),
            read: BTreeMap::new(),
            told: BTreeMap::new(),
            doubted: BTreeSet::new(),
        }
    }

    fn wants_all(&self, resource_type: ResourceType) -> bool {
        let wanted = self.wanted.get(&resource_type);
        resource_type.has_wildcard() && wanted.is_some_and(|names| names.contains(WILDCARD))
    }

    fn wants(&self, resource_type: ResourceType, name: &str) -> bool {
        self.wants_all(resource_type)
            || self
                .wanted
                .get(&resource_type)
                .is_some_and(|names| names.contains(name))
    }

    fn want(&mut self, resource_type: ResourceType, names: &BTreeSet<Arc<str>>) {
        let before = self.wanted.insert(resource_type, names.clone());
        let first = before.is_none();
        let before = before.unwrap_or_default();
        let request = match self.protocol {
            StreamProtocol::Sotw => self.sotw(resource_type, None),
            StreamProtocol::Delta => {
                if first && names.is_empty() && resource_type.has_wildcard() {
                    // The model uses the wildcard only by name.
                    self.wanted.remove(&resource_type);
                    return;
                }
                let part = |one: &BTreeSet<Arc<str>>, other: &BTreeSet<Arc<str>>| {
                    one.difference(other).cloned().collect::<Vec<_>>()
                };
                Request {
                    wants: Wants::Delta {
                        subscribe: part(names, &before),
                        unsubscribe: part(&before, names),
                        initial: self.initial(resource_type, first),
                    },
                    ..Request::default()
                }
            }
        };
        for name in names.symmetric_difference(&before) {
            self.told.remove(&(resource_type, Arc::clone(name)));
        }
        if names.contains(WILDCARD) != before.contains(WILDCARD) {
            self.told.retain(|(of, _), _| *of != resource_type);
        }
        let wants_all = self.wants_all(resource_type);
        let is_overtaken = self.protocol == StreamProtocol::Sotw
            && (self.unread.iter()).any(|reply| reply.resource_type == resource_type);
        if is_overtaken {
            let left = before.difference(names).cloned();
            (self.doubted).extend(left.map(|name| (resource_type, name)));
        }
        if let Some((state, versions)) = self.held.get_mut(&resource_type) {
            state.retain(|name, _| wants_all || names.contains(name));
            versions.retain(|name, _| wants_all || names.contains(name));
        }
        self.say(resource_type, request);
    }

    fn initial(
        &self,
        resource_type: ResourceType,
        first: bool,
    ) -> Vec<(Arc<str>, Option<Version>)> {
        let held = self.held.get(&resource_type).filter(|_| first);
        let versions = held.into_iter().flat_map(|(_, versions)| versions);
        versions
            .map(|(name, version)| (Arc::clone(name), Some(*version)))
            .collect()
    }

    fn sotw(&self, resource_type: ResourceType, rejection: Option<&str>) -> Request {
        // Without names at first, a client of state of the world would subscribe to all.
        let wanted = self.wanted.get(&resource_type).into_iter().flatten();
        Request {
            nonce: self
                .read
                .get(&resource_type)
                .map(u64::to_string)
                .unwrap_or_default(),
            rejection: rejection.map(str::to_owned),
            wants: Wants::Sotw {
                names: wanted.cloned().collect(),
                version: None,
            },
        }
    }

    fn say(&mut self, resource_type: ResourceType, request: Request) {
        self.exchange.request(resource_type, request).unwrap();
    }

    fn reconnect(&mut self, view: Option<Arc<NodeView>>) {
        self.exchange = exchange(self.protocol, self.subscription);
        if let Some(view) = view {
            self.exchange.publish(view);
        }
        self.unread.clear();
        self.read.clear();
        self.told.clear();
        for (resource_type, names) in std::mem::take(&mut self.wanted) {
            if names.is_empty() {
                // On a new stream this would subscribe to all.
                self.held.remove(&resource_type);
                continue;
            }
            self.want(resource_type, &names);
        }
    }

    /// Publishes a view. A removed resource may come back unchanged, and then counts as new.
    fn publish(&mut self, view: Arc<NodeView>) {
        self.told.retain(|(of, name), _| {
            view.served(*of, self.subscription)
                .set()
                .get(name)
                .is_some()
        });
        self.exchange.publish(view);
    }

    /// The server sends what is due.
    fn receive(&mut self, now: Instant) -> Result<(), TestCaseError> {
        for reply in self.exchange.replies(now) {
            let mut names = BTreeSet::new();
            for name in reply
                .resources
                .iter()
                .map(|resource| resource.name())
                .chain(&reply.removed)
            {
                prop_assert!(names.insert(Arc::clone(name)), "{name} twice in {reply:?}");
            }
            self.hold_to_news(&reply)?;
            self.unread.push_back(reply);
        }
        prop_assert_eq!(self.exchange.replies(now), vec![]);
        Ok(())
    }

    /// Checks that resources of types that are not sent as a whole are not repeated without a cause.
    fn hold_to_news(&mut self, reply: &Reply) -> Result<(), TestCaseError> {
        let resource_type = reply.resource_type;
        let whole = self.protocol == StreamProtocol::Sotw && resource_type.has_wildcard();
        for resource in &reply.resources {
            let key = (resource_type, Arc::clone(resource.name()));
            let before = self.told.insert(key.clone(), resource.version());
            prop_assert!(
                whole || before != Some(resource.version()) || self.doubted.remove(&key),
                "{} again in {reply:?}",
                resource.name()
            );
            if resource_type == Cluster {
                self.told.remove(&(Endpoint, Arc::clone(resource.name())));
            }
        }
        for name in &reply.removed {
            self.told.remove(&(resource_type, Arc::clone(name)));
        }
        Ok(())
    }

    fn read(&mut self) {
        let Some(reply) = self.unread.pop_front() else {
            return;
        };
        let resource_type = reply.resource_type;
        self.read.insert(resource_type, reply.nonce);
        let bodies: Vec<_> = reply
            .resources
            .iter()
            .map(|resource| {
                let body = resource.body(Subscription::Aggregated);
                (resource, String::from_utf8_lossy(body).into_owned())
            })
            .collect();
        let rejects = bodies.iter().any(|(_, body)| body == BAD);
        if rejects {
            for (resource, _) in &bodies {
                self.told
                    .remove(&(resource_type, Arc::clone(resource.name())));
            }
        } else {
            let whole = self.protocol == StreamProtocol::Sotw && resource_type.has_wildcard();
            let (mut state, mut versions) = self.held.remove(&resource_type).unwrap_or_default();
            if whole {
                state.clear();
                versions.clear();
            }
            for (resource, body) in bodies {
                if self.wants(resource_type, resource.name()) {
                    state.insert(Arc::clone(resource.name()), body);
                    versions.insert(Arc::clone(resource.name()), resource.version());
                }
            }
            for name in &reply.removed {
                state.remove(name);
                versions.remove(name);
            }
            self.held.insert(resource_type, (state, versions));
        }
        let rejection = rejects.then_some("it is bad");
        let request = match self.protocol {
            StreamProtocol::Sotw => self.sotw(resource_type, rejection),
            StreamProtocol::Delta => Request {
                nonce: reply.nonce.to_string(),
                rejection: rejection.map(str::to_owned),
                ..delta(&[], &[])
            },
        };
        self.say(resource_type, request);
    }

    /// Reads and waits until nothing more comes.
    fn settle(&mut self, now: Instant) -> Result<(), TestCaseError> {
        for _ in 0..100 {
            self.receive(now)?;
            if self.unread.is_empty() {
                return Ok(());
            }
            self.read();
        }
        Err(TestCaseError::fail("there is no end of responses"))
    }

    fn check(&self, view: &NodeView) -> Result<(), TestCaseError> {
        for resource_type in ResourceType::MAKE_BEFORE_BREAK {
            let served = view.served(resource_type, self.subscription).set();
            let expected: State = served
                .iter()
                .filter(|resource| self.wants(resource_type, resource.name()))
                .map(|resource| {
                    let body = resource.body(Subscription::Aggregated);
                    (
                        Arc::clone(resource.name()),
                        String::from_utf8_lossy(body).into_owned(),
                    )
                })
                .collect();
            let mut held = self
                .held
                .get(&resource_type)
                .map(|(state, _)| state.clone())
                .unwrap_or_default();
            if self.protocol == StreamProtocol::Sotw && !resource_type.has_wildcard() {
                // This protocol cannot report these removals.
                held.retain(|name, _| expected.contains_key(name));
            }
            if self.protocol == StreamProtocol::Sotw
                && self
                    .wanted
                    .get(&resource_type)
                    .is_none_or(BTreeSet::is_empty)
            {
                held.clear();
            }
            prop_assert_eq!(held, expected, "{}", resource_type);
        }
        Ok(())
    }
}

fn contents(digits: &[u8], mended: bool) -> Vec<Part> {
    let makers = [clusters, endpoints, listeners, routes];
    let parts = digits.chunks(NAMES.len()).zip(makers);
    parts
        .map(|(digits, part)| {
            let resources: Vec<String> = digits
                .iter()
                .zip(NAMES)
                .filter(|(digit, _)| **digit > 0)
                .map(|(digit, name)| match digit {
                    4 if mended => format!("{name}=mended"),
                    4 => format!("{name}={BAD}"),
                    _ => format!("{name}={digit}"),
                })
                .collect();
            let resources: Vec<&str> = resources.iter().map(String::as_str).collect();
            part(&resources)
        })
        .collect()
}

fn holds(
    protocol: StreamProtocol,
    subscription: Subscription,
    events: Vec<Event>,
) -> Result<(), TestCaseError> {
    let mut feed = Feed::new(GRACE, LEAD);
    let mut now = Instant::now();
    let mut view = None;
    let mut newest = vec![0; NAMES.len() * 4];
    let mut client = Client::new(protocol, subscription);
    for event in events {
        match event {
            Event::Publish(digits) => {
                let next = feed.publish(snapshot(&contents(&digits, false)), now);
                client.publish(Arc::clone(&next));
                view = Some(next);
                newest = digits;
            }
            Event::Want(resource_type, names) => {
                let names = names
                    .into_iter()
                    .map(|index| Arc::from(*NAMES.get(index).unwrap_or(&WILDCARD)))
                    .filter(|name: &Arc<str>| resource_type.has_wildcard() || &**name != WILDCARD)
                    .collect::<BTreeSet<_>>();
                let begins_without =
                    names.is_empty() && !client.wanted.contains_key(&resource_type);
                if !begins_without {
                    client.want(resource_type, &names);
                }
            }
            Event::Read => client.read(),
            Event::Reconnect => client.reconnect(view.clone()),
            Event::Pass(seconds) => {
                now += Duration::from_secs(seconds.into());
                if let Some(next) = feed.expire(now) {
                    client.publish(Arc::clone(&next));
                    view = Some(next);
                }
            }
        }
        client.receive(now)?;
    }
    client.settle(now)?;
    // Only bad resources are corrected, and all that were rejected with them must come too.
    let next = feed.publish(snapshot(&contents(&newest, true)), now);
    client.publish(next);
    client.settle(now)?;
    for _ in 0..3 {
        now += GRACE;
        if let Some(next) = feed.expire(now) {
            client.publish(next);
        }
        client.settle(now)?;
    }
    let view = client.exchange.view().cloned();
    client.check(&view.expect("something was published"))
}

proptest! {
    #[test]
    fn state_of_the_world_converges_on_an_aggregated_stream(events in events()) {
        holds(StreamProtocol::Sotw, Subscription::Aggregated, events)?;
    }

    #[test]
    fn state_of_the_world_converges_on_separate_streams(events in events()) {
        holds(StreamProtocol::Sotw, Subscription::Separate, events)?;
    }

    #[test]
    fn delta_converges_on_an_aggregated_stream(events in events()) {
        holds(StreamProtocol::Delta, Subscription::Aggregated, events)?;
    }

    #[test]
    fn delta_converges_on_separate_streams(events in events()) {
        holds(StreamProtocol::Delta, Subscription::Separate, events)?;
    }
}
