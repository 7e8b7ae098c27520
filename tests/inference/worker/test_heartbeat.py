"""What a replica notices about itself between beats."""

from inference.worker.heartbeat import StrayJobs, resident_bytes


def test_a_job_unknown_for_three_beats_is_stray() -> None:
    strays = StrayJobs()
    assert strays.find(["a", "b"], ["b"]) == ()
    assert strays.find(["a", "b"], ["a", "b"]) == ()
    assert strays.find(["a"], []) == ()
    assert strays.find(["a"], []) == ()
    assert strays.find(["a"], []) == ("a",)
    assert strays.find([], []) == ()


def test_memory_is_measured() -> None:
    assert resident_bytes() > 1 << 20
