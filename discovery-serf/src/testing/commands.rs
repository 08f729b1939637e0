//! The responses of an in-memory agent.

use std::collections::BTreeMap;

use super::AgentShared;
use super::state::State;
use crate::client::{Event, MemberEventKind};
use crate::member::{Member, MemberStatus, Tags};
use crate::wire::messages::{Request, encode_joined, encode_members, encode_stats};

/// The only version of the protocol.
const VERSION: i32 = 1;

/// The most that tags may be, encoded for the gossip with a byte before them.
const TAGS_LIMIT: usize = 512;

/// A reply.
#[derive(Debug, Default)]
pub(super) struct AgentReply {
    pub(super) error: String,
    pub(super) body: Vec<u8>,
    /// True if the connection ends with it.
    pub(super) ends: bool,
}

impl AgentReply {
    fn error(error: &str) -> Self {
        Self {
            error: error.to_owned(),
            ..Self::default()
        }
    }

    fn last(error: &str) -> Self {
        Self {
            ends: true,
            ..Self::error(error)
        }
    }

    fn with(write: impl FnOnce(&mut Vec<u8>)) -> Self {
        let mut answer = Self::default();
        write(&mut answer.body);
        answer
    }
}

/// The progress of a connection.
#[derive(Debug, Default)]
pub(super) struct AgentSession {
    is_open: bool,
    is_authenticated: bool,
}

impl AgentSession {
    /// Carries out a request.
    pub(super) fn answer(
        &mut self,
        shared: &AgentShared,
        request: &Request,
        streams: &mut BTreeMap<u64, Filter>,
        seq: u64,
    ) -> AgentReply {
        if let Request::Handshake { version } = request {
            return match (self.is_open, *version) {
                (true, _) => AgentReply::error("Handshake already performed"),
                (false, VERSION) => {
                    self.is_open = true;
                    Self::rejected(shared, request).unwrap_or_default()
                }
                (false, _) => AgentReply::error("Unsupported IPC version"),
            };
        }
        if !self.is_open {
            return AgentReply::last("Handshake required");
        }
        let demanded = shared.state.borrow().key.clone();
        if let Request::Auth { key } = request {
            // A wrong key does not revoke a right one before it. Without an `rpc_auth` only no key is right.
            let is_right = match demanded {
                Some(demanded) => demanded == *key,
                None => key.reveal().is_empty(),
            };
            self.is_authenticated |= is_right;
            return match is_right {
                true => AgentReply::default(),
                false => AgentReply::error("Invalid authentication token"),
            };
        }
        if demanded.is_some() && !self.is_authenticated {
            return AgentReply::error("Authentication required");
        }
        if let Some(rejected) = Self::rejected(shared, request) {
            return rejected;
        }
        match request {
            Request::Stream { filter } => match Filter::parse(filter) {
                None => AgentReply::error("Invalid event filter"),
                Some(_) if streams.contains_key(&seq) => {
                    AgentReply::error("Stream with given sequence exists")
                }
                Some(filter) => {
                    streams.insert(seq, filter);
                    AgentReply::default()
                }
            },
            Request::Stop { seq } => {
                streams.remove(seq);
                AgentReply::default()
            }
            _ => command(shared, request),
        }
    }

    fn rejected(shared: &AgentShared, request: &Request) -> Option<AgentReply> {
        let state = shared.state.borrow();
        let error = state.rejections.get(request.command())?;
        Some(AgentReply::error(error))
    }
}

fn command(shared: &AgentShared, request: &Request) -> AgentReply {
    let mut answer = AgentReply::default();
    let mut events = Vec::new();
    shared.state.send_modify(|state| {
        answer = match request {
            Request::Members => {
                let members = state.listed();
                AgentReply::with(|out| encode_members(&members, out))
            }
            Request::MembersFiltered { tags, status, name } => {
                let mut members = state.listed();
                members.retain(|member| {
                    let by_tags = tags.iter().all(|(key, pattern)| {
                        matches(pattern, &member.tags.text(key).unwrap_or_default())
                    });
                    let by_status = status.is_empty() || matches(status, member.status.as_str());
                    by_tags && by_status && (name.is_empty() || matches(name, &member.name))
                });
                AgentReply::with(|out| encode_members(&members, out))
            }
            Request::Stats => {
                let stats = stats(state);
                AgentReply::with(|out| encode_stats(&stats, out))
            }
            Request::Join { addresses, .. } => {
                let joined = u32::try_from(addresses.len()).unwrap_or(u32::MAX);
                AgentReply::with(|out| encode_joined(joined, out))
            }
            Request::Event {
                name,
                payload,
                coalesce,
            } => {
                state.logical_time += 1;
                events.push(Event::User {
                    name: name.as_str().into(),
                    payload: payload.clone(),
                    logical_time: state.logical_time,
                    coalesce: *coalesce,
                });
                AgentReply::default()
            }
            Request::Tags { set, delete } => retag(state, set, delete, &mut events),
            Request::ForceLeave { node, prune } => {
                force_leave(state, node, *prune, &mut events);
                AgentReply::default()
            }
            Request::Leave => {
                state.is_stopped = true;
                AgentReply::last("")
            }
            _ => AgentReply::last("Unsupported command"),
        };
    });
    for event in &events {
        shared.emit(event);
    }
    answer
}

fn retag(state: &mut State, set: &Tags, delete: &[String], events: &mut Vec<Event>) -> AgentReply {
    let own = state.members.iter_mut();
    let Some(own) = own.into_iter().find(|member| member.name == state.node) else {
        return AgentReply::error("the agent's own node is not a member");
    };
    let mut tags = own.tags.clone();
    for (key, value) in set.iter() {
        tags.insert(key, value);
    }
    for key in delete {
        tags.remove(key);
    }
    if encoded_length(&tags) > TAGS_LIMIT {
        return AgentReply::error("Encoded length of tags exceeds limit of 512 bytes");
    }
    own.tags = tags;
    events.push(Event::Member {
        kind: MemberEventKind::Update,
        members: vec![own.clone()],
    });
    AgentReply::default()
}

/// Makes a failed node leave. An unknown node is not an error.
fn force_leave(state: &mut State, node: &str, prune: bool, events: &mut Vec<Event>) {
    let failed =
        |member: &&mut Member| &*member.name == node && member.status == MemberStatus::Failed;
    let Some(member) = state.members.iter_mut().find(failed) else {
        return;
    };
    member.status = MemberStatus::Left;
    let members = vec![member.clone()];
    let kind = if prune {
        MemberEventKind::Reap
    } else {
        MemberEventKind::Leave
    };
    events.push(Event::Member { kind, members });
    if prune {
        state.members.retain(|member| &*member.name != node);
    }
}

fn stats(state: &State) -> BTreeMap<String, Tags> {
    let count = |status: MemberStatus| {
        let members = state.members.iter();
        members.filter(|member| member.status == status).count()
    };
    let serf = Tags::from([
        ("members", state.members.len().to_string()),
        ("failed", count(MemberStatus::Failed).to_string()),
        ("left", count(MemberStatus::Left).to_string()),
        ("event_time", state.logical_time.to_string()),
    ]);
    let mut own = state.members.iter();
    let own = own.find(|member| member.name == state.node);
    BTreeMap::from([
        ("agent".to_owned(), Tags::from([("name", &*state.node)])),
        ("serf".to_owned(), serf),
        (
            "tags".to_owned(),
            own.map(|own| own.tags.clone()).unwrap_or_default(),
        ),
    ])
}

/// Returns true if a text matches a pattern. An in-memory agent supports `.*`, `.+`, and literal texts, in
/// `(?:…)` or not.
fn matches(pattern: &str, text: &str) -> bool {
    let inner = pattern.strip_prefix("(?:");
    let inner = inner.and_then(|inner| inner.strip_suffix(')'));
    match inner.unwrap_or(pattern) {
        ".*" => true,
        ".+" => !text.is_empty(),
        literal => literal == text,
    }
}

/// Returns the length of tags in the gossip: a byte and a map of raw bytes in the first version of
/// MessagePack.
fn encoded_length(tags: &Tags) -> usize {
    let raw = |bytes: &[u8]| match bytes.len() {
        short @ 0..=31 => 1 + short,
        longer @ 32..=0xffff => 3 + longer,
        long => 5 + long,
    };
    let head = if tags.len() < 16 { 1 } else { 3 };
    let entries = tags.iter().map(|(key, value)| raw(key) + raw(value));
    1 + head + entries.sum::<usize>()
}

/// The events that a stream is about.
#[derive(Debug)]
pub(super) struct Filter(Vec<String>);

impl Filter {
    /// Parses a filter like an agent: a list without blanks.
    fn parse(filter: &str) -> Option<Self> {
        if filter.is_empty() {
            return Some(Self(vec!["*".to_owned()]));
        }
        let mut tokens = filter.split(',');
        let is_known = |token: &str| {
            let user = token == "user" || token.starts_with("user:");
            let query = token == "query" || token.starts_with("query:");
            token == "*" || user || query || MemberEventKind::parse(token).is_some()
        };
        tokens
            .all(is_known)
            .then(|| Self(filter.split(',').map(str::to_owned).collect()))
    }

    pub(super) fn wants(&self, event: &Event) -> bool {
        let (kind, name) = match event {
            Event::Member { kind, .. } => (kind.as_str(), ""),
            Event::User { name, .. } => ("user", &**name),
            Event::Query { name, .. } => ("query", &**name),
            Event::Other { kind } => (&**kind, ""),
        };
        let wanted = self.0.iter();
        wanted
            .map(String::as_str)
            .any(|token| token == "*" || token == kind || token == format!("{kind}:{name}"))
    }
}
