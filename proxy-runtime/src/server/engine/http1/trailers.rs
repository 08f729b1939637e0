//! Changes of a response's trailers by its route.

use http::HeaderMap;

use crate::contain::Panicked;
use crate::http1::{CHUNK_END, HeadTable};
use crate::response::TrailerRules;
use crate::server::http1::{read_trailers, write_trailers};

/// The changes of one response's trailers.
#[derive(Debug)]
pub(super) struct ChangedTrailers {
    rules: TrailerRules,
    /// True if the client accepts trailers.
    are_accepted: bool,
}

impl ChangedTrailers {
    pub(super) fn new(rules: TrailerRules, are_accepted: bool) -> Self {
        Self {
            rules,
            are_accepted,
        }
    }

    /// Writes the trailers, with the empty line that ends them, in place of a received section.
    ///
    /// # Errors
    ///
    /// A filter panicked.
    #[cold]
    pub(super) fn write(
        self,
        section: Option<(&[u8], &HeadTable)>,
        out: &mut Vec<u8>,
    ) -> Result<(), Panicked> {
        // RFC 9110 section 6.5.1: trailers are for clients that announce support.
        if !self.are_accepted {
            out.extend_from_slice(CHUNK_END);
            return Ok(());
        }
        let read = |(section, table): (&[u8], &HeadTable)| read_trailers(section, table);
        let mut trailers = section.map_or_else(HeaderMap::new, read);
        self.rules.apply(&mut trailers)?;
        write_trailers(&trailers, out);
        Ok(())
    }
}
