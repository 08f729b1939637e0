//! Limits of HTTP/2: those passed to `h2`, and those that the server enforces itself.

/// Limits of HTTP/2.
///
/// Besides, a connection ends if the client floods it with CONTINUATION or empty DATA frames
/// (RUSTSEC-2024-0332, RUSTSEC-2026-0258), or with more WINDOW_UPDATE frames than its received data
/// can explain. A client that is silent for a minute during a response gets a ping, and is
/// disconnected without an answer within 20 s. A client that does not acknowledge the settings
/// within [`header_timeout`](super::Limits::header_timeout) gets GOAWAY `SETTINGS_TIMEOUT`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Http2Limits {
    /// Maximum number of concurrent streams. 0 counts as 1. Default: 100.
    pub concurrent_streams: u32,
    /// Receive window of a stream, in bytes. Clamped to 1 KiB (less would make frames look like a
    /// flood of small ones) and 2³¹ − 1 (RFC 9113 section 6.9.1). Default: 256 KiB.
    pub stream_window: u32,
    /// Receive window of a connection, in bytes. Clamped to 65 535, with which every connection
    /// begins (RFC 9113 section 6.9.2), and 2³¹ − 1. Default: 1 MiB.
    pub connection_window: u32,
    /// Maximum number of streams that a client resets before they were accepted. Beyond it: GOAWAY
    /// `ENHANCE_YOUR_CALM`, against rapid reset (CVE-2023-44487). Default: 20.
    pub pending_resets: usize,
    /// Maximum number of streams that a client resets per second before their response has ended.
    /// Beyond it: GOAWAY `ENHANCE_YOUR_CALM`, since each may have cost a destination a request and
    /// a connection. Default: 100.
    pub resets_per_second: u32,
    /// Maximum number of such resets over the life of a connection. Default: 500.
    pub resets_per_connection: u32,
    /// Maximum number of PING frames per second. Beyond it: GOAWAY `ENHANCE_YOUR_CALM`
    /// (CVE-2019-9512). A client that receives data between its pings may send more, since gRPC
    /// clients measure the latency of each piece of data. Default: 100.
    pub pings_per_second: u32,
    /// Maximum number of SETTINGS frames per second. Beyond it: GOAWAY `ENHANCE_YOUR_CALM`
    /// (CVE-2019-9515). 0 counts as 1, since each connection begins with one. Default: 50.
    pub settings_per_second: u32,
    /// Maximum number of PRIORITY frames, PING acknowledgements and frames of unknown types per
    /// second, together. Beyond it: GOAWAY `ENHANCE_YOUR_CALM`, since each is read without any
    /// effect. A client that sends one with each request may send more. Default: 1000.
    pub other_frames_per_second: u32,
    /// Maximum number of streams that the server resets because of a client's errors. Beyond it:
    /// GOAWAY, against resets that a client provokes (CVE-2025-8671). Default: 100.
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

/// The largest window of RFC 9113 section 6.9.1; `h2` panics beyond it.
const LARGEST_WINDOW: u32 = (1 << 31) - 1;

/// `h2` closes connections with many frames of less than 256 bytes.
const LEAST_STREAM_WINDOW: u32 = 1024;

/// The initial window of RFC 9113 section 6.9.2.
const LEAST_CONNECTION_WINDOW: u32 = 65_535;

impl Http2Limits {
    /// The limits, clamped to valid values.
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
