"""Id pools: lowest first, limits, and what a wrong free says."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hw import chips
from hw.ids import IdError, IdKind, IdPool, NoResource, pools


def test_ids_come_lowest_first() -> None:
    pool = IdPool(IdKind.STREAM, 8)
    assert [pool.alloc() for _ in range(5)] == [0, 1, 2, 3, 4]
    pool.free(3)
    pool.free(1)
    assert [pool.alloc() for _ in range(3)] == [1, 3, 5]
    assert (pool.held, pool.left) == (6, 2)


def test_exhaustion_names_kind_and_limit() -> None:
    pool = IdPool(IdKind.NOTIFY, 2)
    pool.alloc(), pool.alloc()
    with pytest.raises(NoResource, match="alloc notify id: all 2 are held") as info:
        pool.alloc()
    assert (info.value.kind, info.value.limit) == (IdKind.NOTIFY, 2)
    pool.free(0)
    assert pool.alloc() == 0


def test_a_limit_of_zero_has_nothing() -> None:
    with pytest.raises(NoResource):
        IdPool(IdKind.LABEL, 0).alloc()


@pytest.mark.parametrize("taken", [0, 1, -1, 99])
def test_free_of_what_is_not_held(taken: int) -> None:
    pool = IdPool(IdKind.MODEL, 4)
    pool.free(pool.alloc())
    with pytest.raises(IdError, match=f"free model id {taken}: it is not held"):
        pool.free(taken)
    assert pool.held == 0
    assert repr(pool) == "<IdPool model, 0 of 4 held>"


def test_pools_are_as_large_as_the_spec_says() -> None:
    all_pools = pools(chips.get("v100", {"max_sqs": 3}).spec)
    assert {kind: pool.limit for kind, pool in all_pools.items()} == {
        IdKind.STREAM: 1984,
        IdKind.SQ: 3,
        IdKind.EVENT: 65536,
        IdKind.NOTIFY: 8192,
        IdKind.MODEL: 21845,
        IdKind.LABEL: 65535,
    }


@given(st.lists(st.integers(-1, 7)))
def test_always_the_lowest_free_id(moves: list[int]) -> None:
    pool, held = IdPool(IdKind.EVENT, 6), set[int]()
    for move in moves:
        if move < 0 or move not in held:
            free = sorted(set(range(6)) - held)
            if free:
                assert pool.alloc() == free[0]
                held.add(free[0])
            else:
                with pytest.raises(NoResource):
                    pool.alloc()
        else:
            pool.free(move)
            held.remove(move)
        assert pool.held == len(held)
        assert all((taken in pool) == (taken in held) for taken in range(6))
