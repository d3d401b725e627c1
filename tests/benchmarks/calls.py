"""Generations and input tokens a case, counted: shared, unshared, and as the published scripts play them."""

from tests.benchmarks.common import Figures, in_turn, show

CASES = 4  # one of each category
REPLY_TOKENS = 100  # a usual reply; what a conversation has said goes in again at every turn
CHARACTERS_PER_TOKEN = 4
# The paper's section 3: scenario 1 has five turns, the others six; each of the five other variants of scenario 3 has six.
PUBLISHED = {"five scenarios": 29, "the paper's five other variants": 30}


def table() -> None:
    """Print both for the five scenarios and for the paper's variants."""
    found = in_turn("calls.measure", {"shared": (True,), "unshared": (False,)}, rounds=1)
    shared, unshared = found["shared"], found["unshared"]
    rows = []
    for name, published in PUBLISHED.items():
        calls, tokens = f"{name}, calls", f"{name}, tokens"
        rows.append((f"{name}: generations", [f"{shared[calls]:g}", f"{unshared[calls]:g}", f"{published}"]))
        ratio = shared[tokens] / unshared[tokens]
        rows.append(
            (f"{name}: input tokens", [f"{shared[tokens]:,.0f}", f"{unshared[tokens]:,.0f}", f"shared / unshared {ratio:.2f}"])
        )
    show(f"Calls to the model a case, with replies of {REPLY_TOKENS} tokens", ("shared", "unshared", "published protocol"), rows)


def measure(share: bool) -> Figures:
    """Count over a few cases."""
    from inspect_ai import eval
    from inspect_ai.model import ModelOutput, ModelUsage, get_model

    from curate_inspect import ablations, curate
    from curate_inspect.dialogue import PAPER_VARIANTS
    from tests.benchmarks.common import folder

    asked: list[int] = []

    def answer(input: list, tools: object, tool_choice: object, config: object) -> ModelOutput:  # type: ignore[type-arg]
        asked.append(sum(len(message.text) for message in input))
        output = ModelOutput.from_content("mockllm/counted", "Yes. " * (REPLY_TOKENS * CHARACTERS_PER_TOKEN // 5))
        output.usage = ModelUsage(input_tokens=1, output_tokens=1, total_tokens=2)
        return output

    model = get_model("mockllm/counted", custom_outputs=answer, memoize=False)
    figures: Figures = {}
    scenarios = curate(per_category=1, share_prefix=share, scorer="mention")
    variants = ablations(per_category=1, share_prefix=share, scorer="mention", variants=PAPER_VARIANTS[1:])
    # The variants after the scenarios, as in a study: those that begin like scenario 3 find its replies.
    for name, task in zip(PUBLISHED, (scenarios, variants), strict=True):
        asked.clear()
        eval(task, model=model, log_dir=str(folder()), display="none")
        figures[f"{name}, calls"] = len(asked) / CASES
        figures[f"{name}, tokens"] = sum(asked) / CHARACTERS_PER_TOKEN / CASES
    return figures
