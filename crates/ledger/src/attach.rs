//! What the command and the library say to each other when the library comes into a process that
//! runs already: the command calls [`ATTACH`] in a thread of the process with one
//! [`AttachRequest`], later [`LEAVE`] and [`FORGET`], and reads the answers in the request.

/// The function by which the library begins to record. It takes an [`AttachRequest`].
pub const ATTACH: &str = "lockstead_attach";
/// The function by which the library gives up what the C library would call it by.
pub const LEAVE: &str = "lockstead_leave";
/// The function by which the library gives the ledger's memory back.
pub const FORGET: &str = "lockstead_forget";

/// The function by which the library signs an address, on processors that have return addresses signed: it
/// takes two words, the address and where the frame ends of the function that returns to it, and puts the signed
/// address into the first.
pub const SIGN: &str = "lockstead_sign";

/// Why the library does not begin to record.
pub mod refusal {
    /// The C library is none of those that the library knows.
    pub const LIBC: u32 = 1;
    /// The descriptors of threads are not what they have always been.
    pub const DESCRIPTORS: u32 = 2;
    /// The kernel does not empty a page in forked children.
    pub const WIPE: u32 = 3;
    /// There is no key of thread-specific values that can be used without memory from the program's
    /// allocator.
    pub const KEY: u32 = 4;
    /// No ledger could be made, or it found no room.
    pub const LEDGER: u32 = 5;
}

/// The number of functions that the C library is given to call.
pub const CALLED_BACK: usize = 4;

/// What the command asks for, and what the library answers.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct AttachRequest {
    /// The address of the token, as in the settings of [`hello`](crate::hello).
    pub token: u64,
    /// The bytes of the token.
    pub token_length: u64,
    /// The address at which the first thread's stack begins, as the kernel has it.
    pub first_stack: u64,
    /// What the kernel calls the first thread.
    pub name: [u64; 2],
    /// The answer: one of [`refusal`], or zero.
    pub refused: u64,
    /// The answer: a descriptor of the ledger's file, which the command closes.
    pub file: u64,
    /// The answer: the address of the word that says whether calls are recorded; zero stops that.
    pub state: u64,
    /// The answer: the functions of the library that the C library may call.
    pub called_back: [u64; CALLED_BACK],
}

const _: () = assert!(size_of::<AttachRequest>() == 8 * (8 + CALLED_BACK));

impl AttachRequest {
    /// The bytes of a request.
    pub const BYTES: usize = size_of::<AttachRequest>();

    /// Returns the request as it lies in memory.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        for (place, word) in bytes.chunks_exact_mut(8).zip(self.words()) {
            place.copy_from_slice(&word.to_ne_bytes());
        }
        bytes
    }

    fn words(&self) -> impl Iterator<Item = u64> {
        let [first, second] = self.name;
        let asked = [self.token, self.token_length, self.first_stack, first, second];
        asked.into_iter().chain([self.refused, self.file, self.state]).chain(self.called_back)
    }

    /// Reads a request as it lies in memory.
    #[must_use]
    pub fn from_bytes(bytes: &[u8; Self::BYTES]) -> AttachRequest {
        let word =
            |at: usize| u64::from_ne_bytes(core::array::from_fn(|byte| bytes[at * 8 + byte]));
        AttachRequest {
            token: word(0),
            token_length: word(1),
            first_stack: word(2),
            name: [word(3), word(4)],
            refused: word(5),
            file: word(6),
            state: word(7),
            called_back: core::array::from_fn(|at| word(8 + at)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_read_as_it_was_written() {
        let request = AttachRequest {
            token: 1,
            token_length: 2,
            first_stack: 3,
            name: [4, 5],
            refused: 6,
            file: 7,
            state: 8,
            called_back: [9, 10, 11, 12],
        };
        let bytes = request.to_bytes();
        let back = AttachRequest::from_bytes(&bytes);
        assert_eq!(back.to_bytes(), bytes);
        assert_eq!((back.file, back.called_back), (7, [9, 10, 11, 12]));
    }
}
