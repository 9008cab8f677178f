"""Makes a program that shows a difference as small as it goes."""


def shrink(program, differs, tries=400):
    """The program without steps, parts of steps and arguments that the difference does not need.

    `differs(program)` says whether a smaller one still shows it; it is asked at most `tries` times.
    """

    def attempts(candidates):
        nonlocal program, tries
        for candidate in candidates:
            if tries <= 0:
                return False
            tries -= 1
            if differs(candidate):
                program = candidate
                return True
        return False

    size = max(1, len(program) // 2)
    while size >= 1:
        if not attempts(without_steps(program, size)):
            size //= 2
    while attempts(simpler_steps(program)):
        pass
    return program


def without_steps(program, size):
    """The program without `size` steps in a row, later ones first."""
    for start in range(len(program) - size, -1, -1):
        yield program[:start] + program[start + size :]


def simpler_steps(program):
    """The program with one method, one field, or one argument or property less."""
    for place, step in enumerate(program):
        for smaller in simpler_step(step):
            yield program[:place] + [smaller] + program[place + 1 :]


def simpler_step(step):
    methods = step["do"]
    if len(methods) > 1:
        for place in range(len(methods)):
            yield dict(step, do=methods[:place] + methods[place + 1 :])
    for place, (name, fields) in enumerate(methods):
        for smaller in simpler_fields(fields):
            yield dict(step, do=methods[:place] + [[name, smaller]] + methods[place + 1 :])


def simpler_fields(fields):
    for name, value in fields.items():
        if isinstance(value, bool) and value:
            yield {other: inner for other, inner in fields.items() if other != name}
        elif isinstance(value, dict) and value:
            for key in value:
                yield dict(fields, **{name: {other: inner for other, inner in value.items() if other != key}})
            if isinstance(value.get("headers"), dict):
                for key in value["headers"]:
                    headers = {other: inner for other, inner in value["headers"].items() if other != key}
                    yield dict(fields, **{name: dict(value, headers=headers)})
