//! The header that marks a read.

use proxy_model::Problem;
use proxy_model::config::{HeaderMatchMode, RouteHeader};
use proxy_model::json::ObjectReader;

/// Reads a header condition like that of a route. A header without values matches by its presence alone, as
/// in labels.
pub(super) fn read_header(header: &mut ObjectReader<'_, '_>) -> Option<RouteHeader> {
    let modes = [
        ("ExactHeader", HeaderMatchMode::ExactHeader),
        ("HeaderPrefix", HeaderMatchMode::HeaderPrefix),
        ("Exists", HeaderMatchMode::Exists),
        ("Contains", HeaderMatchMode::Contains),
        ("NotContains", HeaderMatchMode::NotContains),
        ("NotExists", HeaderMatchMode::NotExists),
    ];
    let name = header.text("Name").filter(|name| !name.trim().is_empty());
    let values = header.texts("Values").filter(|values| !values.is_empty());
    let mode = header.choice("Mode", &modes);
    let is_case_sensitive = header.boolean("IsCaseSensitive").unwrap_or_default();
    let mode = mode.unwrap_or(match values {
        Some(_) => HeaderMatchMode::ExactHeader,
        None => HeaderMatchMode::Exists,
    });
    let is_about_presence = matches!(mode, HeaderMatchMode::Exists | HeaderMatchMode::NotExists);
    let mut report = |key: &str, code: &'static str, message: &str| {
        let problem = Problem::error(header.pointer_to(key), code, message);
        header.problems().push(problem);
    };
    if name.is_none() {
        let message = "a condition needs the `Name` of a header";
        report("Name", "missing_name", message);
    }
    if is_about_presence == values.is_some() {
        let message = match is_about_presence {
            true => "`Exists` and `NotExists` compare with nothing, so there can be no `Values`",
            false => "there is nothing to compare with: `Values` are missing",
        };
        report("Values", "invalid_values", message);
    }
    Some(RouteHeader {
        name: name?,
        values,
        mode,
        is_case_sensitive,
    })
}
