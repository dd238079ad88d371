//! Programs that people run, under `lockstead run`: as they are without it, and
//! with a report that says what is known of them. Each test runs a program both
//! ways under load; what is not installed is skipped, and said.

mod real;
