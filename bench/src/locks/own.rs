//! lockstead's own locks.
