//! The test kit for disciplines.
