"""How backends look in every figure, and the line that says how it was measured."""
import textwrap

# Okabe and Ito's colours, which colour-blind readers tell apart; markers and dashes for grey print.
STYLES = {
    "erar": {"label": "eRAR", "color": "#0072B2", "marker": "o", "linestyle": "-"},
    "tcp": {"label": "TCP", "color": "#D55E00", "marker": "s", "linestyle": "--"},
}
OTHER_STYLES = [
    {"color": "#009E73", "marker": "^", "linestyle": "-."},
    {"color": "#CC79A7", "marker": "D", "linestyle": ":"},
]


def styles_of(backends):
    others = iter(OTHER_STYLES * len(backends))
    return {name: STYLES.get(name) or {"label": name, **next(others)} for name in backends}


def size_text(size, _position=None):
    for unit in ("", "K", "M", "G"):
        if size < 1024 or size % 1024:
            return f"{size:g}{unit}"
        size /= 1024
    return f"{size:g}T"


def conditions_text(context):
    """Of a report's context, what its figure's reader has to know about links and machine."""
    return (f"{context['ranks']} ranks, {context['fabric']} of veths, TCP with {context['cc']}; "
            f"{context['cpus']} CPUs ({context['cpu']}), Linux {context['kernel']}; "
            f"{context['date'][:10]}, erar {context['commit']}")


def wrap(lines, width_inches):
    # At 8 points about 15 letters go into an inch.
    return "\n".join(textwrap.fill(line, int(15 * width_inches)) for line in lines)


def clear_frame(axes):
    axes.set_axisbelow(True)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
