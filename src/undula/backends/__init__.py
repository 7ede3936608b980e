"""Backends: where plans become numbers. ``reference`` is plain NumPy; devices come beside it."""
