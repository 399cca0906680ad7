//! Chunks and parameters by which addresses change (RFC 5061 section 4).

use core::net::IpAddr;

use smallvec::SmallVec;

use super::parts::{address_size, pad, write_address, write_causes, write_parameter};
use super::reader::{Read, Reader};
use super::{SctpWireError, padded, parameter};
use crate::sctp::chunk::{
    AddressAnswer, AddressChange, AddressParameter, AsconfAckChunk, AsconfChunk, AuthChunk,
    SctpCause,
};
use crate::sctp::offer::{AuthOffer, AuthParameters};

/// Parameters of one chunk at most.
const MOST: usize = 32;

impl Reader {
    pub(super) fn auth(mut self) -> Read<AuthChunk> {
        let key = self.u16("AUTH")?;
        let hash = self.u16("AUTH")?;
        Ok(AuthChunk { key, hash, code: self.bytes, covered: bytes::Bytes::new() })
    }

    pub(super) fn asconf(&mut self) -> Read<AsconfChunk> {
        const OF: &str = "ASCONF";
        let number = self.u32(OF)?;
        let lookup = self.address()?;
        let mut parameters = SmallVec::new();
        while !self.bytes.is_empty() {
            if parameters.len() == MOST {
                return Err(SctpWireError::Value("number of parameters of ASCONF"));
            }
            let kind = self.u16(OF)?;
            let len = self.u16(OF)?;
            let mut value = self.framed(len, OF)?;
            let make = match kind {
                parameter::ADD_ADDRESS => AddressChange::Add,
                parameter::REMOVE_ADDRESS => AddressChange::Remove,
                parameter::PRIMARY => AddressChange::Primary,
                // It must not be here, and is ignored if it is (section 4.2.6).
                parameter::ADAPTATION => continue,
                _ => {
                    parameters.push(AddressParameter::Unknown { kind, value: value.bytes });
                    continue;
                }
            };
            let id = value.u32(OF)?;
            let change = make(value.address()?);
            value.end(OF)?;
            parameters.push(AddressParameter::Change { id, change });
        }
        Ok(AsconfChunk { number, lookup, parameters })
    }

    pub(super) fn asconf_ack(&mut self) -> Read<AsconfAckChunk> {
        const OF: &str = "ASCONF-ACK";
        let number = self.u32(OF)?;
        let mut answers = SmallVec::new();
        while !self.bytes.is_empty() {
            let kind = self.u16(OF)?;
            let len = self.u16(OF)?;
            let mut value = self.framed(len, OF)?;
            if !matches!(kind, parameter::SUCCESS | parameter::FAILURE) {
                continue;
            }
            if answers.len() == MOST {
                return Err(SctpWireError::Value("number of parameters of ASCONF-ACK"));
            }
            let id = value.u32(OF)?;
            let causes = value.causes()?;
            if causes.is_empty() != (kind == parameter::SUCCESS) {
                return Err(SctpWireError::Value("answer without its causes"));
            }
            answers.push(AddressAnswer { id, causes });
        }
        Ok(AsconfAckChunk { number, answers })
    }

    /// A whole parameter that is an address.
    fn address(&mut self) -> Read<IpAddr> {
        const OF: &str = "an address";
        let kind = self.u16(OF)?;
        let len = self.u16(OF)?;
        match (kind, len) {
            (parameter::IPV4, 8) => Ok(IpAddr::from(self.array::<4>(OF)?)),
            (parameter::IPV6, 20) => Ok(IpAddr::from(self.array::<16>(OF)?)),
            _ => Err(SctpWireError::Value("parameter in place of an address")),
        }
    }
}

/// What an INIT says of authentication, parameter by parameter.
#[derive(Default)]
pub(super) struct OfferReader {
    random: Option<bytes::Bytes>,
    kinds: Option<SmallVec<[u8; 8]>>,
    hashes: Option<SmallVec<[u16; 4]>>,
    is_broken: bool,
}

impl OfferReader {
    pub(super) fn take(&mut self, kind: u16, value: &bytes::Bytes) {
        // Each is there once (RFC 4895 section 3).
        let is_first = match kind {
            parameter::RANDOM => self.random.replace(value.clone()).is_none(),
            parameter::CHUNKS => {
                self.is_broken |= value.len() > AuthParameters::MOST_KINDS;
                let kinds = value.iter().take(AuthParameters::MOST_KINDS).copied().collect();
                self.kinds.replace(kinds).is_none()
            }
            _ => {
                self.is_broken |= !value.len().is_multiple_of(2);
                self.is_broken |= value.len() > 2 * AuthParameters::MOST_HASHES;
                let pairs = value.chunks_exact(2).take(AuthParameters::MOST_HASHES);
                let hashes = pairs.map(|pair| u16::from_be_bytes([pair[0], pair[1]])).collect();
                self.hashes.replace(hashes).is_none()
            }
        };
        self.is_broken |= !is_first;
    }

    pub(super) fn offer(self) -> AuthOffer {
        let Self { random, kinds, hashes, is_broken } = self;
        let (Some(random), Some(hashes)) = (random, hashes) else { return AuthOffer::None };
        let Ok(random) = <[u8; AuthParameters::RANDOM]>::try_from(&random[..]) else {
            return AuthOffer::Broken;
        };
        let parameters = AuthParameters { random, kinds, hashes };
        match is_broken || !parameters.is_usable() {
            true => AuthOffer::Broken,
            false => AuthOffer::Given(Box::new(parameters)),
        }
    }
}

/// Bytes of what an INIT says of authentication.
pub(super) fn offer_size(offer: &AuthOffer) -> usize {
    let AuthOffer::Given(parameters) = offer else { return 0 };
    let mut size = 0;
    parameters.each(|_, value| size += padded(4 + value.len()));
    size
}

pub(super) fn asconf_size(asconf: &AsconfChunk) -> usize {
    let size = |one: &AddressParameter| match one {
        AddressParameter::Change { change, .. } => 8 + address_size(change.address()),
        AddressParameter::Unknown { value, .. } => padded(4 + value.len()),
    };
    4 + address_size(asconf.lookup) + asconf.parameters.iter().map(size).sum::<usize>()
}

pub(super) fn asconf_ack_size(ack: &AsconfAckChunk) -> usize {
    let cause = |cause: &SctpCause| padded(4 + cause.details.len());
    let size = |one: &AddressAnswer| 8 + one.causes.iter().map(cause).sum::<usize>();
    4 + ack.answers.iter().map(size).sum::<usize>()
}

pub(super) fn write_asconf(asconf: &AsconfChunk, out: &mut Vec<u8>) {
    let start = out.len();
    out.extend_from_slice(&asconf.number.to_be_bytes());
    write_address(asconf.lookup, out);
    for one in &asconf.parameters {
        pad(start, out);
        match one {
            AddressParameter::Change { id, change } => write_change(*id, *change, out),
            AddressParameter::Unknown { kind, value } => write_parameter(*kind, value, out),
        }
    }
}

/// The parameter of a change.
pub(in crate::sctp) fn write_change(id: u32, change: AddressChange, out: &mut Vec<u8>) {
    let kind = match change {
        AddressChange::Add(_) => parameter::ADD_ADDRESS,
        AddressChange::Remove(_) => parameter::REMOVE_ADDRESS,
        AddressChange::Primary(_) => parameter::PRIMARY,
    };
    let mut value = id.to_be_bytes().to_vec();
    write_address(change.address(), &mut value);
    write_parameter(kind, &value, out);
}

pub(super) fn write_asconf_ack(ack: &AsconfAckChunk, out: &mut Vec<u8>) {
    out.extend_from_slice(&ack.number.to_be_bytes());
    for AddressAnswer { id, causes } in &ack.answers {
        let mut value = id.to_be_bytes().to_vec();
        write_causes(causes, &mut value);
        // A cause in the middle of a parameter has its padding.
        pad(0, &mut value);
        let kind = if causes.is_empty() { parameter::SUCCESS } else { parameter::FAILURE };
        write_parameter(kind, &value, out);
    }
}
