//! HMAC against the published vectors, and against openssl as a second opinion.

use std::fmt::Write;
use std::io::Write as _;
use std::process::{Command, Stdio};
use wire::Error;
use wire::auth::{Algorithm, Code, Key, code};

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").expect("a string grows");
        text
    })
}

fn counted() -> Vec<u8> {
    (1..=25).collect()
}

/// Secret, data, code.
type Vector = (Vec<u8>, Vec<u8>, &'static str);

/// RFC 2202, section 2.
fn rfc_2202() -> [Vector; 7] {
    [
        (vec![0x0b; 16], b"Hi There".to_vec(), "9294727a3638bb1c13f48ef8158bfc9d"),
        (
            b"Jefe".to_vec(),
            b"what do ya want for nothing?".to_vec(),
            "750c783e6ab0b503eaa86e310a5db738",
        ),
        (vec![0xaa; 16], vec![0xdd; 50], "56be34521d144c88dbb8c733f0e8b3f6"),
        (counted(), vec![0xcd; 50], "697eaf0aca3a3aea3a75164746ffaa79"),
        (vec![0x0c; 16], b"Test With Truncation".to_vec(), "56461ef2342edc00f9bab995690efd4c"),
        (
            vec![0xaa; 80],
            b"Test Using Larger Than Block-Size Key - Hash Key First".to_vec(),
            "6b1ab7fe4bd7bf8f0b62e6ce61b9d0cd",
        ),
        (
            vec![0xaa; 80],
            b"Test Using Larger Than Block-Size Key and Larger Than One Block-Size Data".to_vec(),
            "6f630fad67cda0ee1fb1f562db3aa53e",
        ),
    ]
}

/// RFC 4231, section 4, test cases 1 to 7.
fn rfc_4231() -> [Vector; 7] {
    let long = b"This is a test using a larger than block-size key and a larger than block-size \
                 data. The key needs to be hashed before being used by the HMAC algorithm.";
    [
        (
            vec![0x0b; 20],
            b"Hi There".to_vec(),
            "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7",
        ),
        (
            b"Jefe".to_vec(),
            b"what do ya want for nothing?".to_vec(),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843",
        ),
        (
            vec![0xaa; 20],
            vec![0xdd; 50],
            "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe",
        ),
        (
            counted(),
            vec![0xcd; 50],
            "82558a389a443c0ea4cc819899f2083a85f0faa3e578f8077a2e3ff46729665b",
        ),
        // Published as truncated to 128 bits.
        (vec![0x0c; 20], b"Test With Truncation".to_vec(), "a3b6167473100ee06e0c796c2955552b"),
        (
            vec![0xaa; 131],
            b"Test Using Larger Than Block-Size Key - Hash Key First".to_vec(),
            "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54",
        ),
        (
            vec![0xaa; 131],
            long.to_vec(),
            "9b09ffa71b942fcb27635fbcd5b0e944bfdc63644f0713938a7f51535c3a35e2",
        ),
    ]
}

fn vectors() -> impl Iterator<Item = (Algorithm, Vector)> {
    let md5 = rfc_2202().into_iter().map(|vector| (Algorithm::HmacMd5, vector));
    md5.chain(rfc_4231().into_iter().map(|vector| (Algorithm::HmacSha256, vector)))
}

#[test]
fn the_vectors_of_rfc_2202_and_rfc_4231() {
    for (algorithm, (secret, data, expected)) in vectors() {
        let ours = code(algorithm, &secret, &data);
        assert_eq!(ours.as_bytes().len(), algorithm.bytes());
        let cut = ours.truncated(expected.len() / 2);
        assert_eq!(hex(cut.as_bytes()), expected, "{algorithm:?}, secret {}", hex(&secret));
    }
}

/// What openssl computes, in hexadecimal.
fn openssl(algorithm: Algorithm, secret: &[u8], data: &[u8]) -> String {
    let digest = match algorithm {
        Algorithm::HmacMd5 => "-md5",
        Algorithm::HmacSha256 => "-sha256",
    };
    let secret = format!("hexkey:{}", hex(secret));
    let mut child = Command::new("openssl")
        .args(["dgst", digest, "-mac", "HMAC", "-macopt", &secret])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("openssl is missing: apt-get install -y openssl");
    child.stdin.take().expect("a pipe").write_all(data).expect("openssl reads");
    let output = child.wait_with_output().expect("openssl ends");
    assert!(output.status.success(), "openssl dgst {digest}: {}", output.status);
    let text = String::from_utf8(output.stdout).expect("text");
    text.split_whitespace().last().expect("a code").to_string()
}

#[test]
fn openssl_computes_the_same() {
    for (algorithm, (secret, data, _)) in vectors() {
        let theirs = openssl(algorithm, &secret, &data);
        assert_eq!(hex(code(algorithm, &secret, &data).as_bytes()), theirs);
    }
}

/// The authenticator of a registration, by openssl from the bytes that RFC 5944, 3.5.1 names: the
/// UDP payload, then type, length and SPI of the extension.
#[test]
fn mod_10_openssl_computes_the_same_authenticator_of_a_registration() {
    use wire::mobile_ip::{Authenticator, registration};
    let secret = b"an example secret of 30 bytes.";
    for algorithm in [Algorithm::HmacMd5, Algorithm::HmacSha256] {
        let key = Key::new(0x1234, algorithm, secret).unwrap();
        let request = registration::Request {
            flags: registration::Flags::REVERSE_TUNNEL,
            lifetime_s: 300,
            home_address: [192, 0, 2, 9].into(),
            home_agent: [192, 0, 2, 1].into(),
            care_of_address: [198, 51, 100, 1].into(),
            identification: 0xe1e2_e3e4_e5e6_e7e8,
        };
        let mut message = Vec::new();
        request.emit(&mut message);
        Authenticator::MobileHome.append(&key, &mut message);
        let (covered, ours) = message.split_at(message.len() - algorithm.bytes());
        assert_eq!(covered[24..], [32, 4 + algorithm.bytes() as u8, 0, 0, 0x12, 0x34]);
        assert_eq!(hex(ours), openssl(algorithm, secret, covered));
    }
}

#[test]
fn a_code_is_only_itself() {
    let code: Code = code(Algorithm::HmacMd5, b"a secret", b"data");
    let right = code.as_bytes().to_vec();
    assert!(code.is(&right));
    for at in 0..right.len() {
        let mut wrong = right.clone();
        wrong[at] ^= 1;
        assert!(!code.is(&wrong), "byte {at}");
    }
    assert!(!code.is(&right[..15]) && !code.is(&[]) && !code.is(&[&right[..], &[0]].concat()));
    assert!(code.truncated(12).is(&right[..12]) && !code.truncated(12).is(&right));
}

#[test]
fn a_key_has_a_name_that_is_not_reserved_and_128_bits() {
    let secret = [7; 16];
    let spi = Key::new(255, Algorithm::HmacMd5, &secret);
    assert_eq!(spi, Err(Error::Unsupported { field: "security parameter index", value: 255 }));
    let short = Key::new(256, Algorithm::HmacMd5, &secret[..15]);
    assert_eq!(short, Err(Error::Length { field: "secret", value: 15 }));
    let key = Key::new(256, Algorithm::HmacMd5, &secret).unwrap();
    assert!(!format!("{key:?}").contains('7'), "{key:?}");
}
