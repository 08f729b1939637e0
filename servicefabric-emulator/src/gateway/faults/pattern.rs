/// Returns true if the text matches the pattern, in which `*` stands for any text, including none.
///
/// Takes time in the product of both lengths at worst: on a mismatch only the last star is tried again.
pub(super) fn matches(pattern: &str, text: &str) -> bool {
    let (pattern, text) = (pattern.as_bytes(), text.as_bytes());
    let (mut at, mut in_text) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while in_text < text.len() {
        if pattern.get(at) == Some(&b'*') {
            star = Some((at, in_text));
            at += 1;
        } else if pattern.get(at) == text.get(in_text) {
            at += 1;
            in_text += 1;
        } else if let Some((star_at, taken)) = star {
            // The last star takes one more byte, and the rest is compared again.
            star = Some((star_at, taken + 1));
            at = star_at + 1;
            in_text = taken + 1;
        } else {
            return false;
        }
    }
    pattern[at..].iter().all(|byte| *byte == b'*')
}
