//! The connections to one destination.

mod room;

#[cfg(feature = "http2")]
use std::collections::VecDeque;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use proxy_model::compiled::Upstream;
use tokio::sync::{oneshot, watch};
use tokio::time::{Instant, timeout_at};

use super::connect::Connector;
use super::error::ConnectError;
use super::group::RuntimeGroup;
use super::http1::Http1Connection;
#[cfg(feature = "http2")]
use super::http2::Http2Connection;
use super::lease::Lease;
use super::opening::{OVERDUE, Opening};
use super::protocol::Protocols;
use super::queue::{
    Admission, ConnectAttempt, Grant, IdleConnections, Ongoing, QueueState, WaitingRequest, queued,
};
use super::slot::{ConnectionOwner, Slot};
use super::{ConnectionRequest, UpstreamOptions};
use crate::live::{ClientKey, DestinationState};

/// The connections to one destination that were made with the same settings.
#[derive(Debug)]
pub(super) struct DestinationPool {
    pub(super) client: ClientKey,
    destination: Arc<DestinationState>,
    max_connections: u32,
    /// True if the destination's agent may set another limit.
    obeys_agent: bool,
    /// True if several runtimes use the connections, which are then lent within their [group](RuntimeGroup) only.
    is_shared: bool,
    is_announced: bool,
    multiple_http2: bool,
    connect_timeout: Duration,
    idle_timeout: Duration,
    max_idle: usize,
    max_waiting: usize,
    state: Mutex<QueueState>,
    this: Weak<Self>,
}

impl DestinationPool {
    pub(super) fn new(
        destination: &Arc<DestinationState>,
        client: ClientKey,
        upstream: &Upstream,
        options: &UpstreamOptions,
    ) -> Arc<Self> {
        Arc::new_cyclic(|this| Self {
            client,
            destination: Arc::clone(destination),
            max_connections: upstream.max_connections().unwrap_or(u32::MAX),
            obeys_agent: upstream.is_limited_by_agents(),
            is_shared: upstream.is_limited(),
            is_announced: upstream.sends_proxy_protocol(),
            multiple_http2: upstream.multiple_http2_connections(),
            connect_timeout: options.connect_timeout,
            idle_timeout: options.idle_timeout,
            max_idle: options.max_idle_per_destination,
            max_waiting: options.max_waiting_per_destination,
            state: Mutex::default(),
            this: Weak::clone(this),
        })
    }

    /// Returns true if the destination is still part of the configuration.
    pub(super) fn is_needed(&self) -> bool {
        !self.destination.is_removed()
    }

    /// Returns a pooled connection, if there is one.
    #[inline]
    pub(super) fn ready(&self, wanted: &ConnectionRequest<'_>, now: Instant) -> Option<Lease> {
        let mut closed = Vec::new();
        let ready = self.ready_in(&mut self.lock(), wanted, now, &mut closed);
        // Closing frees slots, which locks the pool again.
        drop(closed);
        ready
    }

    /// Waits for a connection: a pooled one, a new one, or one that another request releases. Has no timeout. With
    /// `since`, only connections made after that time count, and none that has served a request over HTTP/1.1.
    ///
    /// Sets `is_queued` while it waits since all connections that there may be are in use.
    ///
    /// Cancel-safe: if dropped, it leaves the queue, and its grant goes to the next request. A connection that others
    /// can share is still opened.
    pub(super) async fn acquire(
        &self,
        connector: &Arc<Connector>,
        wanted: &ConnectionRequest<'_>,
        since: Option<Instant>,
        is_queued: &AtomicBool,
    ) -> Result<Lease, ConnectError> {
        let opening = self.opening(connector, wanted);
        loop {
            match self.next(wanted, since)? {
                Admission::Use(lease) => return Ok(lease),
                Admission::Open(slot, None) => return opening.run(slot).await,
                Admission::Open(slot, Some(attempt)) => {
                    let opened = opening.run_for_all(slot, attempt, self.connect_timeout);
                    // An error means that the runtime which was to open it is ending.
                    if let Ok(opened) = opened.await {
                        return opened;
                    }
                }
                Admission::AwaitGrant(granted) => match queued(granted, is_queued).await {
                    Ok(Grant::Connection(mut connection)) => {
                        if since.is_none() && is_usable(&mut connection, true) {
                            return Ok(Lease::http1(connection));
                        }
                        // Keeps the slot; otherwise the request would queue again behind all others.
                        let slot = connection.io.take_slot();
                        connection.close();
                        if let Some(slot) = slot {
                            return opening.run(slot).await;
                        }
                    }
                    Ok(Grant::Slot(slot)) => return opening.run(slot).await,
                    #[cfg(feature = "http2")]
                    Ok(Grant::LookAgain) => {}
                    // The pool was closed.
                    Err(_) => {}
                },
                Admission::AwaitAttempt(mut attempt, overdue) => {
                    // An error means that the attempt ended without a failure to share, or is overdue.
                    if let Ok(Ok(())) = timeout_at(overdue, attempt.changed()).await
                        && let Some(error) = attempt.borrow().clone()
                    {
                        return Err(error);
                    }
                }
            }
        }
    }

    /// Returns another connection for a request whose connection, acquired at `since`, failed. If connections are
    /// limited, the new one uses the slot of the failed one, which the request held already. Cancel-safe.
    pub(super) async fn replace(
        &self,
        connector: &Arc<Connector>,
        wanted: &ConnectionRequest<'_>,
        since: Instant,
        (slot, is_queued): (Option<Slot>, &AtomicBool),
    ) -> Result<Lease, ConnectError> {
        // With a limit, the request keeps its slot: without it, it would queue again behind all others.
        let is_limited = self.limit() != u32::MAX;
        match slot.filter(|slot| is_limited && slot.is_of(&self.this)) {
            Some(slot) => self.opening(connector, wanted).run(slot).await,
            None => {
                self.acquire(connector, wanted, Some(since), is_queued)
                    .await
            }
        }
    }

    fn opening<'a>(
        &'a self,
        connector: &'a Arc<Connector>,
        wanted: &ConnectionRequest<'a>,
    ) -> Opening<'a> {
        Opening {
            connector,
            destination: &self.destination,
            upstream: wanted.upstream,
            protocols: wanted.protocols,
            announced: wanted.announced,
            pool: &self.this,
        }
    }

    /// Gives the connection to the first waiting request, or keeps it idle. Returns it if it is not needed.
    fn keep(
        &self,
        state: &mut QueueState,
        mut connection: Box<Http1Connection>,
    ) -> Option<Box<Http1Connection>> {
        // Above a limit that the agent has lowered, the connection closes.
        if state.closed || state.open > self.limit() {
            return Some(connection);
        }
        let first = state.waiting.front();
        if first.is_some_and(|first| !self.is_lent(connection.group, first.group)) {
            // The first request gets the slot when this connection has closed. Otherwise a busy group could keep all
            // others waiting.
            return Some(connection);
        }
        while let Some(position) = state.waiting.iter().position(|waiting| {
            waiting.protocols.allows_http1() && self.is_lent(connection.group, waiting.group)
        }) {
            let Some(waiting) = state.waiting.remove(position) else {
                break;
            };
            match waiting.granted.send(Grant::Connection(connection)) {
                Ok(()) => return None,
                Err(Grant::Connection(unwanted)) => connection = unwanted,
                Err(_) => return None,
            }
        }
        // Requests that still wait need another kind of connection, and get the slot when this one has closed.
        if !state.waiting.is_empty() || state.idle.len() >= self.max_idle {
            return Some(connection);
        }
        state.idle.push(connection);
        None
    }

    /// Closes connections that have been idle for too long, and those that the destination has closed. Returns
    /// whether any connection is left.
    pub(super) fn close_idle(&self, now: Instant) -> bool {
        let timeout = if self.destination.is_removed() {
            Duration::ZERO
        } else {
            self.idle_timeout
        };
        let mut state = self.lock();
        let may_outlive = self.may_outlive_runtime(&state);
        let is_over = |connection: &mut Box<Http1Connection>| {
            now.duration_since(connection.idle_since) >= timeout
                || !is_usable(connection, may_outlive)
        };
        let mut closed: Vec<_> = state.idle.extract_if(.., is_over).collect();
        if self.obeys_agent {
            self.follow_limit(&mut state, &mut closed);
        }
        #[cfg(feature = "http2")]
        state.http2.retain(|connection| {
            connection.is_open()
                && (connection.streams() > 0
                    || now.duration_since(connection.idle_since()) < timeout)
        });
        drop(state);
        closed.into_iter().for_each(|connection| connection.close());
        self.lock().open > 0
    }

    /// Closes idle connections and keeps no others: those in use close after their requests. Waiting requests are
    /// served.
    pub(super) fn close(&self) {
        let mut state = self.lock();
        state.closed = true;
        let closed = std::mem::take(&mut state.idle);
        #[cfg(feature = "http2")]
        state.http2.clear();
        drop(state);
        closed.into_iter().for_each(|connection| connection.close());
    }

    /// Returns true if the runtime of an HTTP/1.1 connection here may have ended. If all were opened on one runtime,
    /// the pool closes with it.
    #[inline]
    fn may_outlive_runtime(&self, state: &QueueState) -> bool {
        self.is_shared || state.runtimes.are_several()
    }

    /// Returns true if a connection of group `from` may serve a request of group `to`. An unshared pool has one group.
    fn is_lent(&self, from: RuntimeGroup, to: RuntimeGroup) -> bool {
        !self.is_shared || from == to
    }

    /// Removes the idle connection that was used last, among those that this thread may use.
    #[inline]
    fn take_idle(&self, idle: &mut IdleConnections) -> Option<Box<Http1Connection>> {
        if !self.is_shared {
            return idle.pop();
        }
        let group = RuntimeGroup::current();
        let position = idle.iter().rposition(|c| c.group == group)?;
        Some(idle.remove(position))
    }

    /// Returns a pooled connection, if there is one. Connections found closed are moved to `closed`: dropping them
    /// frees their slots, which takes the lock.
    #[inline]
    fn ready_in(
        &self,
        state: &mut QueueState,
        wanted: &ConnectionRequest<'_>,
        now: Instant,
        closed: &mut IdleConnections,
    ) -> Option<Lease> {
        let protocols = wanted.protocols;
        #[cfg(feature = "http2")]
        if protocols.allows_http2() {
            state.http2.retain(|connection| connection.is_open());
            let best = self.own(&state.http2).min_by_key(|c| c.streams());
            if let Some(connection) = best.filter(|connection| !connection.is_full()) {
                return Some(Lease::http2(connection));
            }
        }
        if protocols.allows_http1() {
            let may_outlive = self.may_outlive_runtime(state);
            while let Some(mut connection) = self.take_idle(&mut state.idle) {
                let until = connection.idle_since.checked_add(self.idle_timeout);
                if until.is_none_or(|until| now < until)
                    && is_usable(&mut connection, may_outlive)
                    && !(wanted.careful && connection.has_ended(now))
                {
                    return Some(Lease::http1(connection));
                }
                closed.push(connection);
            }
        }
        None
    }

    /// Returns the HTTP/2 connection with the fewest streams among those made after `since`.
    #[cfg(feature = "http2")]
    fn made_since(
        &self,
        state: &QueueState,
        protocols: Protocols,
        since: Instant,
    ) -> Option<Lease> {
        let made = self.own(&state.http2).filter(|connection| {
            connection.opened_at > since && !(self.multiple_http2 && connection.is_full())
        });
        self.least_loaded_among(made, protocols)
    }

    #[cfg(not(feature = "http2"))]
    #[expect(clippy::unused_self, reason = "as with HTTP/2")]
    fn made_since(&self, _: &QueueState, _: Protocols, _: Instant) -> Option<Lease> {
        None
    }

    fn next(
        &self,
        wanted: &ConnectionRequest<'_>,
        since: Option<Instant>,
    ) -> Result<Admission, ConnectError> {
        let protocols = wanted.protocols;
        // Declared before the lock, so that it is dropped after the lock is released.
        let mut closed = Vec::new();
        let mut state = self.lock();
        let ready = match since {
            None => self.ready_in(&mut state, wanted, Instant::now(), &mut closed),
            Some(since) => self.made_since(&state, protocols, since),
        };
        if let Some(lease) = ready {
            return Ok(Admission::Use(lease));
        }
        if !closed.is_empty() {
            // The slots that are freed now may serve this request.
            drop(state);
            closed.clear();
            state = self.lock();
        }
        let state = &mut *state;
        if since.is_none()
            && !self.multiple_http2
            && let Some(lease) = self.least_loaded(state, protocols)
        {
            return Ok(Admission::Use(lease));
        }
        let group = RuntimeGroup::current();
        let shares = protocols == Protocols::Http2
            || (protocols == Protocols::Either && !state.agreed_on_http1);
        let now = Instant::now();
        if shares && let Some(attempt) = &state.attempt {
            let overdue = attempt.began + OVERDUE;
            if now < overdue {
                return Ok(Admission::AwaitAttempt(attempt.result.clone(), overdue));
            }
        }
        if state.open < self.limit() {
            state.open += 1;
            let attempt = shares.then(|| {
                let (result, waiting) = watch::channel(None);
                let (stop, stopped) = oneshot::channel();
                let attempt = Ongoing {
                    result: waiting,
                    began: now,
                    stop,
                };
                if let Some(overdue) = state.attempt.replace(attempt) {
                    state.overdue.retain(|stop| !stop.is_closed());
                    state.overdue.push(overdue.stop);
                }
                ConnectAttempt {
                    pool: self.this.clone(),
                    began: now,
                    result,
                    stopped,
                }
            });
            return Ok(Admission::Open(Slot::new(self.this.clone()), attempt));
        }
        if let Some(lease) = self.least_loaded(state, protocols) {
            // Its streams are in use, and so is every connection: the request waits for a stream.
            return Ok(Admission::Use(lease));
        }
        let is_room_made = self.make_room(state, protocols, &mut closed);
        if !is_room_made && let Some(lease) = self.least_loaded_of_any(state, protocols) {
            return Ok(Admission::Use(lease));
        }
        state.waiting.retain(|waiting| !waiting.granted.is_closed());
        let is_again = since.is_some();
        if state.waiting.len() >= self.max_waiting && !is_again {
            let error = ConnectError::Saturated;
            let failures = &self.destination.metrics().failures;
            failures.connect_failed(&error.to_string());
            return Err(error);
        }
        let (granted, grant) = oneshot::channel();
        // A retry has waited in the queue once already, so it goes before first attempts.
        let position = match is_again {
            true => state.waiting.iter().take_while(|w| w.is_again).count(),
            false => state.waiting.len(),
        };
        let waiting = WaitingRequest {
            protocols,
            group,
            is_again,
            granted,
        };
        state.waiting.insert(position, waiting);
        Ok(Admission::AwaitGrant(grant))
    }

    /// Returns the connections that this thread may use.
    #[cfg(feature = "http2")]
    fn own<'c>(
        &self,
        connections: &'c [Arc<Http2Connection>],
    ) -> impl Iterator<Item = &'c Arc<Http2Connection>> {
        let group = self.is_shared.then(RuntimeGroup::current);
        let connections = connections.iter();
        connections.filter(move |connection| group.is_none_or(|group| connection.group == group))
    }

    /// Returns the HTTP/2 connection with the fewest streams, even if it is full.
    #[cfg(feature = "http2")]
    fn least_loaded(&self, state: &QueueState, protocols: Protocols) -> Option<Lease> {
        self.least_loaded_among(self.own(&state.http2), protocols)
    }

    /// Returns the HTTP/2 connection with the fewest streams of any group. The end of another group may cut the
    /// request; where there is no other connection, that is better than an unlimited wait.
    #[cfg(feature = "http2")]
    fn least_loaded_of_any(&self, state: &QueueState, protocols: Protocols) -> Option<Lease> {
        self.least_loaded_among(state.http2.iter(), protocols)
    }

    #[cfg(feature = "http2")]
    fn least_loaded_among<'c>(
        &self,
        connections: impl Iterator<Item = &'c Arc<Http2Connection>>,
        protocols: Protocols,
    ) -> Option<Lease> {
        let open = connections.filter(|connection| connection.is_open());
        let connection = open.min_by_key(|connection| connection.streams())?;
        protocols.allows_http2().then(|| Lease::http2(connection))
    }

    #[cfg(not(feature = "http2"))]
    #[expect(clippy::unused_self, reason = "as with HTTP/2")]
    fn least_loaded(&self, _: &QueueState, _: Protocols) -> Option<Lease> {
        None
    }

    #[cfg(not(feature = "http2"))]
    #[expect(clippy::unused_self, reason = "as with HTTP/2")]
    fn least_loaded_of_any(&self, _: &QueueState, _: Protocols) -> Option<Lease> {
        None
    }

    /// Records a new connection, opened for a request that allows `protocols`.
    pub(super) fn opened(&self, lease: &Lease, protocols: Protocols) {
        let is_http2 = lease.is_http2();
        let mut state = self.lock();
        if protocols == Protocols::Either {
            state.agreed_on_http1 = !is_http2;
        }
        if !is_http2 {
            state.runtimes.add_current();
        }
        drop(state);
        #[cfg(feature = "http2")]
        if let Some(connection) = lease.shared() {
            self.share(connection);
        }
    }

    /// Makes a new HTTP/2 connection available to other requests, and wakes those that wait.
    #[cfg(feature = "http2")]
    fn share(&self, connection: &Arc<Http2Connection>) {
        let mut state = self.lock();
        if state.closed {
            return;
        }
        state.http2.push(Arc::clone(connection));
        let (able, others): (VecDeque<_>, VecDeque<_>) = std::mem::take(&mut state.waiting)
            .into_iter()
            .partition(|waiting| waiting.protocols.allows_http2());
        state.waiting = others;
        for waiting in able {
            let _ = waiting.granted.send(Grant::LookAgain);
        }
    }

    /// Removes the shared attempt that began at this time.
    pub(super) fn attempt_ended(&self, began: Instant) {
        self.lock()
            .attempt
            .take_if(|attempt| attempt.began == began);
    }

    fn lock(&self) -> MutexGuard<'_, QueueState> {
        self.state.lock()
    }
}

impl ConnectionOwner for DestinationPool {
    fn slot_freed(&self) {
        let mut state = self.lock();
        // Above a limit that the agent has lowered, no request gets the slot.
        while state.open <= self.limit()
            && let Some(waiting) = state.waiting.pop_front()
        {
            match waiting
                .granted
                .send(Grant::Slot(Slot::new(self.this.clone())))
            {
                Ok(()) => return,
                // To drop it here would come back to this very function.
                Err(Grant::Slot(unwanted)) => unwanted.disarm(),
                Err(_) => {}
            }
        }
        state.open -= 1;
    }

    fn put(&self, mut connection: Box<Http1Connection>, now: Instant) {
        // Bytes after the response belong to no request, so the connection must close.
        if !connection.input.is_empty() || self.destination.is_removed() || self.is_announced {
            return;
        }
        connection.rest(now);
        let unwanted = self.keep(&mut self.lock(), connection);
        // It closes now, without the lock, since that locks this pool again.
        drop(unwanted);
    }

    #[cfg(feature = "http2")]
    fn http2_idle(&self) {
        if self.limit() == u32::MAX {
            return;
        }
        let mut state = self.lock();
        if !state.waiting.is_empty() {
            state.http2.retain(|connection| connection.streams() > 0);
        }
    }
}

/// Returns true if an HTTP/1.1 connection can carry another request. `may_outlive_runtime`: its runtime may have ended.
#[inline]
fn is_usable(connection: &mut Http1Connection, may_outlive_runtime: bool) -> bool {
    connection.is_open() && (!may_outlive_runtime || connection.has_runtime())
}
