"""BlackJAX, if it is installed."""

from types import ModuleType


def load_blackjax() -> ModuleType:
    """BlackJAX, which only Pathfinder and NUTS need."""
    try:
        import blackjax
        import blackjax.optimizers.lbfgs
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            "Pathfinder and NUTS need BlackJAX: pip install 'vhmc[bench]'"
        ) from error
    return blackjax
