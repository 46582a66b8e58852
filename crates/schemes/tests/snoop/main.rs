//! What the Snoop agent does, seen from outside: the paper's rules one by one.

mod bounds;
mod closed_loop;
mod drill;
mod follow;
mod hidden_queue;
mod invariants;
mod mirror;
mod modern;
mod nack;
mod paper;
mod recall;
mod restart;
mod timers;
mod world;
