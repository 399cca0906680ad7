use std::io;

use dimpl::DtlsCertificate;
use rcgen::{CertificateParams, KeyPair};
use sha2::{Digest, Sha256};

/// A certificate for one connection, whose description names its fingerprint.
pub(crate) fn fresh() -> io::Result<DtlsCertificate> {
    let made = || -> Result<DtlsCertificate, rcgen::Error> {
        let key = KeyPair::generate()?;
        let certificate = CertificateParams::new(Vec::new())?.self_signed(&key)?;
        Ok(DtlsCertificate {
            certificate: certificate.der().to_vec(),
            private_key: key.serialize_der(),
        })
    };
    made().map_err(io::Error::other)
}

/// A fingerprint by SHA-256, as descriptions have it (RFC 8122 section 5).
pub(crate) fn fingerprint(certificate: &[u8]) -> String {
    let bytes: Vec<String> =
        Sha256::digest(certificate).iter().map(|byte| format!("{byte:02X}")).collect();
    bytes.join(":")
}
