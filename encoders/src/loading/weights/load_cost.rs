//! What reading a pickle would cost, found without reading it into objects.
//!
//! A pickle may name one object many times. The reader copies it each time, so a file of a hundred bytes can ask for all
//! memory. It may also nest objects so deep that freeing them overflows the stack, which ends the process.

use std::collections::HashMap;

use crate::Cause;

/// Greatest depth of objects in each other. A module tree of 64 modules has four objects a module.
const DEEPEST: u32 = 1_000;
/// Most copied objects for each byte of the pickle, and for any pickle.
const COPIES_A_BYTE: u64 = 16;
const COPIES: u64 = 1 << 16;

/// What is known of an object on the stack.
#[derive(Debug, Clone, Copy, Default)]
struct Known {
    /// Objects in it, itself included.
    objects: u64,
    depth: u32,
    is_mark: bool,
}

impl Known {
    const PLAIN: Known = Known { objects: 1, depth: 1, is_mark: false };
    const MARK: Known = Known { objects: 1, depth: 1, is_mark: true };

    /// `self` with `inner` inside.
    fn around(self, inner: Known) -> Known {
        Known {
            objects: self.objects.saturating_add(inner.objects),
            depth: self.depth.max(inner.depth.saturating_add(1)),
            is_mark: self.is_mark,
        }
    }
}

/// Follows a pickle's instructions without their objects.
struct Follower<'a> {
    rest: &'a [u8],
    stack: Vec<Known>,
    memo: HashMap<u32, Known>,
    copies: u64,
    copies_most: u64,
}

/// Refuses a pickle whose objects would be copied too often, lie too deep in each other, or have texts that are longer than
/// the pickle. Accepts a pickle that breaks off or has unknown instructions: the reader refuses it at the same place.
///
/// # Errors
/// The fault, in plain words.
pub(super) fn check(pickle: &[u8]) -> Result<(), Cause> {
    let copies_most = (pickle.len() as u64).saturating_mul(COPIES_A_BYTE).saturating_add(COPIES);
    let mut follower =
        Follower { rest: pickle, stack: Vec::new(), memo: HashMap::new(), copies: 0, copies_most };
    while follower.step()?.is_some() {}
    Ok(())
}

impl Follower<'_> {
    /// Follows one instruction; `None` at the end, or where the reader fails.
    fn step(&mut self) -> Result<Option<()>, Cause> {
        let Some(code) = self.number(1) else { return Ok(None) };
        let followed = match code as u8 {
            0x80 => self.number(1).map(|_| ()),
            b'c' => self.line().and_then(|()| self.line()).map(|()| self.push(Known::PLAIN)),
            b'K' => self.plain(1),
            b'M' => self.plain(2),
            b'J' => self.plain(4),
            b'G' => self.plain(8),
            b'X' => return self.text(4),
            0x8a => return self.text(1),
            0x88 | 0x89 | b'N' | b')' | b']' | b'}' => self.plain(0),
            b'(' => {
                self.push(Known::MARK);
                Some(())
            }
            b'Q' | 0x85 => self.wrap(1),
            0x86 | b'R' | 0x81 | b'b' => self.wrap(2),
            0x87 => self.wrap(3),
            b't' | b'd' => self.marked().map(|all| self.push(all)),
            b'a' => self.stack.pop().and_then(|inner| self.put_in(inner)),
            b's' => self.stack.pop().zip(self.stack.pop()).and_then(|(a, b)| self.put_in(a.around(b))),
            b'e' | b'u' => self.marked().and_then(|inner| self.put_in(inner)),
            b'q' => return self.put(1),
            b'r' => return self.put(4),
            b'h' => return self.get(1),
            b'j' => return self.get(4),
            _ => None,
        };
        if self.stack.last().is_some_and(|last| last.depth > DEEPEST) {
            return Err(format!("its objects lie over {DEEPEST} deep in each other").into());
        }
        Ok(followed)
    }

    /// A little-endian number of `bytes` bytes, at most 8.
    fn number(&mut self, bytes: usize) -> Option<u64> {
        let (taken, rest) = self.rest.split_at_checked(bytes)?;
        self.rest = rest;
        Some(taken.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte)))
    }

    fn line(&mut self) -> Option<()> {
        let end = self.rest.iter().position(|byte| *byte == b'\n')?;
        self.rest = &self.rest[end + 1..];
        Some(())
    }

    fn push(&mut self, known: Known) {
        self.stack.push(known);
    }

    /// An object of an argument with `bytes` bytes.
    fn plain(&mut self, bytes: usize) -> Option<()> {
        self.number(bytes)?;
        self.push(Known::PLAIN);
        Some(())
    }

    /// A text or a long number, whose length has `digits` bytes.
    fn text(&mut self, digits: usize) -> Result<Option<()>, Cause> {
        let Some(length) = self.number(digits) else { return Ok(None) };
        let Some(rest) = usize::try_from(length).ok().and_then(|length| self.rest.get(length..)) else {
            return Err("one of its texts is said to be longer than the file".into());
        };
        self.rest = rest;
        self.push(Known::PLAIN);
        // A text is copied whole, so it counts as many objects.
        if let Some(last) = self.stack.last_mut() {
            last.objects += length / 64;
        }
        Ok(Some(()))
    }

    /// One object around the last `count`.
    fn wrap(&mut self, count: usize) -> Option<()> {
        let from = self.stack.len().checked_sub(count)?;
        let outer = self.stack.drain(from..).fold(Known::PLAIN, Known::around);
        self.push(outer);
        Some(())
    }

    /// Takes the objects after the last mark, as one around them.
    fn marked(&mut self) -> Option<Known> {
        let mark = self.stack.iter().rposition(|known| known.is_mark)?;
        let all = self.stack.drain(mark + 1..).fold(Known::PLAIN, Known::around);
        self.stack.pop();
        Some(all)
    }

    fn put_in(&mut self, inner: Known) -> Option<()> {
        let last = self.stack.last_mut()?;
        *last = last.around(inner);
        Some(())
    }

    fn put(&mut self, digits: usize) -> Result<Option<()>, Cause> {
        let Some((name, last)) = self.number(digits).zip(self.stack.last().copied()) else { return Ok(None) };
        self.memo.insert(name as u32, last);
        self.copied(last)
    }

    fn get(&mut self, digits: usize) -> Result<Option<()>, Cause> {
        let Some(name) = self.number(digits) else { return Ok(None) };
        let Some(known) = self.memo.get(&(name as u32)).copied() else { return Ok(None) };
        self.push(known);
        self.copied(known)
    }

    fn copied(&mut self, known: Known) -> Result<Option<()>, Cause> {
        self.copies = self.copies.saturating_add(known.objects);
        if self.copies > self.copies_most {
            return Err("its objects name each other too often".into());
        }
        Ok(Some(()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_refused(pickle: &[u8], expected: Option<&str>) {
        let refused = check(pickle).err().map(|why| why.to_string());
        assert_eq!(refused.is_some(), expected.is_some(), "{refused:?}");
        assert!(refused.unwrap_or_default().contains(expected.unwrap_or_default()));
    }

    #[test]
    fn a_small_pickle_may_not_ask_for_much() {
        check_refused(b"", None);
        check_refused(b"\x80\x02}q\x00X\x01\x00\x00\x00aK\x01s.", None);
        // A list that holds itself twice, 40 times over.
        let doubling: Vec<u8> = (0..40).flat_map(|_| *b"q\x00h\x00\x86").collect();
        check_refused(&[&b"N"[..], &doubling, b"."].concat(), Some("name each other too often"));
        check_refused(&[&b"N"[..], &[0x85; 1_000_000], b"."].concat(), Some("deep in each other"));
        check_refused(&[&b"]"[..], &b"]".repeat(5_000), &b"a".repeat(5_000)].concat(), Some("deep"));
        check_refused(b"X\xff\xff\xff\xff.", Some("longer than the file"));
        // What follows the two lines of a class's name is followed too.
        check_refused(b"cmodule\nClass\nX\xff\xff\xff\xff.", Some("longer than the file"));
        check_refused(b"\x86\x87tdaseu\xff", None);
    }

    #[test]
    fn many_tensors_are_no_fault() {
        let tensor = b"(cm\nC\nq\x01X\x03\x00\x00\x00key(K\x01K\x02\x86q\x02K\x03ttq\x03";
        check_refused(
            &[&b"}("[..], &b"X\x01\x00\x00\x00n".repeat(2), &tensor.repeat(20_000), b"u."].concat(),
            None,
        );
    }
}
