//! Captures, packet by packet: pcap (either byte order, micro- or nanoseconds) and pcapng (several
//! interfaces, link types and time resolutions), whatever wrote them.
//!
//! `pcap-parser` takes the blocks apart; what it leaves to its caller is done here: the buffer
//! grows for a large block up to a bound, times become nanoseconds, and a file that is not what it
//! says is refused with the offset, what stands there and what was expected. A capture that ends
//! within a packet, as that of a killed program does, ends before it.

use pcap_parser::traits::{PcapNGPacketBlock, PcapReaderIterator};
use pcap_parser::{
    Block, EPB_MAGIC, EnhancedPacketBlock, IDB_MAGIC, InterfaceDescriptionBlock, OptionCode,
    PcapBlockOwned, PcapError,
};
use pcap_parser::{LegacyPcapReader, PcapNGReader};
use sansio::Instant;
use std::cell::RefCell;
use std::io::{self, Cursor, Read};
use std::rc::Rc;

/// What the bytes of a packet begin with (the registry of link types).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LinkType(pub i32);

/// A packet of a capture.
#[derive(Clone, Copy, Debug)]
pub struct Captured<'a> {
    /// When it was seen, in nanoseconds since 1970 (or since what the writer counts from).
    pub at: Instant,
    /// On which interface, numbered from 0 in the order of their descriptions.
    pub interface: u32,
    /// What its bytes begin with.
    pub link: LinkType,
    /// The bytes that were kept.
    pub bytes: &'a [u8],
    /// How many there were on the wire, at least as many as were kept.
    pub wire_bytes: u32,
    /// What else a pcapng file says of it.
    pub notes: Notes<'a>,
}

/// What a pcapng file may say of a packet beside its bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Notes<'a> {
    /// True if it was sent here, false if it was received.
    pub is_outbound: Option<bool>,
    /// The same number wherever the same packet was seen.
    pub packet_id: Option<u64>,
    /// The first comment.
    pub comment: Option<&'a str>,
}

/// Why a capture cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// It is not what it says.
    #[error("offset {offset}: found {found}; expected {expected}")]
    Format {
        /// Bytes before what was found.
        offset: u64,
        /// What stands there.
        found: String,
        /// What should.
        expected: &'static str,
    },
    /// The system could not read on.
    #[error("offset {offset}: {error}")]
    Read {
        /// Bytes consumed before.
        offset: u64,
        /// The system's reason.
        error: io::Error,
    },
}

/// Reads a capture's packets one by one.
pub struct Reader<'r> {
    blocks: Box<dyn PcapReaderIterator + 'r>,
    format: &'static str,
    interfaces: Interfaces,
    /// What went wrong with the reading, which the parser does not say.
    failure: Failure,
    cut_bytes: Option<u64>,
    ended: bool,
}

type Failure = Rc<RefCell<Option<io::Error>>>;

impl<'r> Reader<'r> {
    /// Begins a capture.
    ///
    /// # Errors
    /// [`ReadError::Format`] if it is neither pcap nor pcapng, [`ReadError::Read`] as the system
    /// says.
    pub fn new(mut read: impl Read + 'r) -> Result<Self, ReadError> {
        let mut head = Vec::new();
        let begun = read.by_ref().take(HEAD_BYTES).read_to_end(&mut head);
        begun.map_err(|error| ReadError::Read { offset: 0, error })?;
        let refused = |found| ReadError::Format { offset: 0, found, expected: CAPTURE };
        let Some(&magic) = head.first_chunk::<4>() else {
            return Err(refused(format!("{} bytes", head.len())));
        };
        let shown = hex(&head[..head.len().min(24)]);
        let failure = Failure::default();
        let rest = Watched { read, failure: failure.clone() };
        let read = Cursor::new(head).chain(rest);
        let blocks: Option<Box<dyn PcapReaderIterator + 'r>> = match magic {
            PCAPNG => PcapNGReader::new(BUFFER_BYTES, read).ok().map(|it| Box::new(it) as _),
            _ if PCAP.contains(&magic) => {
                LegacyPcapReader::new(BUFFER_BYTES, read).ok().map(|it| Box::new(it) as _)
            }
            _ => None,
        };
        let blocks = blocks.ok_or_else(|| refused(format!("the bytes {shown}")))?;
        let format = if magic == PCAPNG { "pcapng" } else { "pcap" };
        let interfaces = Interfaces::default();
        Ok(Reader { blocks, format, interfaces, failure, cut_bytes: None, ended: false })
    }

    /// Bytes of the capture consumed so far.
    pub fn offset(&self) -> u64 {
        self.blocks.consumed() as u64
    }

    /// `"pcap"` or `"pcapng"`.
    pub fn format(&self) -> &'static str {
        self.format
    }

    /// Interfaces described so far.
    pub fn interfaces(&self) -> u32 {
        self.interfaces.before + self.interfaces.of_section.len() as u32
    }

    /// Bytes at the end that are no whole packet.
    pub fn cut_bytes(&self) -> Option<u64> {
        self.cut_bytes
    }

    /// Hands the next packet to `take`; `None` at the end.
    ///
    /// # Errors
    /// [`ReadError::Format`] where the file is not what it says, [`ReadError::Read`] as the system
    /// says.
    pub fn next<T>(
        &mut self,
        take: impl FnOnce(Captured<'_>) -> T,
    ) -> Result<Option<T>, ReadError> {
        let mut take = Some(take);
        while !self.ended {
            let offset = self.offset();
            let problem = match self.blocks.next() {
                Ok((length, block)) => {
                    let packet = self.interfaces.read(&block, offset)?;
                    let result = packet.and_then(|packet| Some((take.take()?)(packet)));
                    drop(block);
                    self.blocks.consume(length);
                    match result {
                        Some(result) => return Ok(Some(result)),
                        None => continue,
                    }
                }
                Err(error) => Problem::of(&error),
            };
            self.solve(&problem, offset)?;
        }
        Ok(None)
    }

    fn solve(&mut self, problem: &Problem, offset: u64) -> Result<(), ReadError> {
        let rest = self.blocks.data();
        let broken = |found: String| ReadError::Format { offset, found, expected: BLOCK };
        match problem {
            Problem::End => self.ended = true,
            Problem::Cut if rest.len() > PACKET_BYTES_MAX => {
                let claimed = "a length beyond the end of the file, after the bytes";
                return Err(broken(format!("{claimed} {}", hex(&rest[..16]))));
            }
            Problem::Cut => {
                self.cut_bytes = Some(rest.len() as u64);
                self.ended = true;
            }
            Problem::More => self.refill(offset)?,
            Problem::LargerBuffer => {
                let have = rest.len();
                if have >= BLOCK_BYTES_MAX || !self.blocks.grow((2 * have).max(2 * BUFFER_BYTES)) {
                    return Err(broken(format!("a block of more than {BLOCK_BYTES_MAX} bytes")));
                }
                self.refill(offset)?;
            }
            Problem::Broken => {
                let shown = hex(&rest[..rest.len().min(16)]);
                return Err(broken(format!("the bytes {shown}")));
            }
        }
        Ok(())
    }

    fn refill(&mut self, offset: u64) -> Result<(), ReadError> {
        let _what_failed_is_below = self.blocks.refill().is_err();
        match self.failure.take() {
            Some(error) => Err(ReadError::Read { offset, error }),
            None => Ok(()),
        }
    }
}

/// Bytes read before the parser begins: what its first look has to find.
const HEAD_BYTES: u64 = 64 << 10;
/// Bytes of the buffer.
const BUFFER_BYTES: usize = 1 << 20;
/// No block may be larger.
const BLOCK_BYTES_MAX: usize = 16 << 20;
/// No packet is larger (Wireshark's limit for most link types is 256 KiB); so a file in which more
/// bytes than that are left over is not cut, but broken.
const PACKET_BYTES_MAX: usize = 1 << 20;
const PCAPNG: [u8; 4] = [0x0a, 0x0d, 0x0d, 0x0a];
/// Little endian with micro- and nanoseconds, then big endian.
const PCAP: [[u8; 4]; 4] = [
    [0xd4, 0xc3, 0xb2, 0xa1],
    [0x4d, 0x3c, 0xb2, 0xa1],
    [0xa1, 0xb2, 0xc3, 0xd4],
    [0xa1, 0xb2, 0x3c, 0x4d],
];
const CAPTURE: &str =
    "a capture: pcap (begins with a1b2c3d4 or a1b23c4d, either byte order) or pcapng (0a0d0d0a)";
const BLOCK: &str = "a packet record or block whose lengths agree";

/// The parser's answer where it is no block.
enum Problem {
    End,
    Cut,
    More,
    LargerBuffer,
    Broken,
}

impl Problem {
    fn of<I>(error: &PcapError<I>) -> Self {
        match error {
            PcapError::Eof => Problem::End,
            PcapError::UnexpectedEof => Problem::Cut,
            PcapError::Incomplete(_) => Problem::More,
            PcapError::BufferTooSmall => Problem::LargerBuffer,
            _ => Problem::Broken,
        }
    }
}

/// A reader whose error is kept for who asks later.
struct Watched<R> {
    read: R,
    failure: Failure,
}

impl<R: Read> Read for Watched<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.read.read(into) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    let kind = error.kind();
                    self.failure.replace(Some(error));
                    return Err(kind.into());
                }
                read => return read,
            }
        }
    }
}

/// The interfaces of a capture, and how their packets are read.
#[derive(Debug, Default)]
struct Interfaces {
    /// Of the earlier sections of a pcapng file.
    before: u32,
    of_section: Vec<Interface>,
}

/// How an interface's times and bytes are to be read.
#[derive(Clone, Copy, Debug)]
struct Interface {
    link: LinkType,
    units_per_second: u64,
    offset_seconds: i64,
}

impl Interfaces {
    /// The packet of a block, if it is one; otherwise what the block says of interfaces is noted.
    fn read<'b>(
        &mut self,
        block: &'b PcapBlockOwned<'_>,
        offset: u64,
    ) -> Result<Option<Captured<'b>>, ReadError> {
        match block {
            PcapBlockOwned::LegacyHeader(header) => {
                let nanoseconds = header.is_nanosecond_precision();
                self.of_section = vec![Interface {
                    // The upper bits tell the length of a frame check sequence.
                    link: LinkType(header.network.0 & 0xffff),
                    units_per_second: if nanoseconds { 1_000_000_000 } else { 1_000_000 },
                    offset_seconds: 0,
                }];
                Ok(None)
            }
            PcapBlockOwned::Legacy(packet) => self.packet(0, offset, |interface| {
                let seconds = u64::from(packet.ts_sec) * interface.units_per_second;
                let units = seconds + u64::from(packet.ts_usec);
                (units, packet.data, packet.origlen, Notes::default())
            }),
            PcapBlockOwned::NG(Block::SectionHeader(_)) => {
                self.before += self.of_section.len() as u32;
                self.of_section.clear();
                Ok(None)
            }
            PcapBlockOwned::NG(Block::InterfaceDescription(description)) => {
                self.of_section.push(Interface::described(description, offset)?);
                Ok(None)
            }
            PcapBlockOwned::NG(Block::EnhancedPacket(packet)) => {
                self.packet(packet.if_id, offset, |_| {
                    let units = u64::from(packet.ts_high) << 32 | u64::from(packet.ts_low);
                    (units, packet.packet_data(), packet.orig_len(), Notes::of(packet))
                })
            }
            // Simple packets have no time, and the rest are no packets.
            PcapBlockOwned::NG(_) => Ok(None),
        }
    }

    fn packet<'b>(
        &self,
        number: u32,
        offset: u64,
        read: impl FnOnce(&Interface) -> (u64, &'b [u8], u32, Notes<'b>),
    ) -> Result<Option<Captured<'b>>, ReadError> {
        let interface = self.of_section.get(number as usize).ok_or_else(|| ReadError::Format {
            offset,
            found: format!("a packet of interface {number}"),
            expected: "an interface that was described before",
        })?;
        let (units, bytes, wire_bytes, notes) = read(interface);
        Ok(Some(Captured {
            at: interface.time(units),
            interface: self.before.saturating_add(number),
            link: interface.link,
            bytes,
            wire_bytes: wire_bytes.max(bytes.len() as u32),
            notes,
        }))
    }
}

impl Interface {
    /// The description's options are read here, since the parser takes no resolution in powers of
    /// two and every offset for a little-endian one.
    fn described(
        description: &InterfaceDescriptionBlock<'_>,
        offset: u64,
    ) -> Result<Self, ReadError> {
        const MICROSECONDS: u8 = 6;
        let value = |code| {
            let found = description.options.iter().find(|option| option.code == code);
            found.map(|option| &*option.value)
        };
        let resolution = value(OptionCode::IfTsresol).and_then(|value| value.first().copied());
        let resolution = resolution.unwrap_or(MICROSECONDS);
        let exponent = u32::from(resolution & 0x7f);
        let units_per_second = match resolution & 0x80 {
            0 => 10_u64.checked_pow(exponent),
            _ => 1_u64.checked_shl(exponent),
        };
        let units_per_second = units_per_second.ok_or_else(|| ReadError::Format {
            offset,
            found: format!("time resolution {resolution:#04x}"),
            expected: "a power of ten up to 10^19 or of two up to 2^63",
        })?;
        let seconds = value(OptionCode::IfTsoffset).and_then(|value| value.first_chunk::<8>());
        let offset_seconds = seconds.map_or(0, |bytes| match description.block_type != IDB_MAGIC {
            true => i64::from_be_bytes(*bytes),
            false => i64::from_le_bytes(*bytes),
        });
        let link = LinkType(description.linktype.0);
        Ok(Interface { link, units_per_second, offset_seconds })
    }

    fn time(&self, units: u64) -> Instant {
        let nanos = u128::from(units) * 1_000_000_000 / u128::from(self.units_per_second);
        let nanos = nanos as i128 + i128::from(self.offset_seconds) * 1_000_000_000;
        Instant::from_nanos(nanos.clamp(0, i128::from(u64::MAX)) as u64)
    }
}

impl<'b> Notes<'b> {
    fn of(packet: &'b EnhancedPacketBlock<'_>) -> Self {
        /// Options of this block, by the draft's numbers.
        const COMMENT: OptionCode = OptionCode(1);
        const FLAGS: OptionCode = OptionCode(2);
        const PACKET_ID: OptionCode = OptionCode(5);
        let of_code = |code| packet.options.iter().find(|option| option.code == code);
        let value = |code| of_code(code)?.as_bytes().ok();
        let big_endian = packet.block_type != EPB_MAGIC;
        let flags = value(FLAGS).and_then(|value| value.first_chunk::<4>().copied());
        let id = value(PACKET_ID).and_then(|value| value.first_chunk::<8>().copied());
        let flags = flags.map(if big_endian { u32::from_be_bytes } else { u32::from_le_bytes });
        Notes {
            is_outbound: flags.and_then(|flags| match flags & 0b11 {
                0b01 => Some(false),
                0b10 => Some(true),
                _ => None,
            }),
            packet_id: id.map(if big_endian { u64::from_be_bytes } else { u64::from_le_bytes }),
            comment: of_code(COMMENT).and_then(|option| option.as_str().ok()),
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
