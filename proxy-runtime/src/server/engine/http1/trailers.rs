//! Changes of a response's trailers by its route.

use std::sync::Arc;

use http::{HeaderMap, StatusCode};

use crate::http1::{CHUNK_END, HeadTable};
use crate::response::TrailerRules;
use crate::server::http1::{read_trailers, write_trailers};
use crate::transform::TrailerPlan;

/// The changes of one response's trailers.
#[derive(Debug)]
pub(super) struct ChangedTrailers {
    rules: TrailerRules,
    /// True if the client accepts trailers.
    are_accepted: bool,
}

impl ChangedTrailers {
    pub(super) fn new(plan: &Arc<TrailerPlan>, status: StatusCode, are_accepted: bool) -> Self {
        Self {
            rules: TrailerRules::new(Some(plan), status),
            are_accepted,
        }
    }

    /// Writes the trailers, with the empty line that ends them, in place of a received section.
    #[cold]
    pub(super) fn write(&self, section: Option<(&[u8], &HeadTable)>, out: &mut Vec<u8>) {
        // RFC 9110 section 6.5.1: trailers are for clients that announce support.
        if !self.are_accepted {
            out.extend_from_slice(CHUNK_END);
            return;
        }
        let read = |(section, table): (&[u8], &HeadTable)| read_trailers(section, table);
        let mut trailers = section.map_or_else(HeaderMap::new, read);
        self.rules.apply(&mut trailers);
        write_trailers(&trailers, out);
    }
}
