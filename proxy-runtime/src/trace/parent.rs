//! The field `traceparent` of W3C Trace Context.

use proxy_model::RequestHead;

/// The name of the field with trace, caller and flags.
pub(super) const TRACEPARENT: &str = "traceparent";

/// The name of the field with the state of other tracing systems.
pub(super) const TRACESTATE: &str = "tracestate";

/// Longest `tracestate` in bytes that spans carry. Destinations get every one.
const LONGEST_STATE: usize = 512;

/// The flag of a caller that records the trace.
const SAMPLED: u8 = 1;

/// The caller's position in a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TraceParent {
    pub(super) trace_id: [u8; 16],
    pub(super) span_id: [u8; 8],
    pub(super) flags: u8,
}

impl TraceParent {
    /// The caller's position, if the request has exactly one valid `traceparent`.
    pub(super) fn of_request(head: &impl RequestHead) -> Option<Self> {
        let mut found = None;
        let mut lines = 0_u32;
        head.for_each_header(TRACEPARENT, &mut |value| {
            lines += 1;
            found = Self::parse(value);
            true
        });
        found.filter(|_| lines == 1)
    }

    /// Parses `00-<32 digits>-<16 digits>-<2 digits>`. A later version may continue after another `-`.
    pub(super) fn parse(value: &[u8]) -> Option<Self> {
        // 2 + 1 + 32 + 1 + 16 + 1 + 2 bytes.
        let (fields, rest) = value.split_at_checked(55)?;
        let dashes = [2, 35, 52].iter().all(|&at| fields[at] == b'-');
        let [version] = hex(&fields[..2])?;
        let is_continued = version != 0 && rest.first() == Some(&b'-');
        // Version ff is invalid, and version 00 ends here.
        if !dashes || version == 0xff || !(rest.is_empty() || is_continued) {
            return None;
        }
        let [flags] = hex(&fields[53..])?;
        let parent = Self {
            trace_id: hex(&fields[3..35])?,
            span_id: hex(&fields[36..52])?,
            flags,
        };
        // Ids of zeros are invalid.
        (parent.trace_id != [0; 16] && parent.span_id != [0; 8]).then_some(parent)
    }

    pub(super) fn is_sampled(self) -> bool {
        self.flags & SAMPLED != 0
    }

    /// The value of the field in version 00.
    pub(super) fn value(self) -> String {
        let Self {
            trace_id,
            span_id,
            flags,
        } = self;
        format!(
            "00-{:032x}-{}-{flags:02x}",
            u128::from_be_bytes(trace_id),
            digits(span_id),
        )
    }
}

/// The `tracestate` of a request with a valid `traceparent`: its lines, joined. Empty if it is too long to be kept.
pub(super) fn state_of(head: &impl RequestHead) -> String {
    let mut state = String::new();
    let mut is_whole = true;
    head.for_each_header(TRACESTATE, &mut |value| {
        match str::from_utf8(value) {
            Ok(text) if state.len() + text.len() < LONGEST_STATE => {
                if !state.is_empty() {
                    // RFC 9110 section 5.3.
                    state.push(',');
                }
                state.push_str(text.trim());
            }
            _ => is_whole = false,
        }
        is_whole
    });
    match is_whole {
        true => state,
        false => String::new(),
    }
}

/// The digits of a span's id.
pub(super) fn digits(span_id: [u8; 8]) -> String {
    format!("{:016x}", u64::from_be_bytes(span_id))
}

/// Bytes of lower-case digits, the only ones that the field may have.
fn hex<const N: usize>(digits: &[u8]) -> Option<[u8; N]> {
    let value = |digit: u8| match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    };
    let mut bytes = [0; N];
    if digits.len() != 2 * N {
        return None;
    }
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
        *byte = value(pair[0])? << 4 | value(pair[1])?;
    }
    Some(bytes)
}
