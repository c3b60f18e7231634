"""BlackJAX, if it is installed."""

from types import ModuleType

from vhmc.models.extras import load


def load_blackjax() -> ModuleType:
    """BlackJAX, which only Pathfinder and NUTS need."""
    blackjax = load("blackjax", "Pathfinder or NUTS", "bench")
    load("blackjax.optimizers.lbfgs", "Pathfinder", "bench")
    return blackjax
