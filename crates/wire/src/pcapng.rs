//! A pcapng writer (draft-ietf-opsawg-pcapng): one section, one description per interface, packets
//! with nanosecond times, direction, identity and a comment that tells what an engine did and why.
//!
//! Files are little-endian on every machine and contain nothing but what was passed in, so the
//! same run writes the same bytes. Reading captures is not done here.

use std::io::{Error, ErrorKind, Result, Write};

/// What the packets of an interface begin with (the registry of link types).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkType {
    /// An Ethernet header: LINKTYPE_ETHERNET.
    Ethernet,
    /// An IPv4 or IPv6 header: LINKTYPE_RAW.
    Ip,
}

/// An interface of one writer, as [`Writer::add_interface`] gave it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interface(u32);

/// Which way a packet crossed its interface.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Direction {
    /// Not known.
    #[default]
    Unknown,
    /// Received.
    Inbound,
    /// Sent.
    Outbound,
}

/// What is written with a packet's bytes.
#[derive(Clone, Copy, Debug)]
pub struct Record<'a> {
    /// Where it was seen.
    pub interface: Interface,
    /// When it was seen, in nanoseconds since 1970 or since the start of a simulated run.
    pub at_nanoseconds: u64,
    /// Which way it went.
    pub direction: Direction,
    /// Which packet it is: the same number wherever the same one is seen (epb_packetid).
    pub packet_id: Option<u64>,
    /// A comment; none if empty. Cut after 65535 bytes.
    pub comment: &'a str,
}

/// Writes one pcapng section. Each block reaches the underlying writer in one call.
#[derive(Debug)]
pub struct Writer<W: Write> {
    write: W,
    interfaces: u32,
    /// The block being built; kept for its memory.
    block: Vec<u8>,
}

/// Block types.
mod block {
    pub(super) const SECTION_HEADER: u32 = 0x0a0d_0d0a;
    pub(super) const INTERFACE_DESCRIPTION: u32 = 1;
    pub(super) const ENHANCED_PACKET: u32 = 6;
}

/// Option codes; those from 2 up mean different things in different blocks.
mod option {
    pub(super) const COMMENT: u16 = 1;
    pub(super) const INTERFACE_NAME: u16 = 2;
    pub(super) const INTERFACE_TIME_RESOLUTION: u16 = 9;
    pub(super) const PACKET_FLAGS: u16 = 2;
    pub(super) const PACKET_ID: u16 = 5;
    pub(super) const SECTION_APPLICATION: u16 = 4;
    pub(super) const END: u16 = 0;
}

impl<W: Write> Writer<W> {
    /// Tells readers the byte order.
    const MAGIC: u32 = 0x1a2b_3c4d;
    /// Units of 10^-9 seconds.
    const NANOSECONDS: u8 = 9;

    /// Begins a section that names `application` as its author.
    ///
    /// # Errors
    /// Those of the underlying writer.
    pub fn new(write: W, application: &str) -> Result<Self> {
        let mut writer = Writer { write, interfaces: 0, block: Vec::new() };
        writer.begin(block::SECTION_HEADER);
        writer.block.extend_from_slice(&Self::MAGIC.to_le_bytes());
        let (major, minor) = (1_u16, 0_u16);
        writer.block.extend_from_slice(&major.to_le_bytes());
        writer.block.extend_from_slice(&minor.to_le_bytes());
        let length_unknown = -1_i64;
        writer.block.extend_from_slice(&length_unknown.to_le_bytes());
        writer.option(option::SECTION_APPLICATION, text(application));
        writer.end_of_options();
        writer.finish()?;
        Ok(writer)
    }

    /// Describes one more interface. Interfaces may be added between packets.
    ///
    /// # Errors
    /// Those of the underlying writer.
    pub fn add_interface(&mut self, name: &str, link_type: LinkType) -> Result<Interface> {
        let link_type: u16 = match link_type {
            LinkType::Ethernet => 1,
            LinkType::Ip => 101,
        };
        self.begin(block::INTERFACE_DESCRIPTION);
        self.block.extend_from_slice(&link_type.to_le_bytes());
        self.block.extend_from_slice(&[0; 2]);
        let packet_bytes_max_unlimited = 0_u32;
        self.block.extend_from_slice(&packet_bytes_max_unlimited.to_le_bytes());
        self.option(option::INTERFACE_NAME, text(name));
        self.option(option::INTERFACE_TIME_RESOLUTION, &[Self::NANOSECONDS]);
        self.end_of_options();
        self.finish()?;
        let interface = Interface(self.interfaces);
        self.interfaces += 1;
        Ok(interface)
    }

    /// Writes one packet, whole.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidInput`] if the interface is another writer's or the packet has more
    /// than 2^31 bytes; else those of the underlying writer.
    pub fn packet(&mut self, record: &Record<'_>, bytes: &[u8]) -> Result<()> {
        const PACKET_BYTES_MAX: usize = 1 << 31;
        if record.interface.0 >= self.interfaces {
            return Err(Error::new(ErrorKind::InvalidInput, "interface of another capture"));
        }
        if bytes.len() > PACKET_BYTES_MAX {
            return Err(Error::new(ErrorKind::InvalidInput, "packet too large for a capture"));
        }
        let length = (bytes.len() as u32).to_le_bytes();
        let direction: u32 = match record.direction {
            Direction::Unknown => 0b00,
            Direction::Inbound => 0b01,
            Direction::Outbound => 0b10,
        };
        self.begin(block::ENHANCED_PACKET);
        self.block.extend_from_slice(&record.interface.0.to_le_bytes());
        // The upper half of the time comes first, whatever the byte order.
        self.block.extend_from_slice(&((record.at_nanoseconds >> 32) as u32).to_le_bytes());
        self.block.extend_from_slice(&(record.at_nanoseconds as u32).to_le_bytes());
        self.block.extend_from_slice(&length);
        self.block.extend_from_slice(&length);
        self.block.extend_from_slice(bytes);
        self.pad();
        if !record.comment.is_empty() {
            self.option(option::COMMENT, text(record.comment));
        }
        self.option(option::PACKET_FLAGS, &direction.to_le_bytes());
        if let Some(id) = record.packet_id {
            self.option(option::PACKET_ID, &id.to_le_bytes());
        }
        self.end_of_options();
        self.finish()
    }

    /// Hands everything to the underlying writer and returns it.
    ///
    /// # Errors
    /// Those of the underlying writer.
    pub fn into_inner(mut self) -> Result<W> {
        self.write.flush()?;
        Ok(self.write)
    }

    /// Starts a block; its length is filled in by [`Writer::finish`].
    fn begin(&mut self, block_type: u32) {
        self.block.clear();
        self.block.extend_from_slice(&block_type.to_le_bytes());
        self.block.extend_from_slice(&[0; 4]);
    }

    /// Appends an option; `value` has at most 65535 bytes.
    fn option(&mut self, code: u16, value: &[u8]) {
        self.block.extend_from_slice(&code.to_le_bytes());
        self.block.extend_from_slice(&(value.len() as u16).to_le_bytes());
        self.block.extend_from_slice(value);
        self.pad();
    }

    fn end_of_options(&mut self) {
        self.option(option::END, &[]);
    }

    /// Pads to four bytes; every block begins at such a boundary.
    fn pad(&mut self) {
        self.block.resize(self.block.len().next_multiple_of(4), 0);
    }

    /// Writes the block with its length at both ends.
    fn finish(&mut self) -> Result<()> {
        let length = (self.block.len() as u32 + 4).to_le_bytes();
        self.block[4..8].copy_from_slice(&length);
        self.block.extend_from_slice(&length);
        self.write.write_all(&self.block)
    }
}

/// The bytes of `text`, cut between characters to what an option can hold.
fn text(text: &str) -> &[u8] {
    let mut end = text.len().min(usize::from(u16::MAX));
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text.as_bytes()[..end]
}
