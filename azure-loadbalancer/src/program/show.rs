//! The text form of plans and their results.

use std::fmt::{self, Write};
use std::io::{self, IsTerminal};

use azure_loadbalancer::ServiceKey;
use azure_loadbalancer::execute::Reconciled;
use azure_loadbalancer::plan::{FieldChange, Forecast, Ingress, Operation, Orphan, Warning};
use program_kit::Failure;

use super::changes;

/// The colours, if the output is a terminal.
#[derive(Clone, Copy, Debug)]
pub(super) struct Style {
    is_coloured: bool,
}

#[derive(Clone, Copy)]
enum Colour {
    Red,
    Green,
    Yellow,
    Bold,
}

impl Style {
    /// Returns the style for standard output. `NO_COLOR` in the environment disables colours.
    pub(super) fn of_stdout() -> Self {
        let unwanted = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        Self {
            is_coloured: io::stdout().is_terminal() && !unwanted,
        }
    }

    fn paint(self, colour: Colour, text: &str) -> String {
        let code = match colour {
            Colour::Red => "31",
            Colour::Green => "32",
            Colour::Yellow => "33",
            Colour::Bold => "1",
        };
        if self.is_coloured {
            format!("\u{1b}[{code}m{text}\u{1b}[0m")
        } else {
            text.to_owned()
        }
    }

    fn change(self, change: &FieldChange, text: &str) -> String {
        let colour = match (&change.from, &change.to) {
            (None, _) => Colour::Green,
            (_, None) => Colour::Red,
            _ => Colour::Yellow,
        };
        self.paint(colour, text)
    }
}

/// Describes a plan: the deletions, then the writes in order with reasons and differences, then the errors.
pub(super) fn forecast(plan: &Forecast, style: Style) -> Result<String, fmt::Error> {
    let mut text = writes(plan, style)?;
    for later in plan.left() {
        writeln!(
            text,
            "left: {}{}",
            of(later.service.as_ref()),
            plain(&later.what)
        )?;
    }
    warnings(&mut text, plan.warnings(), style)?;
    orphans(&mut text, plan.orphans(), style)?;
    let (mut services, mut errors) = (0, 0);
    for (service, outcome) in plan.services() {
        services += 1;
        if let Some(error) = &outcome.error {
            errors += 1;
            let title = style.paint(Colour::Red, "error:");
            writeln!(text, "{title} {service}: {}", plain(&error.to_string()))?;
        }
    }
    writeln!(
        text,
        "{}",
        summary(plan.actions().count(), services, errors)
    )?;
    Ok(text)
}

/// Describes the writes of a plan: first the deletions, then all in order.
pub(super) fn writes(plan: &Forecast, style: Style) -> Result<String, fmt::Error> {
    let mut text = String::new();
    deletions(&mut text, plan, style)?;
    let edges = plan.edges();
    let mut last_stage = 1;
    for (index, (stage, action)) in plan.actions().enumerate() {
        if stage != last_stage {
            writeln!(text, "Once that is done:")?;
            last_stage = stage;
        }
        let title = plain(&format!("{}. {}", index + 1, action.operation));
        writeln!(text, "{}", style.paint(Colour::Bold, &title))?;
        for reason in &action.reasons {
            writeln!(text, "     because {}", plain(reason))?;
        }
        let mut ordered: Vec<_> = action.changes.iter().collect();
        ordered.sort_by_key(|change| (change.to.is_some(), change.from.is_none()));
        for change in ordered {
            for line in changes::lines(change) {
                writeln!(text, "     {}", style.change(change, &plain(&line)))?;
            }
        }
        let before: Vec<_> = edges
            .iter()
            .filter(|edge| edge.after == index)
            .map(|edge| (edge.before + 1).to_string())
            .collect();
        if !before.is_empty() {
            writeln!(text, "     after {}", before.join(", "))?;
        }
    }
    Ok(text)
}

/// Describes the deletions, which cannot be undone.
fn deletions(text: &mut String, plan: &Forecast, style: Style) -> fmt::Result {
    for (index, (_, action)) in plan.actions().enumerate() {
        let what = match &action.operation {
            Operation::DeletePublicIp { .. } => " for ever",
            Operation::DeleteLoadBalancer { .. } => "",
            _ => continue,
        };
        let lost: Vec<_> = action
            .changes
            .iter()
            .filter_map(|change| Some(changes::brief(change.from.as_ref()?)))
            .collect();
        let lost = match lost.is_empty() {
            true => String::new(),
            false => format!(" ({})", lost.join(", ")),
        };
        let line = format!(
            "write {} will {}{lost}{what}: {}",
            index + 1,
            action.operation,
            action.reasons.join("; ")
        );
        let title = style.paint(Colour::Red, "deletes:");
        writeln!(text, "{title} {}", plain(&line))?;
    }
    Ok(())
}

/// Describes the resources that belong to no service: whether they are removed or stay.
fn orphans<'o>(
    text: &mut String,
    orphans: impl IntoIterator<Item = &'o Orphan>,
    style: Style,
) -> fmt::Result {
    for orphan in orphans {
        let disposition = match orphan.removed {
            true => "belongs to no service and is removed",
            false => "belongs to no service and stays; `--remove-orphans` removes it",
        };
        writeln!(
            text,
            "{} {} (of {}) {disposition}",
            style.paint(Colour::Yellow, "orphan:"),
            plain(&orphan.id),
            plain(&orphan.owner)
        )?;
    }
    Ok(())
}

fn plural(count: usize, one: &str) -> String {
    match count {
        1 => format!("1 {one}"),
        count => format!("{count} {one}s"),
    }
}

fn summary(writes: usize, services: usize, errors: usize) -> String {
    let head = match writes {
        0 => "Nothing to write".to_owned(),
        writes => plural(writes, "write"),
    };
    match errors {
        0 => format!("{head} for {}.", plural(services, "service")),
        errors => format!(
            "{head} for {}, {errors} of which cannot be met.",
            plural(services, "service")
        ),
    }
}

/// Describes the result of a reconciliation: the addresses of services, and their errors.
pub(super) fn reconciled(report: &Reconciled, style: Style) -> Result<String, fmt::Error> {
    let mut text = String::new();
    for written in &report.written {
        let target = written.target.as_ref().map_or("", |id| id.name());
        writeln!(
            text,
            "{} {} {target}",
            style.paint(Colour::Green, "written:"),
            written.verb
        )?;
    }
    warnings(&mut text, &report.warnings, style)?;
    let kept = report.orphans.iter().filter(|orphan| !orphan.removed);
    orphans(&mut text, kept, style)?;
    for (service, outcome) in &report.services {
        if let (None, false) = (report.error_of(service), outcome.ingress.is_empty()) {
            let addresses: Vec<_> = outcome.ingress.iter().map(address).collect();
            writeln!(text, "{service}: {}", addresses.join(", "))?;
        }
    }
    for (service, error) in report.errors() {
        writeln!(
            text,
            "{} {service}: {}",
            style.paint(Colour::Red, "error:"),
            Failure::from_error(&error)
        )?;
    }
    for (node, error) in &report.rejected_nodes {
        writeln!(
            text,
            "{} node {}: {}",
            style.paint(Colour::Red, "error:"),
            plain(node),
            Failure::from_error(&**error)
        )?;
    }
    for error in &report.other_failures {
        writeln!(
            text,
            "{} {}",
            style.paint(Colour::Red, "error:"),
            Failure::from_error(&**error)
        )?;
    }
    // The remaining work of a service is its error, and has been shown.
    for left in report.left.iter().filter(|left| left.service.is_none()) {
        write!(
            text,
            "{} {}",
            style.paint(Colour::Red, "left:"),
            plain(&left.what)
        )?;
        match &report.last_conflict {
            Some(error) => writeln!(
                text,
                "; the last conflict was {}",
                Failure::from_error(&**error)
            )?,
            None => writeln!(text)?,
        }
    }
    let calls = report.calls;
    writeln!(
        text,
        "{}, {}, {} of writes under way.",
        plural(calls.reads as usize, "read"),
        plural(calls.writes as usize, "write"),
        plural(calls.polls as usize, "poll")
    )?;
    Ok(text)
}

fn address(ingress: &Ingress) -> String {
    match &ingress.hostname {
        Some(name) => format!("{} ({name})", ingress.ip),
        None => ingress.ip.to_string(),
    }
}

fn warnings<'w>(
    text: &mut String,
    warnings: impl IntoIterator<Item = &'w Warning>,
    style: Style,
) -> fmt::Result {
    for warning in warnings {
        let title = style.paint(Colour::Yellow, "warning:");
        writeln!(
            text,
            "{title} {}{}",
            of(warning.service.as_ref()),
            plain(&warning.what)
        )?;
    }
    Ok(())
}

/// Returns the prefix of a line: its service.
fn of(service: Option<&ServiceKey>) -> String {
    service.map_or_else(String::new, |service| format!("{service}: "))
}

/// Replaces control characters in a text from outside, which a terminal would obey.
pub(super) fn plain(text: &str) -> String {
    let plain = text.chars().map(|c| if c.is_control() { ' ' } else { c });
    plain.collect()
}

#[cfg(test)]
mod tests {
    use azure_loadbalancer::plan::Deferred;

    use super::*;

    const PLAIN: Style = Style { is_coloured: false };

    #[test]
    fn whatever_makes_a_report_bad_is_shown() {
        let mut report = Reconciled::default();
        let mut leave = |service: Option<ServiceKey>, what: &str| {
            let what = what.to_owned();
            report.left.push(Deferred { service, what });
        };
        leave(None, "put networkInterface nic-1 was not written");
        leave(
            Some(ServiceKey::new("shop", "web")),
            "put loadBalancer shop was not written",
        );
        assert!(!report.is_converged());
        let text = reconciled(&report, PLAIN).unwrap();
        assert!(
            text.contains("left: put networkInterface nic-1 was not written\n"),
            "{text}"
        );
        assert!(
            text.contains("error: shop/web: not done: put loadBalancer"),
            "{text}"
        );
        assert_eq!(text.matches("put loadBalancer shop").count(), 1, "{text}");
    }

    #[test]
    fn the_calls_are_counted_for_the_reader() {
        let mut report = Reconciled::default();
        (report.calls.reads, report.calls.writes, report.calls.polls) = (5, 2, 1);
        let text = reconciled(&report, PLAIN).unwrap();
        assert!(
            text.ends_with("5 reads, 2 writes, 1 poll of writes under way.\n"),
            "{text}"
        );
    }

    #[test]
    fn on_a_terminal_differences_have_colours() {
        let change = |from: Option<u8>, to: Option<u8>| {
            let (path, value) = ("rules[r].port".to_owned(), serde_json::Value::from);
            let (from, to) = (from.map(value), to.map(value));
            let change = FieldChange { path, from, to };
            Style { is_coloured: true }.change(&change, &changes::lines(&change)[0])
        };
        assert_eq!(
            change(None, Some(80)),
            "\u{1b}[32m+ rules[r].port: 80\u{1b}[0m"
        );
        assert_eq!(
            change(Some(80), None),
            "\u{1b}[31m- rules[r].port: 80\u{1b}[0m"
        );
        assert_eq!(
            change(Some(80), Some(81)),
            "\u{1b}[33m~ rules[r].port: 80 -> 81\u{1b}[0m"
        );
    }

    #[test]
    fn names_of_others_do_nothing_to_a_terminal() {
        let mut report = Reconciled::default();
        report.orphans.push(Orphan {
            id: "/x/\u{1b}[2Jy".to_owned(),
            owner: "a\nb".to_owned(),
            removed: false,
        });
        report.warnings.push(Warning {
            service: None,
            what: "node a\u{1b}[2J cannot be read".to_owned(),
        });
        let text = reconciled(&report, PLAIN).unwrap();
        assert!(text.contains("orphan: /x/ [2Jy (of a b) "), "{text:?}");
        assert!(text.contains("warning: node a [2J cannot"), "{text:?}");
    }
}
