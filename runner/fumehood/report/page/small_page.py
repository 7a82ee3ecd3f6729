"""A page without a script: one file that opens offline."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from markupsafe import Markup

from fumehood.report.page.assets import content_security_policy, style
from fumehood.report.page.render import environment
from fumehood.report.runs import Run


def small_page(template: str, runs: Sequence[Run], mark: str, **content: Any) -> bytes:
    """Return a page whose template extends ``small_page.html.j2``.

    Args:
        template: its file name.
        runs: that the page is about.
        mark: that of unverified runs; empty if all are verified.
        **content: the values of the template.
    """
    shown = [
        {
            "name": run.label or str(run.folder.path),
            "suite": run.suite.name,
            "signed": str(run.folder.provenance),
            "isolation": run.folder.isolation(),
        }
        for run in runs
    ]
    policy = content_security_policy(style(), "")
    own = {"mark": mark, "policy": policy, "style": Markup(style()), "runs": shown}
    return environment().get_template(template).render(own, **content).encode("utf-8")
