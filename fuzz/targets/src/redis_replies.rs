//! Replies of a Redis that counts for rate limits.

use proxy_policies::testing::{FuzzedReply, MOST_OF_A_REPLY, fuzz_redis_reply};

use crate::input::MAX_BYTES;

/// The longest line, with its end.
const LINE: usize = 4096;

/// Fuzzes what Redis sends.
///
/// * A reader in a few lines finds the same reply.
/// * A reply ends where it ends: what is behind it makes no difference, and less is a part of it.
/// * What is wrong stays wrong, whatever follows.
/// * No more than a few bytes are waited for.
/// * A decision is what three numbers say.
pub fn redis_replies(data: &[u8]) {
    let mut rest = &data[..data.len().min(MAX_BYTES)];
    loop {
        let read = fuzz_redis_reply(rest);
        let naive = naive(rest, true);
        match &read {
            FuzzedReply::Part => {
                assert_eq!(naive, Ok(None), "a part");
                assert!(rest.len() <= MOST_OF_A_REPLY, "{}", rest.len());
                return;
            }
            FuzzedReply::Invalid => {
                assert_eq!(naive, Err(()), "no reply");
                let more = [rest, b"\r\n:1\r\n"].concat();
                assert_eq!(fuzz_redis_reply(&more), FuzzedReply::Invalid);
                return;
            }
            FuzzedReply::Whole {
                length,
                shown,
                decision,
            } => {
                assert_eq!(naive, Ok(Some((shown.clone(), *length))));
                let whole = &rest[..*length];
                assert_eq!(fuzz_redis_reply(whole), read, "what is behind");
                for cut in [0, length / 2, length - 1] {
                    assert_eq!(fuzz_redis_reply(&whole[..cut]), FuzzedReply::Part, "{cut}");
                }
                assert_eq!(*decision, decision_of(shown));
                rest = &rest[*length..];
            }
        }
    }
}

/// The reply that the bytes begin with, as it is shown, and its length.
fn naive(bytes: &[u8], may_be_list: bool) -> Result<Option<(String, usize)>, ()> {
    let end = (1..bytes.len().min(LINE)).find(|at| bytes[at - 1..=*at] == *b"\r\n");
    let Some(end) = end else {
        return if bytes.len() < LINE {
            Ok(None)
        } else {
            Err(())
        };
    };
    let (line, length) = (&bytes[..end - 1], end + 1);
    let text = String::from_utf8_lossy(line.get(1..).unwrap_or_default());
    let number = text.parse::<i64>();
    match line.first().copied().map(char::from) {
        Some('+') => Ok(Some((format!("text {}", line[1..].escape_ascii()), length))),
        Some('-') => Ok(Some((format!("error {text:?}"), length))),
        Some(':') => Ok(Some((format!("number {}", number.map_err(drop)?), length))),
        Some('$' | '*') if number == Ok(-1) && (line[0] == b'$' || may_be_list) => {
            Ok(Some(("nothing".to_owned(), length)))
        }
        Some('$') if number.clone().is_ok_and(|size| (0..=1024).contains(&size)) => {
            let end = length + number.map_err(drop)? as usize;
            match bytes.get(end..end + 2) {
                None => Ok(None),
                Some(b"\r\n") => {
                    let text = bytes[length..end].escape_ascii();
                    Ok(Some((format!("text {text}"), end + 2)))
                }
                Some(_) => Err(()),
            }
        }
        Some('*') if may_be_list && number.clone().is_ok_and(|size| (0..=8).contains(&size)) => {
            let (mut elements, mut at) = (Vec::new(), length);
            for _ in 0..number.map_err(drop)? {
                let Some((element, length)) = naive(&bytes[at..], false)? else {
                    return Ok(None);
                };
                elements.push(element);
                at += length;
            }
            Ok(Some((format!("[{}]", elements.join(", ")), at)))
        }
        _ => Err(()),
    }
}

/// The decision of a reply as it is shown: three numbers.
fn decision_of(shown: &str) -> Option<(bool, u32, u128)> {
    let inside = shown.strip_prefix('[')?.strip_suffix(']')?;
    let numbers: Option<Vec<i64>> = inside
        .split(", ")
        .map(|element| element.strip_prefix("number ")?.parse().ok())
        .collect();
    let [may_pass, left, reset] = numbers?[..] else {
        return None;
    };
    let left = u32::try_from(left).unwrap_or(0);
    Some((may_pass == 1, left, u128::try_from(reset).unwrap_or(0)))
}
