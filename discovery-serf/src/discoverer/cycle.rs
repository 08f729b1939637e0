//! The cycles: an agent is polled, and another one if it does not respond.

use std::sync::Arc;
use std::time::Duration;

use discovery_core::text::with_causes;
use discovery_core::{DiscoverError, DiscoverErrorKind, Discovery};
use proxy_model::Problem;
use tokio::time::Instant;

use super::REJECTED;
use super::conversion::{Conversion, Converted};
use super::dial::Dial;
use super::failure::{Alarm, Cause, error_of};
use super::hold::{Snapshot, Standing};
use super::key;
use super::session::{POLL, Session};
use super::signal::Signal;
use crate::catalog::LeftOut;
use crate::client::AuthKey;
use crate::client::ConnectOptions;
use crate::generate::TagsParser;
use crate::member::Member;
use crate::options::SerfOptions;

/// The shortest time after which a cycle is given up.
const LEAST_CYCLE: Duration = Duration::from_secs(60);

/// The time limit of a cycle's own work: the conversion of ten thousand members.
const CONVERSION: Duration = Duration::from_secs(10);

/// The lowest rate of a long response, in bytes per second; see [`SerfClient`](crate::client::SerfClient).
const SLOWEST: usize = 1 << 20;

/// The state kept between cycles.
pub(super) struct Cycles {
    agents: Vec<Arc<str>>,
    /// The agent to poll next, if there is no connection.
    next: usize,
    session: Option<Session>,
    standing: Arc<Standing>,
    /// The time since which agents respond. `None` if none has.
    answering: Option<Instant>,
    /// True if a cycle has ended successfully.
    has_answered: bool,
    alarm: Alarm,
    /// The key of a file that was rejected.
    rejected: Option<RejectedKey>,
}

/// A key that no agent is shown again before a time.
struct RejectedKey {
    key: AuthKey,
    until: Instant,
    reason: String,
    /// True if the agent responded, and not only the file of the key is wrong.
    is_denied: bool,
}

/// The context of a cycle.
pub(super) struct Asking<'a> {
    pub(super) options: &'a Arc<SerfOptions>,
    pub(super) parser: &'a Arc<TagsParser>,
    pub(super) dialer: Option<&'a dyn Dial>,
    pub(super) signal: &'a Arc<Signal>,
}

/// The result of a cycle.
pub(super) struct CycleResult {
    pub(super) discovery: Discovery,
    pub(super) left_out: Vec<LeftOut>,
    pub(super) agent: Arc<str>,
    /// The time of the next poll, if it is before the interval.
    pub(super) wake: Option<Instant>,
}

/// The maximum duration of a cycle, in which every agent reaches every time limit.
pub(super) fn longest(options: &SerfOptions) -> Duration {
    let requests = options.request_timeout.saturating_mul(2);
    let agent = options
        .connect_timeout
        .saturating_add(
            ConnectOptions::default()
                .handshake_timeout
                .saturating_mul(2),
        )
        .saturating_add(requests);
    // And the one that there is a connection to.
    let agents = u32::try_from(options.agents.len() + 1).unwrap_or(u32::MAX);
    let longest_answer = Duration::from_secs((options.max_frame / SLOWEST) as u64);
    agent
        .saturating_mul(agents)
        .saturating_add(longest_answer)
        .saturating_add(CONVERSION)
        .max(LEAST_CYCLE)
}

impl Cycles {
    pub(super) fn new(options: &SerfOptions) -> Self {
        let agents = options.agents.iter();
        Self {
            agents: agents.map(|agent| agent.as_str().into()).collect(),
            next: 0,
            session: None,
            standing: Arc::default(),
            answering: None,
            has_answered: false,
            alarm: Alarm::default(),
            rejected: None,
        }
    }

    /// Lists the members and makes configuration of them.
    ///
    /// # Cancel safety
    ///
    /// May be dropped at any time. The connection is then closed, and the next cycle opens a new one.
    pub(super) async fn cycle(
        &mut self,
        asking: &Asking<'_>,
    ) -> Result<CycleResult, DiscoverError> {
        let (mut session, members) = self.ask(asking).await?;
        let now = Instant::now();
        let options = asking.options;
        let conversion = Conversion {
            before: Arc::clone(&self.standing),
            snapshot: Snapshot {
                members,
                is_first: session.is_new,
            },
            now,
            options: Arc::clone(options),
            parser: Arc::clone(asking.parser),
        };
        let Some(converted) = conversion.run().await else {
            return Err(DiscoverError::transient("the runtime is shutting down"));
        };
        let Converted {
            standing,
            mut discovery,
            left_out,
        } = converted;
        // Nothing is awaited from here on.
        let since = *self.answering.get_or_insert(now);
        if self.is_too_early(&standing, since, now, options) {
            let agent = Arc::clone(&session.agent);
            self.session = Some(session);
            asking.signal.wake_at(Some(since + options.hold.settle));
            return Err(too_early(&agent, options));
        }
        let recheck = standing.recheck(&options.hold, now);
        let poll = session.rejection.is_some().then(|| now + POLL);
        if let Some(rejection) = &session.rejection {
            discovery = discovery.with_problem(no_events(&session.agent, &with_causes(rejection)));
        }
        session.is_new = false;
        self.standing = Arc::new(standing);
        self.has_answered = true;
        let agent = Arc::clone(&session.agent);
        self.session = Some(session);
        Ok(CycleResult {
            discovery,
            left_out,
            agent,
            wake: recheck.into_iter().chain(poll).min(),
        })
    }

    /// Lists the members over the existing connection, or over a new one: to each of the agents in turn,
    /// until one responds.
    async fn ask(&mut self, asking: &Asking<'_>) -> Result<(Session, Vec<Member>), DiscoverError> {
        let prefilter = asking.options.prefilter_members;
        if let Some(session) = self.session.take() {
            match session.members(prefilter).await {
                Ok(members) => return Ok((session, members)),
                Err(error) => {
                    tracing::info!(
                        target: "discovery::serf",
                        provider = &*asking.options.name,
                        agent = &*session.agent,
                        error = with_causes(&error),
                        "the connection to the agent is lost",
                    );
                    self.turn_from(&session.agent);
                }
            }
        }
        let key = key::current(asking.options).await.ok().flatten();
        if let Some(rejected) = self.rejected.take()
            && key.as_ref() == Some(&rejected.key)
            && Instant::now() < rejected.until
        {
            let reason = rejected.reason.clone();
            let error = match rejected.is_denied {
                true => DiscoverError::rejected(reason),
                false => DiscoverError::permanent(reason),
            };
            self.rejected = Some(rejected);
            return Err(error);
        }
        let mut causes = Vec::with_capacity(self.agents.len());
        for _ in 0..self.agents.len() {
            let agent = Arc::clone(&self.agents[self.next]);
            // Now: a cycle that is cut off here is not to begin with the same agent again.
            self.turn_from(&agent);
            match reach(&agent, asking).await {
                Ok((session, members)) => {
                    tracing::info!(
                        target: "discovery::serf",
                        provider = &*asking.options.name,
                        agent = &*agent,
                        members = members.len(),
                        "connected to the agent",
                    );
                    self.alarm.clear();
                    return Ok((session, members));
                }
                Err(cause) => causes.push(cause),
            }
        }
        for cause in self.alarm.raise(&causes) {
            tracing::error!(
                target: "discovery::serf",
                provider = &*asking.options.name,
                error = with_causes(cause),
                "an agent rejects requests, until its settings or ours change",
            );
        }
        let is_file = asking.options.auth_key_file.is_some();
        let has_key = asking.options.auth_key.is_some() || is_file;
        let is_rejected = causes.iter().all(|cause| cause.is_permanent());
        let error = error_of(causes, has_key, is_file);
        if let Some(key) = key.filter(|_| is_file && is_rejected) {
            self.rejected = Some(RejectedKey {
                key,
                until: Instant::now() + REJECTED,
                reason: error.chain(),
                is_denied: error.kind() == DiscoverErrorKind::Rejected,
            });
        }
        Err(error)
    }

    /// Makes the agent after this one the next.
    fn turn_from(&mut self, agent: &Arc<str>) {
        let at = self.agents.iter().position(|other| other == agent);
        self.next = at.map_or(0, |at| (at + 1) % self.agents.len());
    }

    /// Returns true if an agent that knows no service should not be trusted yet: a configuration restored
    /// from disk may be serving, and the agent may have started just now.
    fn is_too_early(
        &self,
        standing: &Standing,
        since: Instant,
        now: Instant,
        options: &SerfOptions,
    ) -> bool {
        let is_news = !self.has_answered && options.persist.is_some();
        is_news && !standing.serves() && now.duration_since(since) < options.hold.settle
    }
}

/// Connects to an agent and lists its members.
async fn reach(agent: &Arc<str>, asking: &Asking<'_>) -> Result<(Session, Vec<Member>), Cause> {
    let options = asking.options;
    let mut connect = ConnectOptions::new(&**agent)
        .with_connect_timeout(options.connect_timeout)
        .with_request_timeout(options.request_timeout)
        .with_max_frame(options.max_frame);
    if let Some(key) = key::current(options).await? {
        connect = connect.with_auth_key(key);
    }
    let session = Session::open(agent, &connect, asking.dialer, asking.signal).await?;
    let members = session.members(options.prefilter_members).await?;
    Ok((session, members))
}

fn too_early(agent: &str, options: &SerfOptions) -> DiscoverError {
    let message = format!(
        "the Serf agent at `{agent}` lists no service yet; that counts if it is still so {:?} after its first response",
        options.hold.settle
    );
    DiscoverError::transient(message)
}

fn no_events(agent: &str, rejection: &str) -> Problem {
    let message = format!(
        "the agent at `{agent}` sends no events, so it is polled every {POLL:?}: {rejection}"
    );
    Problem::warning("", "no_events", message)
}
