"""Imports between the modules of the package."""

from __future__ import annotations

import grimp


def test_no_modules_import_each_other_in_a_circle() -> None:
    graph = grimp.build_graph("pytest_fairness")
    rest = {module: set(graph.find_modules_directly_imported_by(module)) for module in graph.modules}
    # Modules that import nothing that is left are no part of a circle: take them away until none is left.
    while free := {module for module, imported in rest.items() if not imported & rest.keys()}:
        for module in free:
            del rest[module]
    assert not rest, f"these modules import each other in a circle, or import such modules: {sorted(rest)}"
