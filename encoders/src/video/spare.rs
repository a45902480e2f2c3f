//! Memory of pictures that nobody holds any more, for the next ones.
//!
//! Clearing new memory, and giving it back to the system, takes longer than filling a small picture.

use std::collections::VecDeque;
use std::sync::Arc;

/// Most buffers kept: readers hold a few pictures at a time.
const MOST_KEPT: usize = 4;
/// Most bytes of a kept buffer: for larger pictures other work takes much longer.
const MOST_BYTES: usize = 1 << 20;

/// The newest buffers that were handed out.
#[derive(Debug, Default)]
pub(super) struct Spare {
    given: VecDeque<Arc<[u8]>>,
}

impl Spare {
    /// A buffer of `size` bytes with any contents, which `fill` overwrites.
    pub(super) fn filled<E>(
        &mut self,
        size: usize,
        fill: impl FnOnce(&mut [u8]) -> Result<(), E>,
    ) -> Result<Arc<[u8]>, E> {
        let mut buffer = self.take(size).unwrap_or_else(|| std::iter::repeat_n(0, size).collect());
        if let Some(bytes) = Arc::get_mut(&mut buffer) {
            fill(bytes)?;
        }
        self.keep(&buffer);
        Ok(buffer)
    }

    fn take(&mut self, size: usize) -> Option<Arc<[u8]>> {
        let is_free = |it: &mut Arc<[u8]>| it.len() == size && Arc::get_mut(it).is_some();
        let at = self.given.iter_mut().position(is_free)?;
        self.given.remove(at)
    }

    fn keep(&mut self, buffer: &Arc<[u8]>) {
        if buffer.len() > MOST_BYTES {
            return;
        }
        if self.given.len() == MOST_KEPT {
            self.given.pop_front();
        }
        self.given.push_back(Arc::clone(buffer));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(spare: &mut Spare, size: usize, value: u8) -> Arc<[u8]> {
        let fill = |bytes: &mut [u8]| {
            bytes.fill(value);
            Ok::<_, ()>(())
        };
        spare.filled(size, fill).unwrap()
    }

    /// Whether the second of two buffers is made in the memory of the first one.
    #[track_caller]
    fn check(sizes: [usize; 2], is_held: bool, expected: bool) {
        let mut spare = Spare::default();
        let first = of(&mut spare, sizes[0], 1);
        let place = first.as_ptr();
        let held = is_held.then(|| Arc::clone(&first));
        drop(first);
        let second = of(&mut spare, sizes[1], 2);
        assert_eq!(spare.given.iter().any(|it| it.as_ptr() == place && it[0] == 2), expected);
        assert_eq!(second[..], vec![2; sizes[1]]);
        assert!(held.is_none_or(|it| it[..] == vec![1; sizes[0]]));
    }

    #[test]
    fn a_buffer_that_nobody_holds_is_used_again() {
        check([300, 300], false, true);
        check([300, 300], true, false);
        check([300, 301], false, false);
        check([MOST_BYTES + 1, MOST_BYTES + 1], false, false);
    }

    #[test]
    fn few_buffers_are_kept() {
        let mut spare = Spare::default();
        let held: Vec<Arc<[u8]>> = (0..20).map(|value| of(&mut spare, 10, value)).collect();
        assert_eq!(spare.given.len(), MOST_KEPT);
        assert!(held.iter().zip(0..).all(|(it, value)| it[..] == [value; 10]));
    }

    #[test]
    fn a_buffer_that_could_not_be_filled_is_lost() {
        let mut spare = Spare::default();
        assert_eq!(spare.filled(10, |_| Err("broken")), Err("broken"));
        assert!(spare.given.is_empty());
    }
}
