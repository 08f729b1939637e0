//! `Server.ErrorPages`: bodies of errors in place of the program's own.

use std::fs::File;
use std::io::{self, Read as _};
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use http::HeaderValue;
use proxy_model::json::ObjectReader;
use proxy_model::{Problem, Problems, pointer_to};
use proxy_runtime::ErrorPages;

/// The place of the pages.
pub(crate) const ERROR_PAGES: &str = "/Server/ErrorPages";

/// The maximum size of a page, in bytes: clients that read slowly keep it in memory.
const MOST_BYTES: u64 = 64 * 1024;

const TEXT: &str = "text/plain; charset=utf-8";

/// Media types by the end of a file's name.
const BY_NAME: [(&str, &str); 4] = [
    ("html", "text/html; charset=utf-8"),
    ("htm", "text/html; charset=utf-8"),
    ("json", "application/json"),
    ("txt", TEXT),
];

/// The pages of errors, by name.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct ErrorPageSettings(Vec<Page>);

#[derive(Clone, Debug, PartialEq)]
struct Page {
    name: String,
    statuses: Vec<RangeInclusive<u16>>,
    content_type: HeaderValue,
    body: PageBody,
}

#[derive(Clone, Debug, PartialEq)]
enum PageBody {
    Written(String),
    /// The file may change while the program runs.
    File(PathBuf),
}

/// Reads `ErrorPages` of the section `Server`.
pub(super) fn read(server: &mut ObjectReader<'_, '_>, negotiates: bool) -> ErrorPageSettings {
    let pages = server.entries("ErrorPages", |name, node, pointer, problems| {
        ObjectReader::read(node, pointer, problems, |page| read_page(name, page)).flatten()
    });
    let mut pages = pages.unwrap_or_default();
    let pages: Vec<Page> = pages.drain(..).map(|(_, page)| page).collect();
    report_rivals(&pages, negotiates, server);
    ErrorPageSettings(pages)
}

fn read_page(name: &str, page: &mut ObjectReader<'_, '_>) -> Option<Page> {
    let statuses = read_statuses(page);
    let body = match (page.text("Body"), page.text("File")) {
        (Some(_), Some(_)) => {
            let pointer = page.pointer_to("File");
            let message = "there is `Body`, too, and only one of them can count";
            page.problems()
                .push(Problem::error(pointer, "conflicting_settings", message));
            None
        }
        (Some(body), None) if body.len() as u64 > MOST_BYTES => {
            let pointer = page.pointer_to("Body");
            let message = format!("a page has at most {MOST_BYTES} bytes");
            page.problems()
                .push(Problem::error(pointer, "out_of_range", message));
            None
        }
        (Some(body), None) => Some(PageBody::Written(body)),
        (None, Some(file)) if !file.is_empty() => Some(PageBody::File(file.into())),
        (None, _) => {
            let pointer = page.pointer().to_owned();
            let message = "the page has neither a `File` nor a `Body`";
            page.problems().push(
                Problem::error(pointer, "missing_key", message)
                    .with_suggestion("write `\"File\": \"errors/5xx.html\"`"),
            );
            None
        }
    };
    let content_type = read_content_type(page, body.as_ref());
    Some(Page {
        name: name.to_owned(),
        statuses: statuses?,
        content_type: content_type?,
        body: body?,
    })
}

fn read_statuses(page: &mut ObjectReader<'_, '_>) -> Option<Vec<RangeInclusive<u16>>> {
    const SUGGESTION: &str = "write `[\"404\"]` or `[\"5xx\"]`";
    let statuses = page.texts("Statuses").unwrap_or_default();
    if statuses.is_empty() {
        let pointer = page.pointer().to_owned();
        let problem = Problem::error(pointer, "missing_key", "the page has no `Statuses`");
        page.problems().push(problem.with_suggestion(SUGGESTION));
        return None;
    }
    let known = statuses.iter().map(|text| {
        let class = match text.to_ascii_lowercase().as_str() {
            "4xx" => Some(400..=499),
            "5xx" => Some(500..=599),
            _ => None,
        };
        let exact = || {
            let status = text.parse().ok()?;
            (400..=599_u16).contains(&status).then_some(status..=status)
        };
        class.or_else(exact).ok_or(text)
    });
    let known: Result<Vec<_>, &String> = known.collect();
    match known {
        Ok(known) => Some(known),
        Err(text) => {
            let pointer = page.pointer_to("Statuses");
            let message =
                format!("`{text}` is neither a status from 400 to 599 nor `4xx` or `5xx`");
            let problem = Problem::error(pointer, "invalid_status", message);
            page.problems().push(problem.with_suggestion(SUGGESTION));
            None
        }
    }
}

fn read_content_type(
    page: &mut ObjectReader<'_, '_>,
    body: Option<&PageBody>,
) -> Option<HeaderValue> {
    let Some(written) = page.text("ContentType") else {
        let by_name = match body? {
            PageBody::Written(_) => Some(TEXT),
            PageBody::File(path) => by_name(path),
        };
        if by_name.is_none() {
            let pointer = page.pointer().to_owned();
            let message = "the page has no `ContentType`, and the name of its file tells none";
            let problem = Problem::error(pointer, "missing_key", message);
            page.problems()
                .push(problem.with_suggestion("write `\"ContentType\": \"text/html\"`"));
        }
        return by_name.map(HeaderValue::from_static);
    };
    let is_type = written.contains('/') && written.is_ascii();
    let value = HeaderValue::from_str(&written).ok().filter(|_| is_type);
    if value.is_none() {
        let pointer = page.pointer_to("ContentType");
        let message = format!("`{written}` is no media type");
        let problem = Problem::error(pointer, "invalid_content_type", message);
        page.problems()
            .push(problem.with_suggestion("write `text/html; charset=utf-8`"));
    }
    value
}

fn by_name(path: &Path) -> Option<&'static str> {
    let extension = path.extension()?.to_str()?;
    let mut all = BY_NAME.into_iter();
    let (_, content_type) = all.find(|(ending, _)| ending.eq_ignore_ascii_case(extension))?;
    Some(content_type)
}

/// Reports pages that never count, since an earlier one is for the same statuses.
fn report_rivals(pages: &[Page], negotiates: bool, server: &mut ObjectReader<'_, '_>) {
    for (index, page) in pages.iter().enumerate() {
        let rival = pages[..index].iter().find(|earlier| {
            let mut statuses = page.statuses.iter();
            statuses.any(|status| earlier.statuses.contains(status))
                && (!negotiates || form(&page.content_type) == form(&earlier.content_type))
        });
        let Some(rival) = rival else { continue };
        let pointer = pointer_to(&server.pointer_to("ErrorPages"), &page.name);
        let message = format!("the page `{}` is for the same statuses", rival.name);
        let problem = Problem::error(pointer, "conflicting_settings", message);
        server.problems().push(match negotiates {
            true => problem,
            false => problem.with_suggestion(
                "set `\"NegotiateErrors\": true` for one page of each media type, or remove one",
            ),
        });
    }
}

/// The forms among which clients choose: HTML, JSON, or any other type.
fn form(content_type: &HeaderValue) -> u8 {
    let text = content_type.to_str().unwrap_or_default();
    let media_type = text.split(';').next().unwrap_or_default().trim();
    let media_type = media_type.to_ascii_lowercase();
    match media_type.as_str() {
        "text/html" | "application/xhtml+xml" => 0,
        "application/json" => 1,
        other if other.ends_with("+json") => 1,
        _ => 2,
    }
}

impl ErrorPageSettings {
    /// Returns the pages as they are now.
    ///
    /// # Errors
    ///
    /// Files that cannot be used, each with its path and its key.
    pub(crate) fn load(&self) -> Result<ErrorPages, Problems> {
        let mut problems = Problems::new();
        let pages = self.read(|name, path| match contents(path) {
            Ok(body) => Some(body),
            Err(error) => {
                let message = format!("`{}` cannot be read: {error}", path.display());
                let pointer = pointer_to(ERROR_PAGES, name) + "/File";
                problems.push(Problem::error(pointer, "unusable_error_page", message));
                None
            }
        });
        match problems.is_empty() {
            true => Ok(pages),
            false => Err(problems),
        }
    }

    /// Returns the pages without the contents of files, for those who look for a page and not for its body.
    pub(crate) fn without_files(&self) -> ErrorPages {
        self.read(|_, _| Some(Vec::new()))
    }

    /// Returns the pages with contents of files from `read`, without those that have none.
    fn read(&self, mut read: impl FnMut(&str, &Path) -> Option<Vec<u8>>) -> ErrorPages {
        let mut pages = ErrorPages::default();
        for page in &self.0 {
            let body = match &page.body {
                PageBody::Written(text) => Some(text.clone().into_bytes()),
                PageBody::File(path) => read(&page.name, path),
            };
            let Some(body) = body else { continue };
            for statuses in &page.statuses {
                pages = pages
                    .with_page(statuses.clone(), page.content_type.clone(), body.clone())
                    .named(&*page.name);
            }
        }
        pages
    }
}

fn contents(path: &Path) -> io::Result<Vec<u8>> {
    // The program would wait for the writer of a pipe.
    if !std::fs::metadata(path)?.is_file() {
        return Err(io::Error::other("it is no file"));
    }
    let mut contents = Vec::new();
    let mut file = File::open(path)?.take(MOST_BYTES + 1);
    file.read_to_end(&mut contents)?;
    match contents.len() as u64 > MOST_BYTES {
        true => Err(io::Error::other(format!(
            "a page has at most {MOST_BYTES} bytes"
        ))),
        false => Ok(contents),
    }
}

#[cfg(test)]
mod tests {
    use proxy_model::json::{Layer, Layered};

    use super::*;
    use crate::settings::Settings;

    fn settings(server: &str) -> (ErrorPageSettings, Problems) {
        let layer = Layer::File {
            name: "file".to_owned(),
            text: format!(r#"{{ "Server": {server} }}"#),
        };
        let document = Layered::new(vec![layer]).unwrap();
        let mut problems = Problems::new();
        let settings = Settings::read(&document.node, &mut problems);
        (settings.server.error_pages, problems)
    }

    fn codes(problems: &Problems) -> Vec<(&str, &str)> {
        let problems = problems.iter();
        problems
            .map(|one| (one.pointer.as_str(), &*one.code))
            .collect()
    }

    #[test]
    fn pages_have_their_content_and_the_type_of_their_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("down.HTML");
        std::fs::write(&path, "<h1>Back soon</h1>").unwrap();
        let text = serde_json::json!({ "ErrorPages": {
            "down": { "Statuses": ["5xx", 429], "File": path },
            "gone": { "Statuses": ["404"], "Body": "not here" },
            "json": { "Statuses": ["403"], "Body": "{}", "ContentType": "application/json" },
        } });
        let (settings, problems) = settings(&text.to_string());
        assert!(problems.is_empty(), "{problems}");
        let [html, plain, json] =
            ["text/html; charset=utf-8", TEXT, "application/json"].map(HeaderValue::from_static);
        let expected = |text: &'static str| {
            ErrorPages::default()
                .with_page(500..=599, html.clone(), text)
                .named("down")
                .with_page(429..=429, html.clone(), text)
                .named("down")
                .with_page(404..=404, plain.clone(), "not here")
                .named("gone")
                .with_page(403..=403, json.clone(), "{}")
                .named("json")
        };
        assert_eq!(settings.load().unwrap(), expected("<h1>Back soon</h1>"));
        std::fs::write(&path, "later").unwrap();
        assert_eq!(settings.load().unwrap(), expected("later"));
        std::fs::write(&path, "x".repeat(64 * 1024 + 1)).unwrap();
        let problems = settings.load().unwrap_err();
        assert!(
            problems.to_string().contains("at most 65536 bytes"),
            "{problems}"
        );
        std::fs::remove_file(&path).unwrap();
        let problems = settings.load().unwrap_err();
        assert_eq!(
            codes(&problems),
            [("/Server/ErrorPages/down/File", "unusable_error_page")]
        );
        assert!(problems.to_string().contains("down.HTML"), "{problems}");
    }

    #[test]
    fn mistakes_in_pages_are_named() {
        let long = "x".repeat(64 * 1024 + 1);
        for (page, place, code) in [
            (r#"{ "Body": "" }"#, "", "missing_key"),
            (r#"{ "Statuses": [], "Body": "" }"#, "", "missing_key"),
            (r#"{ "Statuses": ["404"] }"#, "", "missing_key"),
            (
                r#"{ "Statuses": ["404"], "File": "page" }"#,
                "",
                "missing_key",
            ),
            (
                r#"{ "Statuses": ["200"], "Body": "" }"#,
                "/Statuses",
                "invalid_status",
            ),
            (
                r#"{ "Statuses": ["3xx"], "Body": "" }"#,
                "/Statuses",
                "invalid_status",
            ),
            (
                r#"{ "Statuses": ["404"], "Body": "", "File": "a.html" }"#,
                "/File",
                "conflicting_settings",
            ),
            (
                r#"{ "Statuses": ["404"], "Body": "", "ContentType": "html" }"#,
                "/ContentType",
                "invalid_content_type",
            ),
            (
                &*format!(r#"{{ "Statuses": ["404"], "Body": "{long}" }}"#),
                "/Body",
                "out_of_range",
            ),
            (
                r#"{ "Statuses": ["404"], "Body": "", "Type": "" }"#,
                "/Type",
                "unknown_key",
            ),
        ] {
            let text = format!(r#"{{ "ErrorPages": {{ "p": {page} }} }}"#);
            let (_, problems) = settings(&text);
            let place = format!("/Server/ErrorPages/p{place}");
            assert_eq!(codes(&problems), [(&*place, code)], "{page}");
        }
    }

    #[test]
    fn two_pages_for_a_status_need_clients_that_choose() {
        let pages = |negotiates: bool, second: &str| {
            format!(
                r#"{{ "NegotiateErrors": {negotiates}, "ErrorPages": {{
                "a": {{ "Statuses": ["5xx", "503"], "Body": "", "ContentType": "text/html" }},
                "b": {{ "Statuses": ["5xx"], "Body": "", "ContentType": "{second}" }} }} }}"#
            )
        };
        let rivals = [("/Server/ErrorPages/b", "conflicting_settings")];
        for (negotiates, second, expected) in [
            (false, "text/html", &rivals[..]),
            (false, "application/json", &rivals),
            (true, "Text/HTML; charset=utf-8", &rivals),
            (true, "application/problem+json", &[]),
            (true, "text/plain", &[]),
        ] {
            let (_, problems) = settings(&pages(negotiates, second));
            assert_eq!(codes(&problems), expected, "{negotiates} {second}");
        }
    }
}
