import undula


def test_all_is_sorted_and_complete() -> None:
    public = {
        name for name, value in vars(undula).items() if not name.startswith("_") and not is_module(value)
    }
    assert public == set(undula.__all__) - {
        "__version__",
        "color",
        "data",
        "filters",
        "fixedpoint",
        "io",
        "measures",
    }


def is_module(value: object) -> bool:
    return type(value).__name__ == "module"


def test_version_is_that_of_the_package() -> None:
    from importlib.metadata import version

    assert undula.__version__ == version("undula")
