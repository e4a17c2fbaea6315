//! The one test suite, generic over an implementation.
