from tres_scrapy.downloader.rotation import Rotation


def test_context_serves_a_fixed_number():
    rotation = Rotation(pages=2)
    names = []
    for _ in range(5):
        names.append(rotation.enter("a"))
        assert rotation.leave("a", names[-1]) == (len(names) % 2 == 0)
    assert len(set(names)) == 3


def test_context_with_an_open_page_stays():
    rotation = Rotation(pages=2)
    first, second, third = (rotation.enter("a") for _ in range(3))
    assert first == second != third
    assert not rotation.leave("a", second)
    assert not rotation.leave("a", third)
    assert rotation.leave("a", first)


def test_kinds_have_contexts_of_their_own():
    rotation = Rotation(pages=9)
    assert rotation.enter("a") != rotation.enter("b")
