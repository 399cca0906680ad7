//! Parameters, causes and addresses that are written.

use core::net::IpAddr;

use super::{padded, parameter};
use crate::sctp::chunk::SctpCause;

pub(super) fn write_parameter(kind: u16, value: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(&kind.to_be_bytes());
    out.extend_from_slice(&((4 + value.len()) as u16).to_be_bytes());
    out.extend_from_slice(value);
}

/// Brings what follows to a multiple of four bytes from `start`.
pub(super) fn pad(start: usize, out: &mut Vec<u8>) {
    out.resize(start + padded(out.len() - start), 0);
}

pub(super) fn write_causes(causes: &[SctpCause], out: &mut Vec<u8>) {
    let start = out.len();
    for cause in causes {
        pad(start, out);
        write_parameter(cause.code, &cause.details, out);
    }
}

/// Writes an address as a parameter.
pub(super) fn write_address(address: IpAddr, out: &mut Vec<u8>) {
    match address {
        IpAddr::V4(address) => write_parameter(parameter::IPV4, &address.octets(), out),
        IpAddr::V6(address) => write_parameter(parameter::IPV6, &address.octets(), out),
    }
}

/// Bytes of an address as a parameter.
pub(super) const fn address_size(address: IpAddr) -> usize {
    if address.is_ipv4() { 8 } else { 20 }
}
