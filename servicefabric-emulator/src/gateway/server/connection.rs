use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::watch;

use super::Answers;
use super::accept::{Limits, until};
use super::activity::{Activity, Watched};
use crate::gateway::security::Role;

/// The time limit for the head of a request. Idle connections are closed after it, too.
const HEAD: Duration = Duration::from_secs(60);
/// The maximum buffer for a head. The limit that callers see is smaller, and exceeding it gets an
/// explanation.
const BUFFER: usize = 64 * 1024;

/// The remote end, as identified by the handshake.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Peer {
    /// True if the client presented a certificate.
    pub(crate) certificate: bool,
    /// The access that the certificate grants. `None` for one that is not trusted.
    pub(crate) role: Option<Role>,
}

/// The context of a connection.
#[derive(Debug)]
pub(crate) struct Connection {
    /// The activity.
    pub(super) activity: Arc<Activity>,
    /// The time that the client may stop reading a response.
    pub(super) stall: Duration,
    /// The stop signal. Once true, the connection ends after the call in flight.
    pub(super) stopped: watch::Receiver<bool>,
}

impl Connection {
    /// Creates a connection with the usual limits that counts towards no server.
    pub(crate) fn alone(stopped: watch::Receiver<bool>) -> Self {
        Self {
            activity: Arc::new(Activity::new()),
            stall: Limits::default().stall,
            stopped,
        }
    }

    /// Serves the requests of the connection until either end closes it.
    pub(crate) async fn serve<S, A>(self, stream: S, peer: Peer, answers: Arc<A>)
    where
        S: AsyncRead + AsyncWrite + Unpin,
        A: Answers,
    {
        let Self {
            activity,
            stall,
            mut stopped,
        } = self;
        let service = service_fn(|mut request| {
            let (answers, activity) = (Arc::clone(&answers), Arc::clone(&activity));
            async move {
                request.extensions_mut().insert(Arc::clone(&activity));
                let _answering = activity.answering();
                answers.serve(request, peer).await
            }
        });
        let stream = TokioIo::new(Watched::new(stream, &activity, stall));
        let mut connection = pin!(
            http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(HEAD)
                .max_buf_size(BUFFER)
                .serve_connection(stream, service)
        );
        let result = tokio::select! {
            result = connection.as_mut() => result,
            () = until(&mut stopped) => {
                // The current request is still answered.
                connection.as_mut().graceful_shutdown();
                connection.await
            }
        };
        if let Err(error) = result {
            tracing::debug!(error = %Chain(&error), "a connection ended early");
        }
    }
}

/// An error with its causes, for display.
struct Chain<'a>(&'a hyper::Error);

impl std::fmt::Display for Chain<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut error: &dyn std::error::Error = self.0;
        write!(f, "{error}")?;
        while let Some(cause) = error.source() {
            write!(f, ": {cause}")?;
            error = cause;
        }
        Ok(())
    }
}

/// The error with which a handler closes its connection in place of a response.
#[derive(Debug, thiserror::Error)]
#[error("closed by an injected fault")]
pub(crate) struct ClosedByFault;
