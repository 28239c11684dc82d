"""The order of stages within rounds, balanced so that neither position nor predecessor favours one.

Williams, "Experimental designs balanced for the estimation of residual effects of treatments",
Australian Journal of Scientific Research A 2 (1949): a Latin square for an even number of stages,
two mirrored ones for an odd number.
"""

from __future__ import annotations


def balanced_order(stages: int, rounds: int) -> list[list[int]]:
    """Which stage stands where.

    Args:
        stages: How many there are, at least 1.
        rounds: How many rounds, each of which visits every stage once.

    Returns:
        One list of stage numbers (from 0) per round. The first one begins with stage 0. In any
        number of rounds, how often a stage stood in a position differs by at most one between
        stages within each run of `stages` rounds; after `stages` rounds (twice as many if odd)
        every stage has followed every other equally often within rounds.
    """
    base = [0]
    low, high = 1, stages - 1
    while len(base) < stages:  # 0, n-1, 1, n-2, ...: differences never repeat
        base.append(high if len(base) % 2 else low)
        if len(base) % 2:
            low += 1
        else:
            high -= 1
    square = [[(stage + shift) % stages for stage in base] for shift in range(stages)]
    if stages % 2 and stages > 1:
        square += [row[::-1] for row in square]
    return [square[number % len(square)] for number in range(rounds)]
