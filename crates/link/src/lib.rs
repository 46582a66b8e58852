//! The emulated hop: rate, delay, queues, error channels, outages
