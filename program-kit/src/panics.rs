use std::backtrace::{Backtrace, BacktraceStatus};
use std::panic::{self, PanicHookInfo};
use std::thread;
use std::time::Duration;

use log_sink::Seldom;
use tracing::Level;

use crate::sink;

/// Reports panics in the log. The standard library's report would block a serving thread if standard error is
/// not read.
pub(crate) fn report_in_log() {
    // A stranger may know how to repeat a panic of a request, which ends nothing else.
    static SELDOM: Seldom = Seldom::new(Duration::from_millis(200));
    panic::set_hook(Box::new(|panic| {
        if let Some(left_out) = SELDOM.pass() {
            sink::say_as(Level::ERROR, &describe(panic, left_out));
        }
        let thread = thread::current();
        if cfg!(panic = "abort") || thread.name() == Some("main") {
            sink::flush(sink::LAST_FLUSH);
        }
    }));
}

fn describe(panic: &PanicHookInfo<'_>, left_out: u64) -> String {
    let thread = thread::current();
    let thread = thread.name().unwrap_or("<unnamed>");
    let place = panic.location();
    let place = place.map_or_else(String::new, |place| format!(" at {place}"));
    let payload = panic.payload();
    let message = payload
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| payload.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no message");
    let backtrace = Backtrace::capture();
    let backtrace = match backtrace.status() {
        BacktraceStatus::Captured => format!("\n{backtrace}"),
        _ => String::new(),
    };
    let before = match left_out {
        0 => String::new(),
        more => format!(" (after {more} panics that were not logged)"),
    };
    format!("thread '{thread}' panicked{place}: {message}{before}{backtrace}")
}
