//! A TCP endpoint on byte sequence numbers, with the papers' senders
