"""Whatever bytes are flipped, the validator gives a verdict: no crash, no hang, no other error."""

import random
import struct

from tests.inference.gguf.builder import Draft
from tests.inference.gguf.judging import code_of

NUM_MUTANTS = 3000
NASTY = (0, 1, 2**31, 2**32 - 1, 2**63, 2**64 - 1)


def mutate(data: bytearray, random_numbers: random.Random) -> None:
    """Change a few bytes, or plant a number that likes to overflow."""
    place = random_numbers.randrange(len(data) - 8)
    if random_numbers.random() < 0.5:
        data[place] = random_numbers.randrange(256)
    else:
        data[place : place + 8] = struct.pack("<Q", random_numbers.choice(NASTY))


def test_mutants_of_a_good_file_get_a_verdict() -> None:
    random_numbers = random.Random(20_240_601)
    good = Draft().pack()
    codes = set()
    for _ in range(NUM_MUTANTS):
        data = bytearray(good)
        for _ in range(random_numbers.randint(1, 3)):
            mutate(data, random_numbers)
        codes.add(code_of(bytes(data)))
    assert len(codes) > 15
