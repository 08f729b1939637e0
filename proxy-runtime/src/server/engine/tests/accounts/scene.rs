//! Scenes: the actions of client and destination, and the expected result.

use std::time::Duration;

use http::Version;

use crate::error::{Cause, ForwardErrorKind};
use crate::server::{Limits, Outcome};

/// The actions of a client and a destination, and the expected result.
pub(super) struct Scene {
    pub(super) name: &'static str,
    pub(super) method: &'static str,
    pub(super) content: Content,
    pub(super) steps: Vec<Step>,
    /// Further settings of the route.
    pub(super) route: &'static str,
    pub(super) limits: Limits,
    pub(super) connection: Connection,
    /// The response over a second connection, and its delay in seconds after the request.
    pub(super) second: Option<(u64, &'static str)>,
    pub(super) takes_response: bool,
    pub(super) takes_request: bool,
    pub(super) has_refusing: bool,
    pub(super) expected: Expected,
    /// The only version of HTTP that the scene applies to, if there is one.
    pub(super) version: Option<Version>,
    /// The expected result for a client of HTTP/2, if it differs.
    pub(super) expected_http2: Option<Expected>,
}

/// The content of a request, which may not come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Content {
    None,
    Length(usize),
    Chunked,
}

/// The connection to the destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Connection {
    /// A connection that appears to have carried no request.
    Fresh,
    /// A connection that has carried another request.
    Reused,
    /// No connection: another request holds the only one that is allowed.
    Taken,
}

/// The next action, once all tasks wait.
#[derive(Clone, Copy, Debug)]
pub(super) enum Step {
    /// The client sends the head of its request.
    Asks,
    /// The client sends this number of bytes of content.
    Sends(usize),
    /// The client ends its body with this number of trailer fields.
    Ends(usize),
    /// The client sends an invalid chunk.
    Breaks,
    /// The client cancels its request: by RST_STREAM in HTTP/2.
    Leaves,
    /// The client closes its connection.
    Vanishes,
    /// The destination sends this.
    Says(&'static str),
    /// The destination sends this number of bytes.
    Fills(usize),
    Closes,
    /// The destination sends this and closes at once.
    SaysAndCloses(&'static str),
    /// Time passes: a number of seconds.
    Waits(u64),
}

/// The response that the client gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// A local reply of the proxy.
    Own(u16),
    /// The destination's response.
    Whole(u16),
    /// A part of the destination's response, recognisable as incomplete.
    Cut(u16),
    /// A part of the destination's response, since the client did not take it in time.
    Dropped(u16),
    /// No response: the server has reset the stream.
    Reset,
    /// The client has left: before there was a response, or after its head.
    Left(Option<u16>),
}

/// The expected result of a scene.
#[derive(Clone, Copy, Debug)]
pub(super) struct Expected {
    pub(super) answer: Answer,
    /// The error of the cluster, and of the destination that was picked for the request.
    pub(super) error: Option<ForwardErrorKind>,
    /// The cause of that, in the counters and the log, where it is of interest.
    pub(super) cause: Option<Cause>,
    /// The status of the destination's response.
    pub(super) answered: Option<u16>,
    /// Bytes of bodies that the destination was sent, and that came from it.
    pub(super) sent: u64,
    pub(super) received: u64,
    /// Bytes of the request's body that came from the client, if they are more.
    pub(super) uploaded: Option<u64>,
    /// The end in seconds after the last step.
    pub(super) after: u64,
    /// The request that the destination received, if it is not the one that was sent.
    pub(super) saw: Option<&'static str>,
    /// The destination's connection serves others.
    pub(super) is_kept: bool,
    /// Further counters of the server.
    pub(super) server: &'static str,
    /// Errors of the destination to which no connection could be opened.
    pub(super) rejected: &'static str,
    /// The outcome and error in the access log, if they do not follow from the other fields.
    pub(super) logged: Option<(Outcome, Option<ForwardErrorKind>)>,
}

impl Expected {
    fn new(answer: Answer, error: Option<ForwardErrorKind>, answered: Option<u16>) -> Self {
        Self {
            answer,
            error,
            cause: None,
            answered,
            sent: 0,
            received: 0,
            uploaded: None,
            after: 0,
            saw: None,
            is_kept: false,
            server: "",
            rejected: "",
            logged: None,
        }
    }

    /// The client gets a local reply with this status, for this error.
    pub(super) fn own(status: u16, error: ForwardErrorKind) -> Self {
        Self::new(Answer::Own(status), Some(error), None)
    }

    /// The destination's response is passed on.
    pub(super) fn whole(status: u16) -> Self {
        Self::new(Answer::Whole(status), None, Some(status))
    }

    /// The destination's response, of which so much came, is cut off.
    pub(super) fn cut(error: ForwardErrorKind, received: u64) -> Self {
        let expected = Self::new(Answer::Cut(200), Some(error), Some(200));
        expected.received(received)
    }

    /// The same for a client that does not take it.
    pub(super) fn dropped(error: ForwardErrorKind) -> Self {
        Self::new(Answer::Dropped(200), Some(error), Some(200))
    }

    /// The client has broken the rules of HTTP/2.
    pub(super) fn reset(error: ForwardErrorKind) -> Self {
        Self::new(Answer::Reset, Some(error), None)
    }

    /// The client leaves.
    pub(super) fn left(error: ForwardErrorKind) -> Self {
        Self::new(Answer::Left(None), Some(error), None)
    }

    /// The client leaves after the head of its response.
    pub(super) fn left_behind(error: ForwardErrorKind, received: u64) -> Self {
        let expected = Self::new(Answer::Left(Some(200)), Some(error), Some(200));
        expected.received(received)
    }

    pub(super) fn because(mut self, cause: Cause) -> Self {
        self.cause = Some(cause);
        self
    }

    /// Expects this status in the log of a client that left.
    pub(super) fn told(mut self, status: u16) -> Self {
        self.answer = Answer::Left(Some(status));
        self
    }

    pub(super) fn logged(mut self, outcome: Outcome, error: Option<ForwardErrorKind>) -> Self {
        self.logged = Some((outcome, error));
        self
    }

    pub(super) fn answered(mut self, status: u16) -> Self {
        self.answered = Some(status);
        self
    }

    pub(super) fn sent(mut self, bytes: u64) -> Self {
        self.sent = bytes;
        self
    }

    pub(super) fn received(mut self, bytes: u64) -> Self {
        self.received = bytes;
        self
    }

    pub(super) fn uploaded(mut self, bytes: u64) -> Self {
        self.uploaded = Some(bytes);
        self
    }

    pub(super) fn after(mut self, seconds: u64) -> Self {
        self.after = seconds;
        self
    }

    pub(super) fn saw(mut self, what: &'static str) -> Self {
        self.saw = Some(what);
        self
    }

    pub(super) fn kept(mut self) -> Self {
        self.is_kept = true;
        self
    }

    pub(super) fn server(mut self, counted: &'static str) -> Self {
        self.server = counted;
        self
    }

    pub(super) fn rejected(mut self, errors: &'static str) -> Self {
        self.rejected = errors;
        self
    }
}

impl Scene {
    pub(super) fn new<const N: usize>(
        name: &'static str,
        content: Content,
        steps: [Step; N],
        expected: Expected,
    ) -> Self {
        Self {
            name,
            method: "POST",
            content,
            steps: steps.into(),
            route: "",
            limits: Limits::default(),
            connection: Connection::Fresh,
            second: None,
            takes_response: true,
            takes_request: true,
            has_refusing: false,
            expected,
            version: None,
            expected_http2: None,
        }
    }

    /// Only for clients of HTTP/1.1.
    pub(super) fn only_http1(mut self) -> Self {
        self.version = Some(Version::HTTP_11);
        self
    }

    /// Only for clients of HTTP/2.
    pub(super) fn only_http2(mut self) -> Self {
        self.version = Some(Version::HTTP_2);
        self
    }

    pub(super) fn is_for(&self, is_http2: bool) -> bool {
        self.version
            .is_none_or(|only| (only == Version::HTTP_2) == is_http2)
    }

    /// Changes the expectation for HTTP/2, which reports more or less than HTTP/1.1.
    pub(super) fn over_http2(mut self, change: impl FnOnce(Expected) -> Expected) -> Self {
        self.expected_http2 = Some(change(self.expected));
        self
    }

    /// The expected result.
    pub(super) fn expected(&self, is_http2: bool) -> &Expected {
        let other = self.expected_http2.as_ref().filter(|_| is_http2);
        other.unwrap_or(&self.expected)
    }

    /// Adds settings of the route.
    pub(super) fn route(mut self, said: &'static str) -> Self {
        self.route = said;
        self
    }

    /// Changes limits of the server.
    pub(super) fn limits(mut self, change: impl FnOnce(&mut Limits)) -> Self {
        change(&mut self.limits);
        self
    }

    /// The destination does not read.
    pub(super) fn unacknowledged(mut self) -> Self {
        self.takes_request = false;
        self
    }

    /// The client does not read.
    pub(super) fn unsent_response(mut self) -> Self {
        self.takes_response = false;
        self
    }

    /// Over a connection that has carried another request.
    pub(super) fn reused(mut self) -> Self {
        self.connection = Connection::Reused;
        self
    }

    /// GET over a connection that has carried another request, which brings this when it is sent a second time.
    pub(super) fn again(mut self, second: (u64, &'static str)) -> Self {
        self.method = "GET";
        self.connection = Connection::Reused;
        self.second = Some(second);
        self
    }

    /// Lets another request hold the only connection.
    pub(super) fn taken(mut self) -> Self {
        self.connection = Connection::Taken;
        self
    }

    /// Adds a destination before this one, which accepts no connection.
    pub(super) fn behind_refusing(mut self) -> Self {
        self.has_refusing = true;
        self
    }

    /// Returns true if the client sends all of the request's content.
    pub(super) fn is_sent_whole(&self) -> bool {
        let sent = |step: &Step| match step {
            Step::Sends(bytes) => *bytes,
            _ => 0,
        };
        match self.content {
            Content::None => true,
            Content::Length(length) => self.steps.iter().map(sent).sum::<usize>() == length,
            Content::Chunked => self.steps.iter().any(|step| matches!(step, Step::Ends(_))),
        }
    }
}

/// No client and no destination is given more time than that after the last step.
pub(super) const LONGEST: Duration = Duration::from_secs(50);
