//! Attempts of layers to have one request answered.

use parking_lot::{Mutex, MutexGuard};
use proxy_model::RouteId;

use crate::error::ForwardErrorKind;
use crate::exchange::Count;
use crate::response::{ExchangeInfo, OpenRecorder};
use crate::trace::TraceLink;

/// The attempts of layers to get a response for one request.
pub(crate) struct LayerAttempts {
    route: RouteId,
    seen: Mutex<SeenAttempt>,
}

#[derive(Default)]
struct SeenAttempt {
    /// The position of the request in its trace, if it is traced.
    trace: Option<TraceLink>,
    is_begun: bool,
    /// True if the response of an attempt was cut because of a filter, which is counted.
    is_cut_by_filter: bool,
    last: Option<ExchangeInfo>,
    tunnel: TunnelState,
}

/// The state of the tunnel, if an attempt has become one.
#[derive(Default)]
enum TunnelState {
    #[default]
    None,
    /// An open tunnel, with which the request ends.
    Open,
    /// An open tunnel; the request is counted when it ends.
    Counted(OpenRecorder),
    /// A tunnel that has ended already.
    Ended(Option<ForwardErrorKind>),
}

impl LayerAttempts {
    /// Creates a record without attempts.
    pub(crate) fn new(route: RouteId) -> Self {
        Self {
            route,
            seen: Mutex::default(),
        }
    }

    /// The route that the layers are around.
    pub(crate) fn route(&self) -> &RouteId {
        &self.route
    }

    /// Notes the position of the request in its trace.
    pub(crate) fn note_trace(&self, link: TraceLink) {
        self.lock().trace = Some(link);
    }

    /// Begins the spans of an attempt, if the request is traced.
    pub(crate) fn link_trace(&self, count: &mut Count) {
        if let Some(link) = &self.lock().trace {
            count.link_trace(link);
        }
    }

    /// Records the information about an attempt.
    pub(crate) fn note(&self, info: ExchangeInfo) {
        self.lock().last = Some(info);
    }

    /// Takes the information about the last attempt, if there was one.
    pub(crate) fn take_last(&self) -> Option<ExchangeInfo> {
        self.lock().last.take()
    }

    /// Returns whether none has been made.
    pub(crate) fn is_empty(&self) -> bool {
        !self.lock().is_begun
    }

    /// An attempt is made.
    pub(crate) fn begin(&self) {
        self.lock().is_begun = true;
    }

    /// Records that the response of an attempt was cut.
    pub(crate) fn cut(&self, kind: ForwardErrorKind) {
        self.lock().is_cut_by_filter |= kind == ForwardErrorKind::Extension;
    }

    /// Returns whether a filter has cut the response of an attempt.
    pub(crate) fn is_cut_by_filter(&self) -> bool {
        self.lock().is_cut_by_filter
    }

    /// Records that an attempt has become a tunnel.
    pub(crate) fn begin_tunnel(&self) {
        // What was there may end a request, which looks in here: not while this is locked.
        let before = std::mem::replace(&mut self.lock().tunnel, TunnelState::Open);
        drop(before);
    }

    /// The tunnel has ended, and the request with it.
    pub(crate) fn end_tunnel(&self, error: Option<ForwardErrorKind>) {
        let before = std::mem::replace(&mut self.lock().tunnel, TunnelState::Ended(error));
        if let TunnelState::Counted(recorder) = before {
            recorder.end(error);
        }
    }

    /// Counts the request when the tunnel ends, if there is one. Otherwise the recorder is given back.
    pub(crate) fn count_tunnel(&self, recorder: OpenRecorder) -> Option<OpenRecorder> {
        let mut seen = self.lock();
        match &seen.tunnel {
            TunnelState::None | TunnelState::Counted(_) => return Some(recorder),
            TunnelState::Open => seen.tunnel = TunnelState::Counted(recorder),
            TunnelState::Ended(error) => {
                let error = *error;
                // The end of the request looks in here as well.
                drop(seen);
                recorder.end(error);
            }
        }
        None
    }

    fn lock(&self) -> MutexGuard<'_, SeenAttempt> {
        // What is in there is whole at any time.
        self.seen.lock()
    }
}
