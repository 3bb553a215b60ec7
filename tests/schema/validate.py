#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""validate.py SCHEMA FILE: is FILE (- for stdin) one line with one JSON object of SCHEMA?

Exit status: 0 yes; 1 no, with the reason on stderr; 2 usage; 77 jsonschema is not installed.
"""
import functools
import json
import pathlib
import sys

try:
    import jsonschema
except ImportError:
    jsonschema = None


def only_once(pairs):
    """A key that appears twice is legal JSON and always a mistake."""
    keys = [key for key, _ in pairs]
    twice = sorted({key for key in keys if keys.count(key) > 1})
    if twice:
        raise ValueError("keys appear twice: " + ", ".join(twice))
    return dict(pairs)


def reasons(error, depth=0):
    """A failed oneOf hides the cause in its context: show the branch that came closest."""
    where = "/".join(str(part) for part in error.absolute_path) or "(whole object)"
    yield "  " * depth + where + ": " + error.message[:300]
    if error.context:
        yield from reasons(jsonschema.exceptions.best_match(error.context), depth + 1)


@functools.lru_cache(maxsize=None)
def validator(path):
    schema = json.loads(path.read_text())
    jsonschema.Draft7Validator.check_schema(schema)
    resolver = jsonschema.RefResolver(path.as_uri(), schema)
    return jsonschema.Draft7Validator(schema, resolver=resolver)


def complaints(path, text):
    """What keeps text from being one line with one JSON object of the schema at path."""
    if text.count("\n") != 1 or not text.endswith("\n"):
        return ["not exactly one line"]
    try:
        instance = json.loads(text, object_pairs_hook=only_once)
    except ValueError as error:
        return [str(error)]
    return ["\n".join(reasons(e)) for e in validator(path).iter_errors(instance)]


def main(argv):
    if len(argv) != 3:
        print(__doc__, file=sys.stderr)
        return 2
    if jsonschema is None:
        print("validate.py: python3-jsonschema is not installed", file=sys.stderr)
        return 77
    path = pathlib.Path(argv[1]).resolve()
    text = sys.stdin.read() if argv[2] == "-" else pathlib.Path(argv[2]).read_text()
    found = complaints(path, text)
    for complaint in found:
        print(f"validate.py: {argv[2]} against {path.name}:\n{complaint}", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
