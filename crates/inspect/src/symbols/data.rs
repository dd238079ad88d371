//! Variables of a file, by address.
//!
//! # Role
//! Reads the symbol tables for what has an address and a size and is no
//! function: `.symtab` for static variables too, `.dynsym` where that is all
//! that is left, and the symbol table of a separate debug file where one is
//! installed. An address belongs to a variable only if it lies inside its
//! size. Thread-local variables are left out: their symbols hold offsets that
//! would pass for addresses.

use super::debug_file::debug_file;
use crate::module::Module;
use object::elf::{STT_COMMON, STT_OBJECT};
use object::{Object, ObjectSymbol, SymbolFlags};
use std::fmt;
use std::ops::Range;

/// A variable, or a place inside one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Variable {
    /// The symbol of the variable, demangled, and the member that is meant, where that is known.
    pub name: String,
    /// Bytes from the start of what is named.
    pub offset: u64,
    /// File of the library it belongs to; `None` for the program's own.
    pub module: Option<String>,
}

impl fmt::Display for Variable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        if self.offset != 0 {
            write!(f, "+{:#x}", self.offset)?;
        }
        if let Some(module) = &self.module {
            let base = module.rsplit('/').next().unwrap_or(module);
            write!(f, " in {base}")?;
        }
        Ok(())
    }
}

/// The symbol of a variable, and a place inside it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Symbol {
    /// The symbol as the file has it.
    pub(super) name: String,
    /// The stated address of the variable.
    pub(super) start: u64,
    pub(super) size: u64,
    /// Bytes from there to what is meant.
    pub(super) offset: u64,
}

/// The variables of one file, by stated address.
#[derive(Debug, Default)]
pub(super) struct DataSymbols {
    /// The symbols, sorted by start, with the highest end among it and all before it, so
    /// that a search backwards knows when to stop.
    symbols: Vec<(Range<u64>, String, u64)>,
}

impl DataSymbols {
    pub(super) fn of(module: &Module) -> Self {
        let mut found = Vec::new();
        if let Ok(file) = object::File::parse(module.bytes()) {
            collect(&file, &mut found);
            if file.symbols().next().is_none()
                && let Some(map) = debug_file(&file, module.path())
                && let Ok(file) = object::File::parse(&*map)
            {
                collect(&file, &mut found);
            }
        }
        Self::sorted(found)
    }

    fn sorted(mut found: Vec<(Range<u64>, String)>) -> Self {
        // Of names for the same bytes the plainest comes last, and is found.
        found.sort_by(|(a, x), (b, y)| {
            let plain = |name: &str| name.bytes().take_while(|&c| c == b'_').count();
            (a.start, b.end, plain(y), y.len(), y).cmp(&(b.start, a.end, plain(x), x.len(), x))
        });
        let mut highest = 0;
        let symbols = found
            .into_iter()
            .map(|(range, name)| {
                highest = range.end.max(highest);
                (range, name, highest)
            })
            .collect();
        DataSymbols { symbols }
    }

    /// Returns the smallest variable around a stated address.
    pub(super) fn find(&self, stated: u64) -> Option<Symbol> {
        let after = self.symbols.partition_point(|(range, ..)| range.start <= stated);
        self.symbols[..after]
            .iter()
            .rev()
            .take_while(|(.., highest)| *highest > stated)
            .filter(|(range, ..)| range.contains(&stated))
            .min_by_key(|(range, ..)| range.end - range.start)
            .map(|(range, name, _)| Symbol {
                name: name.clone(),
                start: range.start,
                size: range.end - range.start,
                offset: stated - range.start,
            })
    }
}

fn collect(file: &object::File<'_>, into: &mut Vec<(Range<u64>, String)>) {
    for symbol in file.symbols().chain(file.dynamic_symbols()) {
        let SymbolFlags::Elf { st_info, .. } = symbol.flags() else { continue };
        if ![STT_OBJECT, STT_COMMON].contains(&st_info.st_type()) || symbol.is_undefined() {
            continue;
        }
        let start = symbol.address();
        let (Some(end), Ok(name)) = (start.checked_add(symbol.size()), symbol.name()) else {
            continue;
        };
        if symbol.size() != 0 && !name.is_empty() {
            into.push((start..end, name.to_owned()));
        }
    }
}

/// Returns the name as it is written in the source: worked out when it is shown, for a big program
/// has many more. The demanglers take names without the beginning of a mangled one too, and read a
/// C variable `a` as `signed char`.
pub(crate) fn demangled(name: &str) -> String {
    if !["_Z", "__Z", "_R"].iter().any(|beginning| name.starts_with(beginning)) {
        return name.to_owned();
    }
    if let Ok(rust) = rustc_demangle::try_demangle(name) {
        return format!("{rust:#}");
    }
    cpp_demangle::Symbol::new(name)
        .ok()
        .and_then(|symbol| symbol.demangle().ok())
        .unwrap_or_else(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(symbols: &[(u64, u64, &str)]) -> DataSymbols {
        DataSymbols::sorted(
            symbols.iter().map(|&(start, size, name)| (start..start + size, name.into())).collect(),
        )
    }

    fn found(table: &DataSymbols, stated: u64) -> Option<(String, u64)> {
        table.find(stated).map(|symbol| (symbol.name, symbol.offset))
    }

    #[test]
    fn an_address_belongs_to_what_covers_it() {
        let table = table(&[(100, 40, "a_lock"), (200, 400, "server"), (1000, 8, "count")]);
        assert_eq!(found(&table, 100), Some(("a_lock".into(), 0)));
        assert_eq!(found(&table, 224), Some(("server".into(), 24)));
        assert_eq!(found(&table, 599), Some(("server".into(), 399)));
        for outside in [0, 99, 140, 600, 999, 1008, u64::MAX] {
            assert_eq!(table.find(outside), None, "{outside}");
        }
    }

    #[test]
    fn the_smallest_of_nested_variables_is_meant() {
        let table = table(&[(0, 1000, "arena"), (96, 40, "inner"), (300, 8, "other")]);
        assert_eq!(found(&table, 100), Some(("inner".into(), 4)));
        assert_eq!(
            found(&table, 500),
            Some(("arena".into(), 500)),
            "past the ends of smaller ones"
        );
    }

    #[test]
    fn the_plainest_of_equal_names_is_taken() {
        let names = [(8, 8, "__environ"), (8, 8, "environ"), (8, 8, "_environ")];
        assert_eq!(found(&table(&names), 8), Some(("environ".into(), 0)));
    }

    #[test]
    fn a_variable_says_where_in_what() {
        let mut variable = Variable { name: "server".into(), offset: 0, module: None };
        assert_eq!(variable.to_string(), "server");
        variable.offset = 0x18;
        variable.module = Some("/usr/lib/libfoo.so.1".into());
        assert_eq!(variable.to_string(), "server+0x18 in libfoo.so.1");
    }

    #[test]
    fn names_of_cpp_and_rust_are_demangled() {
        assert_eq!(demangled("_ZN5Cache5lock_E"), "Cache::lock_");
        assert_eq!(demangled("_ZN4prog5TABLE17h0123456789abcdefE"), "prog::TABLE");
        assert_eq!(demangled("_Zebra"), "_Zebra");
        assert_eq!(demangled("table_lock.0"), "table_lock.0");
        for plain in ["a", "m", "w", "i", "St", "Ss", "N3foo3barE", "_", "_Z", "_R", ""] {
            assert_eq!(demangled(plain), plain);
        }
    }
}
