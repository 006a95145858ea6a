//! Modules in C: which functions of Lua they call, by the symbols that they leave to the program that loads them.

use object::read::elf::ElfFile64;
use object::{Endianness, Object as _, ObjectSymbol as _};

/// Functions of Lua 5.2 to 5.4 that LuaJIT has not. What LuaJIT took over from them (`luaL_setfuncs`, `lua_tointegerx`
/// and their like) is missing here.
const NEWER: &[&str] = &[
    "luaL_addgsub",
    "luaL_buffinitsize",
    "luaL_checkversion_",
    "luaL_getsubtable",
    "luaL_len",
    "luaL_prepbuffsize",
    "luaL_pushresultsize",
    "luaL_requiref",
    "luaL_tolstring",
    "lua_absindex",
    "lua_arith",
    "lua_callk",
    "lua_closeslot",
    "lua_closethread",
    "lua_compare",
    "lua_getglobal",
    "lua_geti",
    "lua_getiuservalue",
    "lua_getuservalue",
    "lua_isinteger",
    "lua_len",
    "lua_newuserdatauv",
    "lua_pcallk",
    "lua_rawgetp",
    "lua_rawlen",
    "lua_rawsetp",
    "lua_resetthread",
    "lua_rotate",
    "lua_setglobal",
    "lua_seti",
    "lua_setiuservalue",
    "lua_setuservalue",
    "lua_setwarnf",
    "lua_stringtonumber",
    "lua_toclose",
    "lua_warning",
    "lua_yieldk",
];

/// A function that a module calls and LuaJIT has not; None where there is none, or this is no library of this machine's
/// kind.
pub(super) fn newer_function(file: &[u8]) -> Option<&'static str> {
    let file = ElfFile64::<Endianness>::parse(file).ok()?;
    let wanted = file
        .dynamic_symbols()
        .filter(|symbol| symbol.is_undefined());
    let mut names = wanted.filter_map(|symbol| symbol.name().ok());
    names.find_map(|name| NEWER.iter().copied().find(|newer| *newer == name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_luajit_has_is_not_among_what_it_lacks() {
        let own = std::fs::read(std::env::current_exe().expect("this program")).expect("its file");
        let file = ElfFile64::<Endianness>::parse(&*own).expect("a program");
        let has = |name: &str| {
            file.symbols()
                .any(|symbol| symbol.is_definition() && symbol.name() == Ok(name))
        };
        // LuaJIT is in this program.
        assert!(has("lua_pcall"));
        let wrong: Vec<_> = NEWER.iter().filter(|name| has(name)).collect();
        assert!(wrong.is_empty(), "{wrong:?}");
    }

    #[test]
    fn what_is_no_library_needs_nothing() {
        for bytes in [&b""[..], b"\x7fELF", b"\x7fELF\x02\x01\x01", &[0; 200]] {
            assert_eq!(newer_function(bytes), None);
        }
    }
}
