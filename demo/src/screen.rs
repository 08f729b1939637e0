//! The output for the person at the terminal.

use std::fmt;
use std::io::{self, IsTerminal, Write as _};
use std::time::Duration;

use servicefabric_emulator::gateway::Emulator;
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::layer::{Context, SubscriberExt};
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Layer};

use crate::failure::Failure;
use crate::proxy::RunningProxy;

/// Reports a stage of the start, so that the terminal is never silent for long.
pub(crate) fn stage(what: &str) {
    print(&format!("  {what}"));
}

/// Prints the addresses, and commands to try.
pub(crate) fn show(proxy: &RunningProxy, emulator: &Emulator, took: Duration) {
    let snapshot = proxy.snapshot();
    let instances: usize = snapshot
        .clusters()
        .iter()
        .map(|c| c.destinations().len())
        .sum();
    let (admin, proxy) = (proxy.admin_address(), proxy.address());
    let cluster = emulator.endpoint();
    print(&format!(
        "\n  An emulated Service Fabric cluster was started, and {} routes to {instances} replicas of its services \
         were discovered\n  over its REST gateway at {cluster}, in {} ms.\n\n  Try, in another terminal:\n",
        snapshot.routes().len(),
        took.as_millis()
    ));
    for (command, what) in [
        (
            format!("curl http://{proxy}/catalog/shoes"),
            "round robin: ask again, another node answers",
        ),
        (
            format!("curl http://{proxy}/orders/eu/17"),
            "the partition that `eu` names; try `us`, and `mars`",
        ),
        (
            format!("curl -i -X PUT http://{proxy}/orders/eu/17"),
            "this route takes GET and POST only: 405",
        ),
        (
            format!("curl '{cluster}/Services/Shop~Payments/$/GetHealth?api-version=6.0'"),
            "health reports in the cluster",
        ),
    ] {
        print(&format!("    {command:<50} # {what}"));
    }
    print(&format!("\n  See what it does:  http://{admin}/"));
    print(
        "\n  Over the next minute services scale, crash, are upgraded and mislabelled. Ctrl-C stops.\n",
    );
}

/// Prints an event of the services.
pub(crate) fn say(what: &str) {
    print(&format!("  ▸ {what}"));
}

/// Prints a text. A closed output (`| head`) does not end the demo.
fn print(text: &str) {
    let _ = writeln!(io::stdout(), "{text}");
}

/// Shows one line for each event that matters to a person, instead of a log.
pub(crate) fn log_events() -> Result<(), Failure> {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| {
        EnvFilter::new("warn,proxy::health=info,discovery::runner=info,discovery::merge=error")
    });
    tracing_subscriber::registry()
        .with(
            Lines {
                colours: io::stdout().is_terminal(),
            }
            .with_filter(filter),
        )
        .try_init()
        .map_err(|error| Failure::of("events cannot be shown", &error))
}

/// Writes an event as one line: its message and its fields.
struct Lines {
    colours: bool,
}

impl<S: Subscriber> Layer<S> for Lines {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let mut line = Line::default();
        event.record(&mut line);
        let (mark, colour) = match *event.metadata().level() {
            Level::ERROR => ("✗", "31"),
            Level::WARN => ("!", "33"),
            _ => ("·", "32"),
        };
        if self.colours {
            eprintln!(
                "    \x1b[{colour}m{mark}\x1b[0m {}\x1b[2m{}\x1b[0m",
                line.message, line.fields
            );
        } else {
            eprintln!("    {mark} {}{}", line.message, line.fields);
        }
    }
}

#[derive(Default)]
struct Line {
    message: String,
    fields: String,
}

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        use fmt::Write;
        // Writing to a String cannot fail. Texts of services must not control the terminal.
        let _ = match field.name() {
            "message" => write!(self.message, "{value:?}"),
            name => write!(self.fields, "  {name}={}", shortened(&format!("{value:?}"))),
        };
        for text in [&mut self.message, &mut self.fields] {
            if text.contains(|c: char| c.is_control()) {
                *text = text
                    .chars()
                    .map(|c| if c.is_control() { ' ' } else { c })
                    .collect();
            }
        }
    }
}

/// Shortens ids of partitions to their first digits, which distinguish those of a demo.
fn shortened(text: &str) -> String {
    /// The length of an id with dashes: `27e510ab-1226-824a-b570-082d5fdc85de`.
    const LENGTH: usize = 36;
    let is_id = |bytes: &[u8]| {
        bytes.iter().enumerate().all(|(at, byte)| match at {
            8 | 13 | 18 | 23 => *byte == b'-',
            _ => byte.is_ascii_hexdigit(),
        })
    };
    let mut short = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        if rest.as_bytes().get(..LENGTH).is_some_and(is_id) {
            short.push_str(&rest[..4]);
            short.push('…');
            rest = &rest[LENGTH..];
        } else {
            short.push(first);
            rest = &rest[first.len_utf8()..];
        }
    }
    short
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_shortened_and_nothing_else_is() {
        let id = "27e510ab-1226-824a-b570-082d5fdc85de";
        assert_eq!(shortened(&format!("{id}/133 → {id}")), "27e5…/133 → 27e5…");
        for other in ["", "é", &id[1..], &id.replace('-', "+")] {
            assert_eq!(shortened(other), other);
        }
    }
}
