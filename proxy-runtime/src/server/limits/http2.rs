//! Limits that `h2` is given, and those that the server sees to beside it.

/// What is particular to HTTP/2.
///
/// Beyond these, a connection ends that floods the server with CONTINUATION or with empty DATA frames (RUSTSEC-2024-0332,
/// RUSTSEC-2026-0258), or with more WINDOW_UPDATE frames than what it was sent can be acknowledged with. A client that sends nothing at all for a minute while something is being answered is asked with a ping
/// whether it is there, and cut if it has not answered within 20 s. One that does not acknowledge the server's settings within
/// [`header_timeout`](super::Limits::header_timeout) is sent GOAWAY `SETTINGS_TIMEOUT`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Http2Limits {
    /// Streams that are open at a time. 100. One at least: 0 is taken for 1.
    pub concurrent_streams: u32,
    /// Bytes that a client may send on a stream before the destination takes them. 256 KiB. Less than 1 KiB is taken for
    /// that, since it would be filled with frames that look like a flood of small ones, and more than 2³¹ − 1 for 2³¹ − 1,
    /// beyond which there is no window (RFC 9113 section 6.9.1).
    pub stream_window: u32,
    /// The same over all streams of a connection. 1 MiB. Less than 65 535 is taken for that, with which every connection begins
    /// (RFC 9113 section 6.9.2), and more than 2³¹ − 1 for 2³¹ − 1.
    pub connection_window: u32,
    /// Streams that a client may reset before they were looked at. 20, then GOAWAY `ENHANCE_YOUR_CALM`: the answer to
    /// rapid reset (CVE-2023-44487).
    pub pending_resets: usize,
    /// Streams that a client may reset within a second, before it has had their responses. 100, then GOAWAY
    /// `ENHANCE_YOUR_CALM`: each of them may have cost a destination a request and a connection.
    pub resets_per_second: u32,
    /// The same over the life of a connection. 500.
    pub resets_per_connection: u32,
    /// PING frames that a client may send within a second. 100, then GOAWAY `ENHANCE_YOUR_CALM` (CVE-2019-9512). Clients of
    /// gRPC ask with each piece of data how long it took: whoever is sent something between them may send more.
    pub pings_per_second: u32,
    /// SETTINGS frames that a client may send within a second. 50, then the same (CVE-2019-9515). One at least, with which
    /// it begins: 0 is taken for 1.
    pub settings_per_second: u32,
    /// PRIORITY frames, acknowledgements of PING, and frames of types that the server does not know, that a client may send within a
    /// second, together. 1000, then the same: they ask for nothing, and each is read. Whoever sends one with each request may send more.
    pub other_frames_per_second: u32,
    /// Streams that the server may have had to reset because of a client's errors. 100, then GOAWAY: the answer to
    /// resets that a client provokes (CVE-2025-8671).
    pub error_resets: usize,
}

impl Default for Http2Limits {
    fn default() -> Self {
        Self {
            concurrent_streams: 100,
            stream_window: 256 * 1024,
            connection_window: 1024 * 1024,
            pending_resets: 20,
            resets_per_second: 100,
            resets_per_connection: 500,
            pings_per_second: 100,
            settings_per_second: 50,
            other_frames_per_second: 1000,
            error_resets: 100,
        }
    }
}

/// RFC 9113 section 6.9.1; `h2` panics.
const LARGEST_WINDOW: u32 = (1 << 31) - 1;

/// `h2` ends connections for many frames of less than 256 bytes.
const LEAST_STREAM_WINDOW: u32 = 1024;

/// RFC 9113 section 6.9.2.
const LEAST_CONNECTION_WINDOW: u32 = 65_535;

impl Http2Limits {
    /// The same, with what HTTP/2 can be spoken within.
    pub(super) fn effective(self) -> Self {
        Self {
            concurrent_streams: self.concurrent_streams.max(1),
            stream_window: self
                .stream_window
                .clamp(LEAST_STREAM_WINDOW, LARGEST_WINDOW),
            connection_window: self
                .connection_window
                .clamp(LEAST_CONNECTION_WINDOW, LARGEST_WINDOW),
            settings_per_second: self.settings_per_second.max(1),
            ..self
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn windows_and_counts(limits: Http2Limits) -> [u32; 4] {
        [
            limits.stream_window,
            limits.connection_window,
            limits.concurrent_streams,
            limits.settings_per_second,
        ]
    }

    #[test]
    fn what_cannot_be_is_taken_for_the_nearest_that_can() {
        for (value, expected) in [
            (0, [1024, 65_535, 1, 1]),
            (1, [1024, 65_535, 1, 1]),
            (70_000, [70_000; 4]),
            (LARGEST_WINDOW, [LARGEST_WINDOW; 4]),
            (
                u32::MAX,
                [LARGEST_WINDOW, LARGEST_WINDOW, u32::MAX, u32::MAX],
            ),
        ] {
            let limits = Http2Limits {
                stream_window: value,
                connection_window: value,
                concurrent_streams: value,
                settings_per_second: value,
                ..Http2Limits::default()
            };
            assert_eq!(windows_and_counts(limits.effective()), expected, "{value}");
        }
        let default = Http2Limits::default();
        assert_eq!(default.effective(), default);
    }
}
