//! The raw lane of HTTP/2: streams, forwarded to destinations of HTTP/1.1. What leaves it is in [`engine`](super).
//!
//! ```text
//! head, as `h2` read it ─▶ route ─▶ cluster ─▶ pick ─▶ connection ─▶ head, written in HTTP/1.1
//!                                                                    │ with what came of the body, one write
//! client ◀─ HEADERS ◀─ one map of fields ◀─ head, parsed in place ◀─ destination
//! client ◀─ DATA, a frame for what came together ◀─ content, without its framing ◀─ destination
//! ```
//!
//! Routes, pools, limits, deadlines and counters are those of [`engine`](super), as is what a route does to heads. `h2` gives
//! the request's fields as a map and takes those of the response as one; nothing else is made of them. A small response that
//! came whole is one block of memory ([`small`]).

mod answer;
mod connect;
mod download;
mod relay;
mod request;
mod run;
mod small;
#[cfg(test)]
mod tests;
mod upload;

pub(crate) use self::run::forward;
