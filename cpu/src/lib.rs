//! Bit-exact CPU implementation.
