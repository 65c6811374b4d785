"""What a command says when it fails."""

from __future__ import annotations


def error_of(stderr: str) -> str:
    """The error at the end of what a command wrote, in one line: what is wrong, then the remedy if there is one."""
    lines = stderr.splitlines()
    [start] = [i for i, line in enumerate(lines) if line.startswith("Error: ")]
    assert len(lines) - start <= 2, stderr
    assert "Traceback" not in stderr
    return " ".join(lines[start:])
