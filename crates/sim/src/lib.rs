//! The laboratory in virtual time.
