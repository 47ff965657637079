"""Names as they can be shown: an ONNX name may hold anything, also what steers a terminal or turns text around."""

_LONGEST = 120


def visible(name: str) -> str:
    r"""The name with control, bidi and other invisible characters written as escapes, such as `\x1b` or `\u202e`."""
    if name.isprintable():
        return name
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode() for character in name
    )


def short(name: str, longest: int = _LONGEST) -> str:
    """`visible`, and cut in the middle where it is long: exporters put what tells nodes apart at both ends."""
    text = visible(name)
    if len(text) <= longest:
        return text
    half = (longest - 1) // 2
    return f"{text[:half]}…{text[-half:]}"
