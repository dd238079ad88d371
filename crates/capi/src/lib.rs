//! lockstead for C and C++: what stands behind `lockstead.h`.
