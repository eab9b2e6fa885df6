# SPDX-License-Identifier: Apache-2.0
# Copyright the libcomm authors
"""What the package mirrors of the public headers is what they say."""

import ctypes
import os
import re
import shlex
import shutil
import subprocess

import pytest
from libcomm import _functions, _header, _structs
from worlds import ROOT

INCLUDE = ROOT / "libcomm" / "include"
COMPILER = shlex.split(os.environ.get("CC", "gcc"))


def text_of_headers():
    text = "\n".join(path.read_text() for path in sorted(INCLUDE.glob("*.h")))
    return re.sub(r"/\*.*?\*/", " ", text, flags=re.S).replace("\\\n", " ")


def without_name(parameter):
    """`const void *send` as `const void *`."""
    words = " ".join(parameter.split())
    return re.sub(r"(?<=[ *])[a-z_]+$", "", words).strip()


def declared():
    found = {}
    for text in re.findall(r"\bLCOMM_API\s+([^;{]*\))\s*;", text_of_headers()):
        result, name, parameters = re.match(r"(.*?)\b(lcomm_\w+)\s*\((.*)\)$", text, re.S).groups()
        kinds = [without_name(p) for p in parameters.split(",")]
        found[name] = (" ".join(result.split()), [] if kinds == ["void"] else kinds)
    return found


@pytest.mark.parametrize("table", ["FUNCTIONS", "MPI_FUNCTIONS"])
def test_functions_are_declared_as_in_the_headers(table):
    headers = declared()
    for result, name, parameters in _functions.declarations(getattr(_functions, table)):
        assert (result, parameters) == headers[name], name


TOPICS = ["_collectives", "_elastic", "_pairs", "_residuals", "_servers", "_stats", "_tensors", ""]


@pytest.mark.parametrize("topic", TOPICS)
def test_every_call_is_there(topic):
    headers = (INCLUDE / f"libcomm{topic}.h").read_text()
    names = set(re.findall(r"LCOMM_API [\w *]+?(lcomm_\w+)\(", headers))
    assert names
    assert names - {name for _, name, _ in _functions.declarations(_functions.FUNCTIONS)} == set()


def test_enumerators_are_those_of_the_headers():
    text = text_of_headers()
    for kind, name, prefix in _header.ENUMS:
        body = re.search(r"typedef enum %s \{(.*?)\} *%s;" % (name, name), text, re.S).group(1)
        lists = re.findall(r"(LCOMM_\w+_LIST)\(", body)
        for each in lists:
            macro = re.search(r"#define %s\(X\)(.*)" % each, text).group(1)
            body += " ".join(f"{word} ," for word in re.findall(r"X\((LCOMM_\w+)", macro))
        words = set(re.findall(r"\b(LCOMM_\w+)\s*(?==|,)", body))
        names = {word for word in words if word.startswith(prefix) and "_ENUM" not in word}
        names -= {"LCOMM_LINK_COUNT", "LCOMM_CALL_KINDS"} | set(lists)
        assert names == {prefix + each.name for each in kind}, name


def members_of(name):
    """Names of a struct's members, from the header's text."""
    text = text_of_headers()
    body = re.search(r"typedef struct %s \{(.*?)\} *%s;" % (name, name), text, re.S).group(1)
    found = []
    for statement in body.split(";"):
        pointer = re.search(r"\(\*(\w+)\)", statement)
        if pointer:
            found.append(pointer.group(1))
            continue
        for part in statement.split(","):
            part = re.sub(r"\[.*?\]", "", part).strip()
            if part:
                found.append(re.search(r"(\w+)$", part).group(1))
    return found


def test_structs_have_the_members_of_the_headers():
    for kind, name in _structs.STRUCTS:
        assert [member for member, *_ in kind._fields_] == members_of(name), name


def c_program():
    """Prints each number that the package mirrors, one in a line, with its name."""
    lines = ["#include <libcomm.h>", "#include <libcomm_interpose.h>", "#include <stddef.h>"]
    lines += ["#include <stdio.h>", "int main(void) {"]
    say = '  printf("%s %%ld\\n", (long)(%s));'
    for kind, name in _structs.STRUCTS:
        lines.append(say % (f"sizeof {name}", f"sizeof({name})"))
        for member, *_ in kind._fields_:
            lines.append(say % (f"{name}.{member}", f"offsetof({name}, {member})"))
            lines.append(say % (f"sizeof {name}.{member}", f"sizeof((({name} *)0)->{member})"))
    for kind, _, prefix in _header.ENUMS:
        lines += [say % (prefix + each.name, prefix + each.name) for each in kind]
    lines += [say % ("LCOMM_LINK_COUNT", "LCOMM_LINK_COUNT"), "  return 0;", "}"]
    return "\n".join(lines)


def mirrored():
    numbers = {"LCOMM_LINK_COUNT": _header.LINK_COUNT}
    for kind, name in _structs.STRUCTS:
        numbers[f"sizeof {name}"] = ctypes.sizeof(kind)
        for member, *_ in kind._fields_:
            numbers[f"{name}.{member}"] = getattr(kind, member).offset
            numbers[f"sizeof {name}.{member}"] = getattr(kind, member).size
    for kind, _, prefix in _header.ENUMS:
        numbers.update({prefix + each.name: int(each) for each in kind})
    return numbers


@pytest.mark.skipif(not shutil.which(COMPILER[-1]), reason=f"no {COMPILER[-1]} in PATH")
def test_sizes_and_values_are_those_of_the_compiler(tmp_path):
    (tmp_path / "numbers.c").write_text(c_program())
    command = [*COMPILER, "-std=c11", "-I", str(INCLUDE), "numbers.c", "-o", "numbers"]
    subprocess.run(command, cwd=tmp_path, check=True)
    said = subprocess.run([tmp_path / "numbers"], stdout=subprocess.PIPE, text=True, check=True)
    lines = [line.rsplit(" ", 1) for line in said.stdout.splitlines()]
    assert {name: int(value) for name, value in lines} == mirrored()


def test_the_version_is_that_of_the_headers():
    from libcomm import __version__

    text = (INCLUDE / "libcomm.h").read_text()
    assert ".".join(re.findall(r"#define LCOMM_VERSION_\w+ (\d+)", text)) == __version__
