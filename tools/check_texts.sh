#!/usr/bin/env bash
# Checks a change of texts alone (documents, chapters, docstrings, papers' pages), in about a minute. Rebuilds nothing.
set -euo pipefail
cd "$(dirname "$0")/.."
[ -x .venv/bin/python ] || tools/install.sh test site
.venv/bin/ruff format --check --quiet python tests tools
.venv/bin/ruff check --quiet python tests tools
.venv/bin/python tools/pages.py --check
files=()
for subject in prose documents citations man_pages papers_text mutations_list site; do
    files+=("tests/python/test_$subject.py")
done
.venv/bin/python -m pytest -q -m "not slow" "${files[@]}"
