from collections import Counter

import numpy as np
import pytest
from soup import FOOD, OTHER

from tres_scrapy.page.place import tokenise
from tres_scrapy.topic.classifier import Text
from tres_scrapy.topic.keyword import KeywordSet
from tres_scrapy.topic.keyword_topic import KeywordTopic, PageWords
from tres_scrapy.topic.threshold import deviation_of

WORDS = ("leek", "carrot", "pea", "bean", "celery", "onion", "pumpkin", "tomato")
KEYWORDS = ["food", "cooking", "recipe", "soup", "bread", "cheese", "slow food"]


@pytest.fixture(scope="module")
def topic():
    return KeywordTopic.in_english(KeywordSet.parse(KEYWORDS))


def sheet(text, number=0, **options):
    return PageWords(f"http://h.test/{number}", "", "", Counter(tokenise(text)), **options)


PAGES = [
    sheet((FOOD if number % 3 == 0 else OTHER).format(WORDS[number % 8]) * 2, number)
    for number in range(24)
]


def judged(fit, *texts):
    logits = fit.model.logits([Text(tokenise(text)) for text in texts])
    return fit.calibration.probabilities(logits)


def test_first_pack_separates_before_any_page(topic):
    food, other = judged(topic.fit([], {}), FOOD.format("leek"), OTHER.format("tax"))
    assert food > 0.5 > other


def test_near_words_extend_the_keywords(topic):
    near = topic.near(40)
    assert len(near) == 40
    assert {"soups", "sauces", "salad"} & set(near)
    assert not set(near) & set(KEYWORDS)


def test_seed_page_adds_its_words(topic):
    text = "zorgle quix blarg zorgle " * 5
    plain, seeded = (topic.fit([sheet(text, is_seed=is_seed)], {}) for is_seed in (False, True))
    assert judged(seeded, "zorgle quix blarg") > judged(plain, "zorgle quix blarg")


def test_words_of_likely_pages_are_learned(topic):
    with_new = [sheet(" ".join([*s.words, "zorgle"]), i) for i, s in enumerate(PAGES[::3])]
    fit = topic.fit([*with_new, *(PAGES[i] for i in range(24) if i % 3)], {})
    weights = dict(zip(fit.model.words, fit.model.weights[1].tolist(), strict=True))
    assert weights["zorgle"] > 0 > weights["parliament"]


def poor_start():
    """Pages about other things, a directory as the seed, and three that hardly name the topic."""
    directory = "directory people office staff index phone room building visit week street map"
    pages = [sheet(f"{OTHER.format(WORDS[n % 8])} word{n} term{n // 2}", n) for n in range(40)]
    rest = "bicycle window river train mountain cloud letter paper hammer ladder bridge harbour"
    rest += " desk chair lamp bottle candle mirror blanket pillow carpet curtain ceiling roof stair"
    rest += " cellar garage engine wheel brake tire pedal saddle rope anchor sail"
    weak = [sheet(f"{OTHER.format(each)} {rest} soup", 90 + n) for n, each in enumerate("abc")]
    return [sheet(directory, 80, is_seed=True), *pages, *weak]


def test_best_pages_of_a_poor_start_are_relevant(topic):
    fit = topic.fit(poor_start(), {})
    assert fit.few
    assert fit.judge(poor_start()[-3:]).min() > 0.5
    assert fit.judge(poor_start()[1:-3]).max() < 0.5
    assert not topic.fit(PAGES, {}).few


def test_nothing_is_relevant_where_no_page_stands_out(topic):
    pages = [sheet(f"{OTHER.format('tax')} word{number}", number) for number in range(40)]
    fit = topic.fit(pages, {})
    assert fit.few
    assert fit.judge(pages).max() < 0.5


def test_answers_no_leave_other_pages_to_search_for(topic):
    pages = poor_start()
    fit = topic.fit(pages, {pages[-1].url: False, **{each.url: False for each in pages[1:10]}})
    assert fit.judge(pages[-3:-1]).min() > 0.5
    assert fit.judge(pages[1:10]).max() < 0.5


def test_answers_overrule_the_keywords(topic):
    answers = {each.url: number % 3 != 0 for number, each in enumerate(PAGES)}
    fit = topic.fit(PAGES, answers)
    food, other = judged(fit, FOOD.format("leek"), OTHER.format("tax"))
    assert other > 0.5 > food
    assert fit.answers == 24


def test_interval_of_recall_narrows_with_answers(topic):
    def width(count):
        told = {each.url: number % 3 == 0 for number, each in enumerate(PAGES[:count])}
        recall = topic.fit(PAGES, told).threshold.recall
        return recall.high - recall.low

    assert width(24) < width(3)
    assert topic.fit(PAGES, {}).threshold.recall is None


def test_same_input_gives_the_same_model(topic):
    one, two = (topic.fit(PAGES, {PAGES[0].url: True}) for _ in range(2))
    assert np.array_equal(one.model.weights, two.model.weights)
    assert one.calibration == two.calibration


@pytest.mark.parametrize("answer", [True, False])
def test_equal_answers_are_no_error(topic, answer):
    fit = topic.fit(PAGES, dict.fromkeys((each.url for each in PAGES), answer))
    assert (judged(fit, *(FOOD.format(word) for word in WORDS)) >= 0.5).all() == answer


def test_keywords_of_another_language_need_no_vectors():
    text = "der {} und die {} im Garten mit dem Wasser hinter der Mauer von {} gestern Abend"
    keywords = ["küchenrezept", "suppenschüssel"]
    topics = [("Küchenrezept", "Suppenschüssel"), ("Parlament", "Steuer")]
    pages = [sheet(text.format(*topics[n % 3 > 0], WORDS[n % 8]), n) for n in range(24)]
    german = KeywordTopic.in_english(KeywordSet.parse(keywords))
    p = german.fit(pages, {}).judge(pages)
    assert p[::3].min() > 0.5 > max(p[1::3].max(), p[2::3].max())
    assert german.near(5) == []
    assert german.unknown == keywords


def test_answers_teach_links_and_urls(topic):
    pages = [
        each._replace(words={**each.words, f"link:menu{n % 2}": 2, f"url:shelf{n % 2}": 1})
        for n, each in enumerate(PAGES)
    ]
    fit = topic.fit(pages, {each.url: n % 2 == 0 for n, each in enumerate(pages[:12])})
    weights = dict(zip(fit.model.words, fit.model.weights[1].tolist(), strict=True))
    assert weights["link:menu0"] > 0 > weights["link:menu1"]
    assert weights["url:shelf0"] > 0 > weights["url:shelf1"]


def test_an_answer_is_believed_at_once(topic):
    before = topic.fit(PAGES, {}).judge(PAGES)
    fit = topic.fit(PAGES, {PAGES[0].url: False, PAGES[3].url: True, PAGES[1].url: False})
    yes, no = fit.judge([PAGES[3], PAGES[1]])
    assert yes > 0.5 > no
    assert before[1] < 0.5


def test_answers_that_the_model_expects_change_little(topic):
    before = judged(topic.fit(PAGES, {}), *(FOOD.format(word) for word in WORDS))
    told = {each.url: number % 3 == 0 for number, each in enumerate(PAGES[:6])}
    after = topic.fit(PAGES, told)
    food, other = judged(after, FOOD.format("leek"), OTHER.format("tax"))
    assert food > before[0] - 0.2
    assert food > 0.5 > other


def test_scores_that_differ_by_rounding_are_equal():
    assert deviation_of(0.3 + np.array([0.0, 1e-16, -1e-16])) == 1.0
    assert deviation_of(np.array([0.1, 0.3])) == pytest.approx(0.1)


def by_pack(pages, relevant, other):
    """The pages, with these log odds by a trained pack for food and for others."""
    return [page._replace(prior=relevant if "soup" in page.words else other) for page in pages]


MANY = [
    sheet((FOOD if number % 2 == 0 else OTHER).format(WORDS[number % 8]) * 2, number)
    for number in range(60)
]


def test_blind_pack_is_judged_by_its_keywords_too(topic):
    pages = by_pack(MANY, -7.0, -9.0)
    fit = topic.fit(pages, {}, edge=-1.0, doubts=True)
    assert fit.blindness.startswith("of 60 it calls 0 relevant, its keywords let expect ")
    assert fit.prior_weight > 0
    assert fit.mean_prior == -8.0
    assert not fit.is_uncorrected
    found = fit.judge(pages)
    assert (found >= 0.5).tolist() == [number % 2 == 0 for number in range(60)]
    assert fit.found == pytest.approx(found, abs=1e-5)
    # of two pages with the same words, the pack still says which is more likely
    low, high = fit.judge([pages[0]._replace(prior=-9.0), pages[0]])
    assert low < high


@pytest.mark.parametrize(
    ("pages", "edge"),
    [
        (by_pack(MANY, 3.0, -5.0), -1.0),  # it finds them
        (by_pack(MANY[:12], -7.0, -9.0), -1.0),  # too few to say
        (by_pack(MANY[1::2] * 2, -7.0, -9.0), -1.0),  # the keywords find nothing either
        (by_pack(MANY, -7.0, -9.0), None),  # it is not doubted
        ([*by_pack(MANY[:40], 3.0, -5.0), *by_pack(MANY[40:], -7.0, -9.0)], -1.0),  # most of them
    ],
)
def test_pack_that_is_not_blind_stands_alone(topic, pages, edge):
    fit = topic.fit(pages, {}, edge or 0.0, doubts=edge is not None)
    assert fit.is_uncorrected
    assert not fit.blindness


def test_pack_that_calls_a_few_pages_relevant_is_blind(topic):
    few = [*by_pack(MANY[:20], 3.0, -5.0), *by_pack(MANY[20:], -7.0, -9.0)]
    assert topic.fit(few, {}, edge=-1.0, doubts=True).blindness.startswith(
        "of 60 it calls 10 relevant, "
    )


def test_pack_whose_pages_were_denied_is_not_blind(topic):
    pages = by_pack(MANY, -7.0, -9.0)
    denied = {each.url: False for each in MANY[::2]}
    assert not topic.fit(pages, denied, edge=-1.0, doubts=True).blindness


def test_small_doubt_of_a_sure_pack_counts_little(topic):
    """Its log odds of pages differ by little: that is not blown up."""
    pages = by_pack(MANY, -13.8, -13.7)
    fit = topic.fit(pages, {}, edge=-1.0, doubts=True)
    assert fit.judge([pages[1]._replace(prior=-12.0)])[0] < 0.5


def test_answers_about_a_blind_pack_correct_its_keywords(topic):
    pages = by_pack(MANY, -7.0, -9.0)
    fit = topic.fit(
        pages, {MANY[number].url: number % 2 == 1 for number in range(20)}, edge=-1.0, doubts=True
    )
    assert fit.blindness
    food, other = fit.judge(pages[20:22])
    assert food < 0.5 < other


def random_pages(true, said):
    """Pages whose words say nothing, and what a pack says of them: rightly or not."""
    rng = np.random.default_rng(2)
    return [
        sheet(" ".join(f"w{n}" for n in rng.integers(300, size=40)), number)._replace(
            prior=(3.0 if yes else -5.0) + rng.normal()
        )
        for number, yes in enumerate(said)
    ]


def test_pack_that_answers_confirm_stays(topic):
    true = np.arange(400) % 30 == 0
    pages = random_pages(true, true)
    found = topic.fit(pages, {pages[row].url: bool(true[row]) for row in range(60)}).judge(pages)
    assert ((found >= 0.5) == true).all()


def test_pack_that_answers_deny_goes(topic):
    true = np.arange(120) % 3 == 0
    said = np.random.default_rng(2).permutation(true)
    pages = random_pages(true, said)
    found = topic.fit(pages, {pages[row].url: bool(true[row]) for row in range(30)}).judge(pages)
    assert ((found >= 0.5) == said)[30:].mean() < 0.9
