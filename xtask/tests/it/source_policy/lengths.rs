//! The length of source files.

/// Maximum lines of any source file. Around 400, look for a second idea in it.
const FILE: usize = 600;

/// Maximum lines of a `lib.rs`: documentation, modules and re-exports.
const LIB: usize = 150;

/// The first words of a generated file.
const GENERATED: &str = "// This file is @generated";

/// Returns the complaint about the length of a file.
pub(crate) fn complaint(path: &str, text: &str) -> Option<String> {
    if !path.ends_with(".rs") {
        return None;
    }
    let limit = if path.ends_with("src/lib.rs") {
        LIB
    } else {
        FILE
    };
    // A generator splits by protobuf package, and its files are not read from top to bottom.
    if text.starts_with(GENERATED) {
        return None;
    }
    let lines = text.lines().count();
    (lines > limit).then(|| format!("{path} has {lines} lines; {limit} is the limit"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_line_too_many_is_too_many() {
        let lines = |count| "x\n".repeat(count);
        assert_eq!(complaint("a/src/router.rs", &lines(FILE)), None);
        assert_eq!(
            complaint("a/src/router.rs", &lines(FILE + 1)).as_deref(),
            Some("a/src/router.rs has 601 lines; 600 is the limit")
        );
        assert_eq!(complaint("a/src/lib.rs", &lines(LIB)), None);
        assert!(complaint("a/src/lib.rs", &lines(LIB + 1)).is_some());
        assert_eq!(complaint("a/schema.json", &lines(9000)), None);
        let generated = format!("{GENERATED} by prost-build.\n{}", lines(9000));
        assert_eq!(complaint("a/src/pb/v3.rs", &generated), None);
    }
}
