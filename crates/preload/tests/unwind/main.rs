//! The unwinder, from outside: on the stacks of real threads, in code that the
//! system's compiler has made, and on tables and stacks that are damaged.

mod chains;
mod damage;
mod live;
mod own;
mod program;
mod random;
mod shapes;
