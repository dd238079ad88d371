//! Workloads, peers and measurement.
