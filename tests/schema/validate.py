#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""validate.py SCHEMA FILE: is FILE (- for stdin) one line with one JSON object of SCHEMA?

Exit status: 0 yes; 1 no, with the reason on stderr; 2 usage; 77 jsonschema is not installed.
"""
import json
import pathlib
import sys

try:
    import jsonschema
except ImportError:
    print("validate.py: python3-jsonschema is not installed", file=sys.stderr)
    sys.exit(77)


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


def main(argv):
    if len(argv) != 3:
        print(__doc__, file=sys.stderr)
        return 2
    path = pathlib.Path(argv[1]).resolve()
    schema = json.loads(path.read_text())
    text = sys.stdin.read() if argv[2] == "-" else pathlib.Path(argv[2]).read_text()
    if text.count("\n") != 1 or not text.endswith("\n"):
        print(f"validate.py: {argv[2]} is not exactly one line", file=sys.stderr)
        return 1
    try:
        instance = json.loads(text, object_pairs_hook=only_once)
    except ValueError as error:
        print(f"validate.py: {argv[2]}: {error}", file=sys.stderr)
        return 1
    jsonschema.Draft7Validator.check_schema(schema)
    resolver = jsonschema.RefResolver(path.as_uri(), schema)
    validator = jsonschema.Draft7Validator(schema, resolver=resolver)
    errors = list(validator.iter_errors(instance))
    for error in errors:
        print(f"validate.py: {argv[2]} against {path.name}:", file=sys.stderr)
        print("\n".join(reasons(error)), file=sys.stderr)
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
