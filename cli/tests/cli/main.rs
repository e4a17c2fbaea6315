//! The program on a machine without a GPU, or beside one: what it computes, refuses and leaves behind.

mod bad_input;
mod hostile;
mod interrupt;
mod quantize;
#[path = "../support/mod.rs"]
mod support;
mod verify;
