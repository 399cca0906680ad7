//! The system call `bpf`: all that is `unsafe` of loading is in this file.
#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

/// The arguments of a call (`union bpf_attr`): numbers, and addresses of memory that is lent.
#[derive(Debug)]
pub(super) struct Arguments<'a> {
    bytes: [u8; LENGTH],
    lent: core::marker::PhantomData<&'a mut [u8]>,
}

/// Enough for the members that are used; the kernel takes the rest as zero.
const LENGTH: usize = 144;

/// What is asked (`enum bpf_cmd`).
#[derive(Clone, Copy, Debug)]
#[repr(i32)]
pub(super) enum Request {
    CreateMap = 0,
    Lookup = 1,
    Update = 2,
    Delete = 3,
    LoadProgram = 5,
    NextMap = 12,
    MapById = 14,
    Info = 15,
    LoadTypes = 18,
    CreateLink = 28,
}

impl<'a> Arguments<'a> {
    pub(super) const fn new() -> Self {
        Self { bytes: [0; LENGTH], lent: core::marker::PhantomData }
    }

    fn put(mut self, at: usize, bytes: &[u8]) -> Self {
        self.bytes[at..at + bytes.len()].copy_from_slice(bytes);
        self
    }

    /// With a number at a place.
    pub(super) fn number(self, at: usize, value: u32) -> Self {
        self.put(at, &value.to_ne_bytes())
    }

    /// With a descriptor at a place.
    pub(super) fn descriptor(self, at: usize, fd: BorrowedFd<'a>) -> Self {
        self.put(at, &fd.as_raw_fd().to_ne_bytes())
    }

    /// With a name of up to 15 bytes at a place. What the kernel does not allow in names becomes an
    /// underscore.
    pub(super) fn name(mut self, at: usize, name: &str) -> Self {
        for (to, from) in self.bytes[at..at + 15].iter_mut().zip(name.bytes()) {
            *to = if from.is_ascii_alphanumeric() || from == b'.' { from } else { b'_' };
        }
        self
    }

    /// With the address of bytes that the kernel reads.
    pub(super) fn input(self, at: usize, bytes: &'a [u8]) -> Self {
        self.put(at, &(bytes.as_ptr() as u64).to_ne_bytes())
    }

    /// With the address of bytes that the kernel writes.
    pub(super) fn output(self, at: usize, bytes: &'a mut [u8]) -> Self {
        self.put(at, &(bytes.as_mut_ptr() as u64).to_ne_bytes())
    }

    /// The number at a place after the call.
    fn answer(&self, at: usize) -> u32 {
        let mut bytes = [0; 4];
        bytes.copy_from_slice(&self.bytes[at..at + 4]);
        u32::from_ne_bytes(bytes)
    }

    fn call(&mut self, request: Request) -> io::Result<i64> {
        // SAFETY: the kernel reads and writes LENGTH bytes of the arguments, and the memory whose
        // addresses stand in them. That is lent for the life of `self`, and as long as the
        // arguments beside each address state.
        let result = unsafe {
            libc::syscall(libc::SYS_bpf, request as i32, self.bytes.as_mut_ptr(), LENGTH)
        };
        if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
    }

    /// A call that answers nothing but whether it succeeded.
    pub(super) fn run(mut self, request: Request) -> io::Result<()> {
        self.call(request).map(drop)
    }

    /// A call that answers a descriptor.
    pub(super) fn open(mut self, request: Request) -> io::Result<OwnedFd> {
        let fd = self.call(request)?;
        // SAFETY: the descriptor is new and nobody else's.
        Ok(unsafe { OwnedFd::from_raw_fd(fd as i32) })
    }

    /// A call that answers a number at a place of its arguments.
    pub(super) fn ask(mut self, request: Request, at: usize) -> io::Result<u32> {
        self.call(request)?;
        Ok(self.answer(at))
    }
}
