"""The checker of the house rules finds what it is there for, and nothing else."""

import sys
from pathlib import Path

SCRIPTS = Path(__file__).parents[2] / "scripts"
sys.path.insert(0, str(SCRIPTS))

from house import long_lines, twice  # noqa: E402
from house_rust import Crate, Source  # noqa: E402


def crate(crate_name: str = "x", **files: str) -> Crate:
    """A crate of files; `a__b` is `a/b.rs`."""
    paths = {name: Path("crates", crate_name, "src", name.replace("__", "/") + ".rs") for name in files}
    return Crate(crate_name, [Source(paths[name], text) for name, text in files.items()])


def edges(**files: str) -> set[tuple[str, str, str]]:
    root = Path("crates/x/src")
    return {(str(edge.source.relative_to(root)), str(edge.target.relative_to(root)), edge.name) for edge in crate(**files).edges}


def test_a_path_leads_to_the_file_that_defines_the_name():
    files = {
        "lib": "mod a; mod b; mod c;",
        "a": "use crate::b::{self, Deep as D, inner};\nfn f() { b::g(); inner::h(); }",
        "b": "mod inner; pub use inner::*; pub fn g() {}",
        "b__inner": "pub struct Deep; pub fn h() {}",
        "c": "fn f() { crate::b::Deep; super::a::f() }",
    }
    assert edges(**files) == {
        ("a.rs", "b.rs", "g"),
        ("a.rs", "b/inner.rs", "Deep"),
        ("c.rs", "b/inner.rs", "Deep"),
        ("c.rs", "a.rs", "f"),
    }


def test_comments_strings_tests_and_declarations_depend_on_nothing():
    files = {
        "lib": "mod a; mod b; #[cfg(test)] mod testing; pub use b::B;",
        "a": '// crate::b::B\n/* crate::b::B */ fn f() { "crate::b::B"; \'"\'; r#"crate::b::B"#; }\n'
        "#[cfg(test)]\nmod tests { use crate::b::B; }",
        "b": "pub struct B;",
        "testing": "use crate::b::B;",
    }
    assert edges(**files) == set()


def test_a_parent_that_uses_its_child_is_in_a_circle_with_it_unless_it_only_re_exports():
    child = "use super::Parent; pub struct Child(Parent);"
    re_exported = crate(lib="mod p;", p__mod="mod c; pub use c::Child; pub struct Parent;", p__c=child)
    assert re_exported.circles() == []
    used = crate(lib="mod p;", p__mod="mod c; pub use c::Child; pub struct Parent(Option<Child>);", p__c=child)
    (circle,) = used.circles()
    assert "p/c.rs, p/mod.rs" in circle.text


def test_an_import_through_the_root_is_found_and_one_of_a_module_is_not():
    files = {"lib": "pub mod b; mod a; pub use b::B;", "b": "pub struct B;"}
    assert crate(a="use crate::b::B;", **files).root_imports() == []
    (place,) = crate(a="\nuse crate::{b, B};", **files).root_imports()
    assert (str(place.path), place.line) == ("crates/x/src/a.rs", 2)


def test_an_arrow_that_the_table_does_not_have_is_found():
    files = {"lib": "mod a; mod b;", "a__mod": "use crate::b::B;", "b": "pub struct B;"}
    assert crate(**files).arrows({"a": {"b"}, "b": set()}) == []
    assert len(crate(**files).arrows({"a": set(), "b": set()})) == 1


def test_a_public_type_that_is_defined_twice_is_found():
    one = crate(lib="pub struct Flow; pub(crate) struct Own; trait T { type Item; }")
    other = crate("y", lib="pub enum Flow {} pub(crate) enum Own {} impl T for Flow { type Item = (); }")
    assert [finding.text.split()[0] for finding in twice([one, other])] == ["Flow"]


def test_functions_are_measured_to_their_closing_brace():
    source = Source(Path("a.rs"), "fn a(x: [u8; 2]) {\n  '{';\n}\ntrait T { fn b(); fn c() {} }")
    assert source.functions() == [("a", 1, 3), ("c", 4, 1)]


def test_long_lines_are_found_where_there_is_prose():
    long = "word " * 21
    page = f"{long}\n| {long} |\n```\n{long}\n```\n- [{long}](there)\n{long}[there](there)\n"
    assert long_lines(Path("a.md"), page) == [1, 7]
    assert long_lines(Path("a.rs"), f"// {long}\nlet x = {long};\n/// https://{long}\n") == [1]
    assert long_lines(Path("a.py"), f'"""One.\n\n{long}\n"""\nx = "{long}"\n# {long}\n') == [3, 6]
    assert long_lines(Path("a.md"), "é" * 100) == []
