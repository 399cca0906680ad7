//! What happens to a packet between two hosts.
