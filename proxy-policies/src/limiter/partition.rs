//! One partition: a count, and the requests that wait for it.

use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep_until};

use super::algorithm::{Count, Standing};
use crate::config::{LimiterKind, QueueOrder};

/// The requests that share a limit.
#[derive(Debug)]
pub(super) struct Partition {
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    count: Count,
    /// The oldest first.
    waiting: VecDeque<Waiting>,
    next: u64,
}

#[derive(Debug)]
struct Waiting {
    number: u64,
    /// Tells whether the request may pass.
    told: oneshot::Sender<bool>,
}

/// The outcome for a request.
#[derive(Debug)]
pub(super) enum Taken {
    /// The request passes.
    Yes(Standing),
    /// The request waits.
    Wait(Place),
    No(Standing),
}

/// The place of a request that waits. Dropped, it is free.
#[derive(Debug)]
pub(super) struct Place {
    partition: Arc<Partition>,
    number: u64,
    order: QueueOrder,
    told: Option<oneshot::Receiver<bool>>,
}

impl Partition {
    pub(super) fn new(kind: LimiterKind, now: Instant) -> Self {
        Self {
            state: Mutex::new(State {
                count: Count::new(kind, now),
                waiting: VecDeque::new(),
                next: 0,
            }),
        }
    }

    /// Takes a permit, or a place among those that wait.
    pub(super) fn take(self: &Arc<Self>, queue: (u32, QueueOrder), now: Instant) -> Taken {
        let (limit, order) = queue;
        let mut state = self.state.lock();
        // Those who wait come first, in the order that the policy has.
        state.admit(order, now);
        let may_pass = state.waiting.is_empty() || order == QueueOrder::NewestFirst;
        if may_pass && state.count.take(now) {
            return Taken::Yes(state.count.standing(now));
        }
        if limit == 0 {
            return Taken::No(state.count.standing(now));
        }
        if state.waiting.len() >= limit as usize {
            match order {
                QueueOrder::OldestFirst => return Taken::No(state.count.standing(now)),
                QueueOrder::NewestFirst => {
                    // The oldest makes room. One that is gone has made room already.
                    if let Some(oldest) = state.waiting.pop_front() {
                        let _ = oldest.told.send(false);
                    }
                }
            }
        }
        let number = state.next;
        state.next += 1;
        let (told, receiver) = oneshot::channel();
        state.waiting.push_back(Waiting { number, told });
        Taken::Wait(Place {
            partition: Arc::clone(self),
            number,
            order,
            told: Some(receiver),
        })
    }

    /// Gives back the permit of a request that has ended, to the next that waits.
    pub(super) fn give_back(&self, order: QueueOrder, now: Instant) {
        let mut state = self.state.lock();
        state.count.give_back();
        state.admit(order, now);
    }

    /// Returns true if nothing is taken and no request waits.
    pub(super) fn is_idle(&self, now: Instant) -> bool {
        let mut state = self.state.lock();
        state.waiting.is_empty() && state.count.is_whole(now)
    }

    pub(super) fn standing(&self, now: Instant) -> Standing {
        self.state.lock().count.standing(now)
    }
}

impl State {
    /// Lets pass as many of those that wait as there are permits for.
    fn admit(&mut self, order: QueueOrder, now: Instant) {
        while !self.waiting.is_empty() && self.count.take(now) {
            let next = match order {
                QueueOrder::OldestFirst => self.waiting.pop_front(),
                QueueOrder::NewestFirst => self.waiting.pop_back(),
            };
            let is_there = next.is_some_and(|next| next.told.send(true).is_ok());
            if !is_there {
                self.count.untake();
            }
        }
    }
}

impl Place {
    /// Waits for a permit. False: another request got the place.
    ///
    /// Cancel safe: a permit that came too late is given to the next.
    pub(super) async fn wait(mut self) -> bool {
        let partition = Arc::clone(&self.partition);
        let order = self.order;
        let Some(told) = &mut self.told else {
            return false;
        };
        let may_pass = loop {
            let now = Instant::now();
            let Some(reset) = partition.standing(now).reset else {
                // Only the end of another request changes anything.
                break told.await;
            };
            tokio::select! {
                biased;
                answer = &mut *told => break answer,
                () = sleep_until(now + reset.max(SHORTEST)) => {
                    partition.state.lock().admit(order, Instant::now());
                }
            }
        };
        self.told = None;
        may_pass.unwrap_or(false)
    }
}

/// The shortest wait, so that a clock that is behind makes no busy loop.
const SHORTEST: std::time::Duration = std::time::Duration::from_millis(1);

impl Drop for Place {
    fn drop(&mut self) {
        let Some(mut told) = self.told.take() else {
            return;
        };
        // Requests are told while the state is locked, so nothing comes in between.
        let mut state = self.partition.state.lock();
        let mut waiting = state.waiting.iter();
        if let Some(position) = waiting.position(|waiting| waiting.number == self.number) {
            state.waiting.remove(position);
        } else if told.try_recv() == Ok(true) {
            state.count.untake();
            state.admit(self.order, Instant::now());
        }
    }
}
