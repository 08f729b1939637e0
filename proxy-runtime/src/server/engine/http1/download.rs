//! The response to a client of HTTP/1.1: its head, and its body without changes.

use std::io;
use std::num::NonZeroU64;
use std::task::{Context, Poll, ready};

use http::StatusCode;

use super::trailers::ChangedTrailers;
use crate::forward::exchange::body::{Body, BodyPart};
use crate::forward::exchange::downstream;
use crate::forward::exchange::failure::ResponseFailure;
use crate::http1::{
    CHUNK_END, ChunkHead, Framing, HeadTable, LAST_CHUNK, RawResponse, ResponseRewrite,
    write_response, write_trailers,
};
use crate::response::TrailerRules;
use crate::server::engine::client_head::ForClient;
use crate::stream::{ByteStream, ReadBuffer, poll_write_all, recycled};
use crate::transform::CompiledTransforms;
use crate::upstream::response_limits as limits;

/// The largest part of a body that is copied behind the head: a copy costs less than another slice.
const COPIED: usize = 2 * 1024;

/// The state of a response.
#[derive(Debug)]
pub(crate) struct Http1Download {
    phase: DownloadPhase,
    body: Body,
    /// The parsed part of the destination's input that is sent behind the client's output.
    part: BodyPart,
    /// Bytes written of both.
    written: usize,
    /// The chunks of a body that ends with the destination's connection.
    chunks: ChunkPhase,
    /// True if the client's connection closes after this response, which then has
    /// `Connection: close`.
    pub(super) is_last: bool,
    /// Changes of the trailers by the route, if there are any.
    trailers: Option<Box<ChangedTrailers>>,
    /// True if the destination keeps its connection open.
    is_persistent: bool,
    /// Body bytes received.
    received: u64,
    /// Body bytes already counted for the destination.
    counted: u64,
    /// Body bytes received but not written to the client.
    unwritten: u64,
    /// The fields of the head, later those of trailers.
    table: HeadTable,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DownloadPhase {
    /// Waiting for the final head.
    Head,
    /// Writing an interim head.
    Interim,
    /// Forwarding the final response.
    Body,
    Done,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ChunkPhase {
    /// The framing is unchanged.
    AsTheyCame,
    /// The body is chunked here; no chunk was written.
    First,
    /// The body is chunked here; the data of a chunk must be ended.
    Next,
    /// The framing is unchanged up to the last chunk; the trailers are the route's.
    Changed,
}

impl Default for Http1Download {
    fn default() -> Self {
        Self {
            phase: DownloadPhase::Head,
            body: Body::Ended,
            part: BodyPart::default(),
            written: 0,
            chunks: ChunkPhase::AsTheyCame,
            is_last: false,
            trailers: None,
            is_persistent: false,
            received: 0,
            counted: 0,
            unwritten: 0,
            table: HeadTable::new(),
        }
    }
}

impl downstream::Download for Http1Download {
    #[inline]
    fn restart(&mut self) {
        self.phase = DownloadPhase::Head;
        self.body = Body::Ended;
        self.part = BodyPart::default();
        self.written = 0;
        self.chunks = ChunkPhase::AsTheyCame;
        self.is_last = false;
        self.trailers = None;
        self.is_persistent = false;
        self.received = 0;
        self.counted = 0;
        self.unwritten = 0;
        self.table.clear();
    }

    #[inline]
    fn rest(&mut self) {
        self.table.trim();
    }

    #[inline]
    fn table(&mut self) -> &mut HeadTable {
        &mut self.table
    }

    #[inline]
    fn is_unanswered(&self) -> bool {
        match self.phase {
            DownloadPhase::Head => true,
            // A partly written head cannot be taken back.
            DownloadPhase::Interim => self.written == 0,
            DownloadPhase::Body | DownloadPhase::Done => false,
        }
    }

    #[inline]
    fn has_all(&self) -> bool {
        self.body.has_ended()
    }

    #[inline]
    fn is_done(&self) -> bool {
        self.phase == DownloadPhase::Done
    }

    #[inline]
    fn is_persistent(&self) -> bool {
        self.is_persistent
    }

    #[inline]
    fn take_uncounted(&mut self) -> u64 {
        let before = std::mem::replace(&mut self.counted, self.received);
        self.received - before
    }

    #[inline]
    fn sent(&self) -> u64 {
        self.received - self.unwritten
    }
}

impl Http1Download {
    /// Records unwritten bytes. Content comes last; its framing counts as content.
    #[cold]
    fn keep_unwritten(&mut self, unwritten: usize) {
        self.unwritten = self.part.content.min(unwritten as u64);
    }

    /// Returns true if bytes are pending for the client.
    #[inline]
    pub(super) fn waits_for_client(&self, output: &[u8]) -> bool {
        output.len() + self.part.bytes > 0
    }

    /// Ready when a pending interim response is written to the client.
    #[inline]
    pub(super) fn poll_interim<C: ByteStream>(
        &mut self,
        cx: &mut Context<'_>,
        client: &mut C,
        output: &mut Vec<u8>,
    ) -> Poll<Result<(), ResponseFailure>> {
        if self.phase == DownloadPhase::Interim {
            let written = poll_write_all(client, cx, [output, &[]], &mut self.written);
            ready!(written).map_err(|_| ResponseFailure::Client)?;
            self.written = 0;
            output.clear();
            self.phase = DownloadPhase::Head;
        }
        Poll::Ready(Ok(()))
    }

    /// Forwards the body; ready when all of it is handed to the client's connection. Sets
    /// `has_news` on progress.
    #[inline]
    pub(super) fn poll_body<C, U>(
        &mut self,
        cx: &mut Context<'_>,
        (client, output): (&mut C, &mut Vec<u8>),
        (destination, input): (&mut U, &mut ReadBuffer),
        has_news: &mut bool,
    ) -> Poll<Result<(), ResponseFailure>>
    where
        C: ByteStream,
        U: ByteStream,
    {
        loop {
            if output.len() + self.part.bytes > 0 {
                if self.part.bytes <= COPIED && self.written == 0 {
                    // A small part costs less to copy behind the head than a second slice in the write.
                    output.extend_from_slice(&input.filled()[..self.part.bytes]);
                    input.consume(self.part.bytes);
                    self.part.bytes = 0;
                }
                let slices = [&**output, &input.filled()[..self.part.bytes]];
                let before = self.written;
                let written = poll_write_all(client, cx, slices, &mut self.written);
                *has_news |= self.written != before;
                if !matches!(written, Poll::Ready(Ok(()))) {
                    let unwritten = output.len() + self.part.bytes - self.written;
                    self.keep_unwritten(unwritten);
                    // Here the write is pending or has failed, never complete.
                    return written.map(|_| Err(ResponseFailure::Client));
                }
                self.unwritten = 0;
                self.part.content = 0;
                self.written = 0;
                output.clear();
                input.consume(self.part.bytes);
                self.part.bytes = 0;
            }
            if self.part.trailers > 0 {
                let count = std::mem::take(&mut self.part.trailers);
                let section = &input.filled()[..count];
                match self.trailers.take() {
                    None => write_trailers(section, &self.table, output),
                    Some(changed) => {
                        let written = changed.write(Some((section, &self.table)), output);
                        written.map_err(|_| ResponseFailure::Trailers)?;
                    }
                }
                input.consume(count);
                continue;
            }
            if self.body.has_ended() {
                self.phase = DownloadPhase::Done;
                return Poll::Ready(Ok(()));
            }
            match ready!(input.poll_read(destination, cx)) {
                Ok(0) if matches!(self.body, Body::UntilClose) => {
                    // The end of the connection is the end of this body, so chunks written here need their last one.
                    self.body = Body::Ended;
                    match self.chunks {
                        ChunkPhase::AsTheyCame | ChunkPhase::Changed => {}
                        ChunkPhase::First => self.end_chunks(output)?,
                        ChunkPhase::Next => {
                            output.extend_from_slice(CHUNK_END);
                            self.end_chunks(output)?;
                        }
                    }
                    continue;
                }
                // A body with a length or in chunks is incomplete: the client must see an error, not a short response.
                Ok(0) => {
                    return Poll::Ready(Err(ResponseFailure::Destination("it ended too early")));
                }
                // A stream of HTTP/2 reports a violation of its protocol like this.
                Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                    return Poll::Ready(Err(ResponseFailure::MalformedBody(
                        "its stream is malformed",
                    )));
                }
                Err(_) => {
                    return Poll::Ready(Err(ResponseFailure::Destination("its connection failed")));
                }
                Ok(_) => *has_news = true,
            }
            self.look(input, output)?;
        }
    }

    /// Writes an interim head for the client to `output`.
    #[cold]
    pub(super) fn pass_interim(
        &mut self,
        response: &RawResponse,
        input: &mut ReadBuffer,
        output: &mut Vec<u8>,
        plan: &CompiledTransforms,
    ) {
        // The route's removals apply to interim responses, too.
        let status = StatusCode::from_u16(response.status()).unwrap_or(StatusCode::PROCESSING);
        let removals = plan.response.iter();
        let removals: Vec<_> = removals.filter_map(|one| one.removal(status)).collect();
        let mut rewrite = ResponseRewrite::new(response);
        rewrite.copied = plan.response_copy.copied();
        rewrite.operations = &removals;
        recycled::acquire(output);
        write_response(input.filled(), response, &self.table, &rewrite, output);
        input.consume(response.head_length());
        self.phase = DownloadPhase::Interim;
    }

    /// Writes the final head, which is at the front of `input`, for the client to `output`, and
    /// parses the received part of the body.
    #[inline]
    pub(super) fn begin(
        &mut self,
        response: &RawResponse,
        status: StatusCode,
        input: &mut ReadBuffer,
        output: &mut Vec<u8>,
        outgoing: &ForClient<'_>,
    ) -> Result<(), ResponseFailure> {
        let received = (input.filled(), response, &self.table);
        outgoing.write(status, received, output);
        let framing = response.framing();
        // A body that ends with its connection goes in chunks, so that the client's connection stays.
        let is_wrapped = framing == Framing::UntilClose;
        input.consume(response.head_length());
        self.is_persistent = response.is_persistent() && !is_wrapped;
        self.body = Body::of_response(framing);
        if is_wrapped {
            self.chunks = ChunkPhase::First;
        } else if self.trailers.is_some() && framing == Framing::Chunked {
            self.chunks = ChunkPhase::Changed;
        }
        // What came with the head is sent with it.
        if !self.body.has_ended() && !input.is_empty() {
            self.look(input, output)
                .map_err(|_| ResponseFailure::BrokenBody(status))?;
        }
        self.phase = DownloadPhase::Body;
        Ok(())
    }

    /// Checks without waiting if the body fails before its first byte, while the client can still
    /// get an error.
    ///
    /// Only for a readable connection: otherwise the check would cost each response a system call.
    #[cold]
    pub(super) fn look_behind_head<U: ByteStream>(
        &mut self,
        cx: &mut Context<'_>,
        (destination, input): (&mut U, &mut ReadBuffer),
        output: &mut Vec<u8>,
    ) -> Result<(), ()> {
        match input.poll_read(destination, cx) {
            Poll::Pending => Ok(()),
            Poll::Ready(Ok(1..)) => self.look(input, output).map_err(drop),
            // The end of the body; it is read again later.
            Poll::Ready(Ok(0)) if matches!(self.body, Body::UntilClose) => Ok(()),
            Poll::Ready(Ok(0) | Err(_)) => Err(()),
        }
    }

    /// Parses the next part of the body in the destination's input.
    #[inline]
    fn look(&mut self, input: &ReadBuffer, output: &mut Vec<u8>) -> Result<(), ResponseFailure> {
        let followed = self.body.follow(input.filled(), &limits(), &mut self.table);
        self.part =
            followed.map_err(|_| ResponseFailure::MalformedBody("its framing is broken"))?;
        self.received += self.part.content;
        if self.chunks != ChunkPhase::AsTheyCame {
            self.reframe(output);
        }
        Ok(())
    }

    /// Changes the framing of the part that was parsed.
    fn reframe(&mut self, output: &mut Vec<u8>) {
        if self.chunks == ChunkPhase::Changed {
            // The empty line of a body without trailers is a section, too: the route may add some.
            if self.body.has_ended()
                && self.part.trailers == 0
                && let Some(bytes) = self.part.bytes.checked_sub(CHUNK_END.len())
            {
                self.part.bytes = bytes;
                self.part.trailers = CHUNK_END.len();
            }
            return;
        }
        // An empty chunk would end the body.
        if let Some(size) = NonZeroU64::new(self.part.content) {
            if self.chunks == ChunkPhase::Next {
                output.extend_from_slice(CHUNK_END);
            }
            output.extend_from_slice(ChunkHead::new(size).as_bytes());
            self.chunks = ChunkPhase::Next;
        }
    }

    /// Ends a body that this proxy put into chunks.
    fn end_chunks(&mut self, output: &mut Vec<u8>) -> Result<(), ResponseFailure> {
        match self.trailers.take() {
            None => output.extend_from_slice(LAST_CHUNK),
            Some(changed) => {
                output.extend_from_slice(b"0\r\n");
                let written = changed.write(None, output);
                written.map_err(|_| ResponseFailure::Trailers)?;
            }
        }
        Ok(())
    }

    /// Sets the changes of trailers. Must be called before [`begin`](Self::begin).
    #[cold]
    pub(super) fn change_trailers(&mut self, rules: TrailerRules, are_accepted: bool) {
        let changed = ChangedTrailers::new(rules, are_accepted);
        self.trailers = Some(Box::new(changed));
    }
}
