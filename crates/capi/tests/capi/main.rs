//! The library for C and C++, from outside: programs that the system's compilers build, the headers,
//! the symbols, the installation. One program, a module each, so that the tests link once.

mod abi;
mod check;
mod check_cycles;
mod check_fair;
mod check_rt;
mod check_ww;
mod common;
mod headers;
mod install;
mod instructions;
mod kernel;
mod migrate;
mod plugin;
mod programs;
mod pthread;
mod sanitizer;
mod shared;
mod thread_safety;
mod under_run;
