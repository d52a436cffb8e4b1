"""Pages about food and about other things, as the pack `food` judges them."""

import json

FOOD = (
    "<title>{0} soup recipe</title><p>A recipe for soup with {0}: chop the onions, simmer the "
    "vegetables in butter, add cream, cheese and pepper, bake the bread, serve the dish hot with "
    "wine. Ingredients: flour, sugar, garlic, olive oil, tomatoes, chicken, salt.</p>"
)
OTHER = (
    "<title>{0} election</title><p>The parliament voted on {0}: ministers and the opposition "
    "debated the budget, the court heard the case, and troops left the border.</p>"
)
FRENCH = (
    "<title>La soupe</title><p>Émincez les oignons, faites-les revenir dans le beurre, ajoutez la "
    "crème et le poivre, puis servez la soupe bien chaude avec du pain et un verre de vin.</p>"
)


def link(*urls):
    return "".join(f'<p><a href="{url}">page {i}</a></p>' for i, url in enumerate(urls))


def lines_of(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
