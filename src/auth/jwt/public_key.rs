//! Public keys as `openssl pkey -pubout` writes them (SubjectPublicKeyInfo, RFC 5280), of the three
//! kinds that JWTs are verified with; of each there is one way to write it.

use jsonwebtoken::{Algorithm, DecodingKey};

/// Before the point of a key on P-256.
const P256: &[u8] = &[
    0x30, 0x59, 0x30, 0x13, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01, 0x06, 0x08, 0x2a,
    0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07, 0x03, 0x42, 0x00,
];
/// Before the point of an Ed25519 key.
const ED25519: &[u8] = &[0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00];
/// The algorithm of an RSA key.
const RSA: &[u8] =
    &[0x30, 0x0d, 0x06, 0x09, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x01, 0x05, 0x00];

const INTEGER: u8 = 0x02;
const BIT_STRING: u8 = 0x03;
const SEQUENCE: u8 = 0x30;

/// A key with its algorithm; nothing where it is none of the three.
pub(super) fn read(der: &[u8]) -> Option<(Algorithm, DecodingKey)> {
    if let Some(point) = der.strip_prefix(P256).filter(|point| point.len() == 65) {
        return Some((Algorithm::ES256, DecodingKey::from_ec_der(point)));
    }
    if let Some(point) = der.strip_prefix(ED25519).filter(|point| point.len() == 32) {
        return Some((Algorithm::EdDSA, DecodingKey::from_ed_der(point)));
    }
    let (info, rest) = element(der, SEQUENCE)?;
    let (bits, after) = element(info.strip_prefix(RSA)?, BIT_STRING)?;
    let (pair, end) = element(bits.strip_prefix(&[0])?, SEQUENCE)?;
    let (n, pair) = element(pair, INTEGER)?;
    let (e, pair_end) = element(pair, INTEGER)?;
    let is_whole = [rest, after, end, pair_end].iter().all(|rest| rest.is_empty());
    is_whole.then(|| (Algorithm::RS256, rsa(n, e)))
}

/// An RSA key of its two numbers.
pub(super) fn rsa(n: &[u8], e: &[u8]) -> DecodingKey {
    DecodingKey::from_rsa_raw_components(without_zeros(n), without_zeros(e))
}

fn without_zeros(number: &[u8]) -> &[u8] {
    let zeros = number.iter().take_while(|byte| **byte == 0).count();
    &number[zeros..]
}

/// What an element of that kind holds, and what follows it.
fn element(der: &[u8], kind: u8) -> Option<(&[u8], &[u8])> {
    let (length, rest) = match der.strip_prefix(&[kind])? {
        [short @ 0..=0x7f, rest @ ..] => (usize::from(*short), rest),
        [0x81, length, rest @ ..] => (usize::from(*length), rest),
        [0x82, high, low, rest @ ..] => (usize::from(u16::from_be_bytes([*high, *low])), rest),
        _ => return None,
    };
    rest.split_at_checked(length)
}
