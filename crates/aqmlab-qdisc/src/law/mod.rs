//! Control laws: numbers in, verdict out. They never see a packet.
