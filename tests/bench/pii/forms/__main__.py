"""Print how many forms of each group are found, by half, and those of `seen` that are missed."""

import sys

from assay_scrubber.engine import Scrubber

from .form import forms, found, groups


def main() -> None:
    """Print the table and the missed forms."""
    scrubber = Scrubber()
    results = [(form, found(scrubber, form)) for form in forms()]
    for group in groups():
        halves = []
        for name, held in (("seen", False), ("held", True)):
            of_half = [ok for form, ok in results if form.group == group and form.held is held]
            halves.append(f"{name} {sum(of_half):3}/{len(of_half):3} {sum(of_half) / len(of_half):.2f}")
        sys.stdout.write(f"{group:26} {'   '.join(halves)}\n")
    for form, ok in results:
        if not ok and not form.held:
            sys.stdout.write(f"missed: {form.group}, {form.kind}{', JSON' if form.parsed else ''}: {form.text!r}\n")


if __name__ == "__main__":
    main()
