//! Erasure codes, symbols in and symbols out.
