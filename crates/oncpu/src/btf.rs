//! Finds two facts about this kernel in the description of its types (BTF).
//!
//! # Role
//! Where a thread's number lies in `task_struct`, and the number of the type of the
//! tracepoint `sched_switch`. The format is the kernel's ABI; what is not understood
//! is an answer (`None`), never a panic.

/// The facts that [`find`] looks for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct BtfFacts {
    /// The offset of `pid` in `struct task_struct`, in bytes.
    pub(crate) number_at: u32,
    /// The number of the type `btf_trace_sched_switch`.
    pub(crate) tracepoint: u32,
}

const STRUCT: u32 = 4;
const UNION: u32 = 5;
const TYPEDEF: u32 = 8;

/// A description of types, cut to its parts.
struct Types<'a> {
    bytes: &'a [u8],
    names: &'a [u8],
    /// The places in `bytes` where the types begin; the first is number 1.
    starts: Vec<u32>,
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    let bytes = bytes.get(at..at.checked_add(4)?)?;
    Some(u32::from_ne_bytes(bytes.try_into().ok()?))
}

/// Returns the bytes behind the three words that each type has.
fn rest_of(kind: u32, count: usize) -> Option<usize> {
    match kind {
        // Integer, variable, declaration tag.
        1 | 14 | 17 => Some(4),
        // Array.
        3 => Some(12),
        // Struct, union, section; enumeration of 64 bits.
        4 | 5 | 15 | 19 => Some(count * 12),
        // Enumeration; function prototype.
        6 | 13 => Some(count * 8),
        // Pointer, forward, typedef, qualifiers, function, float, type tag.
        2 | 7..=12 | 16 | 18 => Some(0),
        _ => None,
    }
}

impl<'a> Types<'a> {
    fn parse(data: &'a [u8]) -> Option<Self> {
        const MAGIC: u16 = 0xeb9f;
        let magic = u16::from_ne_bytes(data.get(..2)?.try_into().ok()?);
        if magic != MAGIC || data.get(2) != Some(&1) {
            return None;
        }
        let header = word(data, 4)? as usize;
        let part = |at: usize| {
            let start = header.checked_add(word(data, at)? as usize)?;
            data.get(start..start.checked_add(word(data, at + 4)? as usize)?)
        };
        let (bytes, names) = (part(8)?, part(16)?);
        let mut starts = Vec::new();
        let mut at = 0;
        while at < bytes.len() {
            starts.push(at as u32);
            let info = word(bytes, at + 4)?;
            at += 12 + rest_of(info >> 24 & 0x1f, (info & 0xffff) as usize)?;
        }
        (at == bytes.len()).then_some(Types { bytes, names, starts })
    }

    fn is_named(&self, offset: u32, name: &[u8]) -> bool {
        let found = self.names.get(offset as usize..).unwrap_or_default();
        found.strip_prefix(name).is_some_and(|rest| rest.first() == Some(&0))
    }

    /// Returns the first of these kinds with this name.
    fn by_name(&self, kind: u32, name: &[u8]) -> Option<u32> {
        let found = self.starts.iter().position(|&start| {
            let info = word(self.bytes, start as usize + 4).unwrap_or(0);
            info >> 24 & 0x1f == kind
                && word(self.bytes, start as usize).is_some_and(|at| self.is_named(at, name))
        });
        Some(found? as u32 + 1)
    }

    /// Returns the bits from the start of the struct or union `id` to its member `name`, also where
    /// that stands in one without a name.
    fn member(&self, id: u32, name: &[u8], depth: u32) -> Option<u32> {
        let start = *self.starts.get(id.checked_sub(1)? as usize)? as usize;
        let info = word(self.bytes, start + 4)?;
        if !matches!(info >> 24 & 0x1f, STRUCT | UNION) || depth == 0 {
            return None;
        }
        // With fields of single bits the upper byte is how many.
        let mask = if info >> 31 != 0 { 0xff_ffff } else { u32::MAX };
        (0..(info & 0xffff) as usize).find_map(|member| {
            let at = start + 12 + member * 12;
            let (named, inner) = (word(self.bytes, at)?, word(self.bytes, at + 4)?);
            let offset = word(self.bytes, at + 8)? & mask;
            if self.is_named(named, name) {
                return Some(offset);
            }
            let within =
                self.is_named(named, b"").then(|| self.member(inner, name, depth - 1))??;
            offset.checked_add(within)
        })
    }
}

/// Finds the facts in `data`, which is what `/sys/kernel/btf/vmlinux` says.
pub(crate) fn find(data: &[u8]) -> Option<BtfFacts> {
    let types = Types::parse(data)?;
    let task = types.by_name(STRUCT, b"task_struct")?;
    let bits = types.member(task, b"pid", 4)?;
    Some(BtfFacts {
        number_at: bits / 8,
        tracepoint: types.by_name(TYPEDEF, b"btf_trace_sched_switch")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the types `struct task_struct { int state; struct { int on; int pid; }; }` and the
    /// typedef.
    fn small() -> Vec<u8> {
        let names = b"\0int\0task_struct\0state\0pid\0btf_trace_sched_switch\0on\0";
        let at = |name: &str| {
            let name = [b"\0", name.as_bytes(), b"\0"].concat();
            names.windows(name.len()).position(|w| w == name).expect("a name") as u32 + 1
        };
        let types = [
            // 1: int.
            vec![at("int"), 1 << 24, 4, 32],
            // 2: the struct without a name.
            vec![0, STRUCT << 24 | 2, 8, at("on"), 1, 0, at("pid"), 1, 32],
            // 3: the typedef; 4: the task.
            vec![at("btf_trace_sched_switch"), TYPEDEF << 24, 1],
            vec![at("task_struct"), 1 << 31 | STRUCT << 24 | 2, 12, at("state"), 1, 0, 0, 2, 32],
        ]
        .concat();
        let length = types.len() as u32 * 4;
        let mut data = 0xeb9f_u16.to_ne_bytes().to_vec();
        data.extend([1, 0]);
        for number in [24, 0, length, length, names.len() as u32] {
            data.extend(u32::to_ne_bytes(number));
        }
        data.extend(types.iter().flat_map(|word| word.to_ne_bytes()));
        data.extend(names);
        data
    }

    #[test]
    fn a_member_is_found_also_in_a_struct_without_a_name() {
        assert_eq!(find(&small()), Some(BtfFacts { number_at: 8, tracepoint: 3 }));
    }

    #[test]
    fn what_is_cut_or_changed_is_refused_or_answered_but_never_a_panic() {
        let whole = small();
        for length in 0..whole.len() {
            assert_eq!(find(&whole[..length]), None, "cut to {length}");
        }
        for at in 0..whole.len() {
            for value in [0, 0x7f, 0xff, whole[at].wrapping_add(1)] {
                let mut changed = whole.clone();
                changed[at] = value;
                let _ = find(&changed);
            }
        }
        assert_eq!(find(b""), None);
    }

    #[test]
    fn the_running_kernel_says_where_threads_are_numbered() {
        let Ok(data) = std::fs::read("/sys/kernel/btf/vmlinux") else {
            println!("skipped: this kernel has no description of its types");
            return;
        };
        let facts = find(&data).expect("the kernel's own description is understood");
        assert!((4..65536).contains(&facts.number_at), "{facts:?}");
        assert!(facts.tracepoint > 0);
    }
}
