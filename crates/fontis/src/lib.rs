//! Reliable transport over bad networks with digital fountain codes.
