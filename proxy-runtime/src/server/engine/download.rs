//! A response on its way to the client: its head, and its body as it comes.

use std::num::NonZeroU64;
use std::task::{Context, Poll, ready};

use http::StatusCode;

use super::body::{Body, Part};
use super::client_head::ForClient;
use super::progress::Progress;
use crate::http1::{
    Asked, CHUNK_END, ChunkHead, Framing, HeadTable, LAST_CHUNK, RawResponse, ResponseRewrite,
    Status, parse_response, write_response, write_trailers,
};
use crate::progress::End;
use crate::stream::{ByteStream, ReadBuffer, poll_write_all, spare};
use crate::transform::HeadPlan;
use crate::upstream::{MOST_INTERIM, response_limits as limits};

/// Parts of a body up to this size are copied behind what is in front of them, which costs less than a slice of its own.
const COPIED: usize = 2 * 1024;

/// A response on its way to the client.
#[derive(Debug, Default)]
pub(super) struct Download {
    asked: Asked,
    phase: Phase,
    body: Body,
    /// What of the destination's bytes comes behind what is in the client's output.
    part: Part,
    /// How much of both was written.
    written: usize,
    /// The body ends with the destination's connection, and goes to the client in chunks.
    chunks: Chunks,
    interim: u32,
    /// The destination keeps its connection.
    pub(super) is_persistent: bool,
    /// Bytes of content that came.
    pub(super) received: u64,
    /// How many of them were counted for the destination.
    counted: u64,
    /// How many of them the client has not taken.
    unwritten: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Phase {
    /// The final head has not come.
    #[default]
    Head,
    /// An interim head is being written.
    Interim,
    /// The final head has come and its body is not complete.
    Body,
    Done,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Chunks {
    /// The body is framed as it came.
    #[default]
    AsTheyCame,
    /// It is put into chunks here, and none was begun.
    First,
    /// The data of a chunk is to be ended.
    Next,
}

/// Why it ended before its end.
#[derive(Debug)]
pub(super) enum Cut {
    /// There is no response, or none that can be passed on: the client can be told so.
    Unanswered(End, &'static str),
    /// The connection was closed before a byte of a response came.
    Silence,
    /// The framing of the body is broken from the start, of the response of this status: the client can still be told.
    Broken(StatusCode),
    /// A filter failed at the response of this status.
    Extension(StatusCode),
    /// The destination broke off.
    Destination(&'static str),
    /// The client takes no more.
    Client,
}

impl Download {
    /// Begins with the response to another request.
    #[inline]
    pub(super) fn restart(&mut self, asked: Asked) {
        self.asked = asked;
        self.phase = Phase::Head;
        self.body = Body::Ended;
        self.part = Part::default();
        self.written = 0;
        self.chunks = Chunks::AsTheyCame;
        self.interim = 0;
        self.is_persistent = false;
        self.received = 0;
        self.counted = 0;
        self.unwritten = 0;
    }

    /// Whether the client was told nothing yet.
    #[inline]
    pub(super) fn is_unanswered(&self) -> bool {
        match self.phase {
            Phase::Head => true,
            // Half a head cannot be taken back.
            Phase::Interim => self.written == 0,
            Phase::Body | Phase::Done => false,
        }
    }

    /// Bytes of content that came since this was last asked.
    #[inline]
    pub(super) fn take_uncounted(&mut self) -> u64 {
        let before = std::mem::replace(&mut self.counted, self.received);
        self.received - before
    }

    /// Bytes of content that the client has taken.
    #[inline]
    pub(super) fn sent(&self) -> u64 {
        self.received - self.unwritten
    }

    /// So many bytes of what there is were not written. Content comes last, and what frames it counts as content.
    #[cold]
    fn keep_unwritten(&mut self, unwritten: usize) {
        self.unwritten = self.part.content.min(unwritten as u64);
    }

    /// Whether nothing more is to come of the body.
    #[inline]
    pub(super) fn has_all(&self) -> bool {
        self.body.has_ended()
    }

    #[inline]
    pub(super) fn is_done(&self) -> bool {
        self.phase == Phase::Done
    }

    /// Whether it waits for the client to take what there is.
    #[inline]
    pub(super) fn waits_for_client(&self, output: &[u8]) -> bool {
        output.len() + self.part.bytes > 0
    }

    /// Waits for the head of the final response, with which this [begins](Self::begin). Interim responses are passed on meanwhile,
    /// with what `plan` takes away from responses taken away from them as well.
    #[inline]
    pub(super) fn poll_head<C, U>(
        &mut self,
        cx: &mut Context<'_>,
        (client, output): (&mut C, &mut Vec<u8>),
        (destination, input): (&mut U, &mut ReadBuffer),
        table: &mut HeadTable,
        plan: &HeadPlan,
        progress: &mut Progress,
    ) -> Poll<Result<RawResponse, Cut>>
    where
        C: ByteStream,
        U: ByteStream,
    {
        let limits = limits();
        loop {
            if self.phase == Phase::Interim {
                let written = poll_write_all(client, cx, [output, &[]], &mut self.written);
                ready!(written).map_err(|_| Cut::Client)?;
                self.written = 0;
                output.clear();
                self.phase = Phase::Head;
            }
            if !input.is_empty() {
                match parse_response(input.filled(), self.asked, &limits, table) {
                    Ok(Status::Complete(response)) if response.is_interim() => {
                        self.pass_interim(&response, input, table, output, plan)?;
                        progress.passed_interim(input);
                        continue;
                    }
                    Ok(Status::Complete(response)) => return Poll::Ready(Ok(response)),
                    Ok(Status::Partial) => {}
                    Err(refusal) => {
                        tracing::debug!(target: crate::observe::targets::REQUEST, %refusal, "response refused");
                        return Poll::Ready(Err(meaningless("its head has no one meaning")));
                    }
                }
            }
            match ready!(input.poll_read(destination, cx)) {
                Ok(1..) => progress.has_news = true,
                Ok(0) | Err(_) if input.is_empty() && self.interim == 0 => {
                    return Poll::Ready(Err(Cut::Silence));
                }
                Ok(0) | Err(_) => {
                    return Poll::Ready(Err(Cut::Unanswered(
                        End::Closed,
                        "the connection was closed within the head",
                    )));
                }
            }
        }
    }

    /// Passes the body on; ready when all of it was handed to the client's connection. `has_news` is set when
    /// something moved.
    #[inline]
    pub(super) fn poll_body<C, U>(
        &mut self,
        cx: &mut Context<'_>,
        (client, output): (&mut C, &mut Vec<u8>),
        (destination, input): (&mut U, &mut ReadBuffer),
        table: &mut HeadTable,
        has_news: &mut bool,
    ) -> Poll<Result<(), Cut>>
    where
        C: ByteStream,
        U: ByteStream,
    {
        loop {
            if output.len() + self.part.bytes > 0 {
                if self.part.bytes <= COPIED && self.written == 0 {
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
                    return written.map(|_| Err(Cut::Client));
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
                write_trailers(&input.filled()[..count], table, output);
                input.consume(count);
                continue;
            }
            if self.body.has_ended() {
                self.phase = Phase::Done;
                return Poll::Ready(Ok(()));
            }
            match ready!(input.poll_read(destination, cx)) {
                Ok(0) if matches!(self.body, Body::UntilClose) => {
                    self.body = Body::Ended;
                    match self.chunks {
                        Chunks::AsTheyCame => {}
                        Chunks::First => output.extend_from_slice(LAST_CHUNK),
                        Chunks::Next => {
                            output.extend_from_slice(CHUNK_END);
                            output.extend_from_slice(LAST_CHUNK);
                        }
                    }
                    continue;
                }
                Ok(0) => return Poll::Ready(Err(Cut::Destination("it ended too early"))),
                Err(_) => return Poll::Ready(Err(Cut::Destination("its connection failed"))),
                Ok(_) => *has_news = true,
            }
            self.look(input, table, output)?;
        }
    }

    fn pass_interim(
        &mut self,
        response: &RawResponse,
        input: &mut ReadBuffer,
        table: &HeadTable,
        output: &mut Vec<u8>,
        plan: &HeadPlan,
    ) -> Result<(), Cut> {
        if response.framing() == Framing::Tunnel {
            // Nobody asked for it, so nobody knows what follows.
            return Err(meaningless("it switches protocols"));
        }
        self.interim += 1;
        if self.interim > MOST_INTERIM {
            return Err(meaningless("it has too many interim responses"));
        }
        // What the route takes away from responses is not for the client in these either.
        let status = StatusCode::from_u16(response.status()).unwrap_or(StatusCode::PROCESSING);
        let removals = plan.response.iter();
        let removals: Vec<_> = removals.filter_map(|one| one.removal(status)).collect();
        let mut rewrite = ResponseRewrite::new(response);
        rewrite.copied = plan.response_copy.copied();
        rewrite.operations = &removals;
        spare::lend(output);
        write_response(input.filled(), response, table, &rewrite, output);
        input.consume(response.head_length());
        self.phase = Phase::Interim;
        Ok(())
    }

    /// Makes of the final head, which is at the front of the input, the one that the client gets, in `output`, and looks at what
    /// has come of the body.
    #[inline]
    pub(super) fn begin(
        &mut self,
        response: &RawResponse,
        input: &mut ReadBuffer,
        table: &mut HeadTable,
        output: &mut Vec<u8>,
        outgoing: ForClient<'_>,
    ) -> Result<StatusCode, Cut> {
        let status = StatusCode::from_u16(response.status());
        let status = status.map_err(|_| meaningless("it has no status"))?;
        if response.framing() == Framing::Tunnel {
            return Err(meaningless("it switches protocols"));
        }
        let received = (input.filled(), response, &*table);
        outgoing.write(status, received, output)?;
        self.begin_body(response, status, input, table, output)?;
        Ok(status)
    }

    /// The head is written; of the body, some may have come.
    #[inline]
    fn begin_body(
        &mut self,
        response: &RawResponse,
        status: StatusCode,
        input: &mut ReadBuffer,
        table: &mut HeadTable,
        output: &mut Vec<u8>,
    ) -> Result<(), Cut> {
        let framing = response.framing();
        let is_wrapped = framing == Framing::UntilClose;
        input.consume(response.head_length());
        self.is_persistent = response.is_persistent() && !is_wrapped;
        self.body = Body::new(framing);
        if is_wrapped {
            self.chunks = Chunks::First;
        }
        if !self.body.has_ended() && !input.is_empty() {
            self.look(input, table, output)
                .map_err(|_| Cut::Broken(status))?;
        }
        self.phase = Phase::Body;
        Ok(())
    }

    /// Finds out what of the destination's bytes belongs to the body.
    #[inline]
    fn look(
        &mut self,
        input: &ReadBuffer,
        table: &mut HeadTable,
        output: &mut Vec<u8>,
    ) -> Result<(), Cut> {
        let followed = self.body.follow(input.filled(), &limits(), table);
        self.part = followed.map_err(|_| Cut::Destination("its framing is broken"))?;
        self.received += self.part.content;
        if self.chunks != Chunks::AsTheyCame
            && let Some(size) = NonZeroU64::new(self.part.content)
        {
            if self.chunks == Chunks::Next {
                output.extend_from_slice(CHUNK_END);
            }
            output.extend_from_slice(ChunkHead::new(size).as_bytes());
            self.chunks = Chunks::Next;
        }
        Ok(())
    }
}

fn meaningless(why: &'static str) -> Cut {
    Cut::Unanswered(End::Meaningless, why)
}
