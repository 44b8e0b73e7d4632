"""Checks results against a file of test vectors. Standard library only.

    python3 check.py VECTORS RESULTS

RESULTS is text: a line for each input of VECTORS, in the same order: the input, a space, your result.
Prints every wrong line. Exit code: 0 if every result is right, 1 if any is wrong, 2 if a file cannot be read.
"""

import itertools
import sys


def lines(path):
    """Number and words of each line that is not a comment."""
    with open(path, encoding="ascii") as file:
        for number, line in enumerate(file, 1):
            if line.strip() and not line.startswith("#"):
                yield number, line.split()


def nan_codes(path):
    """Mask, first and last code of NaN, as the header says; no code for a type without NaN."""
    with open(path, encoding="ascii") as file:
        for line in itertools.takewhile(lambda line: line.startswith("#"), file):
            if line.startswith("# nan "):
                return [int(word, 16) for word in line.split()[2:5]]
    return 0, 1, 0


def main(vectors, results):
    mask, first, last = nan_codes(vectors)
    count, wrong = 0, 0
    for (number, vector), (_, result) in itertools.zip_longest(lines(vectors), lines(results), fillvalue=(0, [])):
        if not vector:
            break
        count += 1
        expected, found = vector[1], "no result"
        if len(result) > 1 and int(result[0], 16) == int(vector[0], 16):
            found = result[1]
            if vector[2:] or expected == found:
                continue
            if "-" not in (expected, found):
                a, b = int(expected, 16), int(found, 16)
                if a == b or all(first <= code & mask <= last for code in (a, b)):
                    continue
        print(f"line {number}: {vector[0]} gives {expected}, not {found}")
        wrong += 1
    print(f"{count} lines, {wrong} wrong")
    return int(wrong > 0)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("usage: check.py VECTORS RESULTS")
    try:
        sys.exit(main(*sys.argv[1:]))
    except (OSError, ValueError) as error:
        print(error, file=sys.stderr)
        sys.exit(2)
