"""A form made from a schema: what is typed comes back as the model, or as sentences beside the fields."""

from html.parser import HTMLParser

from django.http import QueryDict
from django.template.loader import render_to_string
from vantage.forms_from_schema import bind, form
from vantage_trainer.composition import Algorithm
from vantage_trainer.spec import RunSpec


class Browser(HTMLParser):
    """Collect what a browser without scripts would post."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.posted = QueryDict(mutable=True)
        self.select = self.area = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {key: value or "" for key, value in attrs}
        if tag == "input" and (given.get("type") != "checkbox" or "checked" in given):
            self.posted.appendlist(given["name"], given["value"])
        if tag == "option" and self.select and ("selected" in given or self.select not in self.posted):
            self.posted[self.select] = given["value"]
        self.select = given["name"] if tag == "select" else self.select
        if tag == "textarea":
            self.area = given["name"]
            self.posted[self.area] = ""

    def handle_data(self, data: str) -> None:
        if self.area:
            self.posted[self.area] = data

    def handle_endtag(self, tag: str) -> None:
        self.select = "" if tag == "select" else self.select
        self.area = "" if tag == "textarea" else self.area


def posted(spec: RunSpec) -> QueryDict:
    return Browser(render_to_string("forms/field.html", {"field": form(RunSpec, spec)})).posted


def spec_of_everything() -> RunSpec:
    return RunSpec.model_validate(
        {
            "model": {"lora": {"rank": 4, "targets": ["q", "k"]}, "system_prompt": 'Say "<b>" & stop\nhere'},
            "data": {"difficulty": [0.1, 0.9]},
            "reward": {"parts": [{"kind": "exact"}, {"kind": "numeric", "parameters": {"tolerance": 0.5}}]},
            "warm_start": {"steps": 7},
            "algorithm": {
                "baseline": {"kind": "group_mean"},
                "scale": {"kind": "batch_std", "std_ddof": 0},
                "ratio": {"level": "token"},
                "trust_region": {"kind": "clip", "high": 0.28, "dual": 3},
                "aggregation": {"kind": "delta_l", "length": 77},
                "regularizer": {"kl": {"coef": 1e-7}},
                "sampling": {"overlong": {"buffer": 3}, "truncated": "mask"},
            },
            "rollout": {"stop": ["\n", "</s>, end"]},
            "optimization": {"float32_head": False, "zero_stage": 2},
            "evaluation": {"sets": [{"name": "a", "k": [1, 2]}, {"name": "b", "limit": 3}]},
        }
    )


def test_the_form_of_any_run_posts_that_run_again() -> None:
    for spec in (RunSpec(), spec_of_everything()):
        bound = bind(RunSpec, posted(spec))
        assert bound.errors == {}
        assert bound.value == spec


def test_what_is_not_posted_keeps_its_value() -> None:
    bound = bind(RunSpec, {"budget.steps": "3"}, base=spec_of_everything())
    expected = spec_of_everything()
    expected.budget.steps = 3
    assert bound.value == expected


def test_the_posted_kind_decides_which_branch_is_read() -> None:
    data = {"scale.kind": "group_std", "scale:group_std.std_eps": "0.5", "scale:batch_std.std_eps": "x"}
    bound = bind(Algorithm, data)
    assert bound.value is not None
    assert bound.value.scale.model_dump() == {"kind": "group_std", "std_ddof": 1, "std_eps": 0.5}


def test_a_plain_dotted_path_is_read_as_well() -> None:
    bound = bind(RunSpec, {"algorithm.scale.kind": "group_std", "algorithm.scale.std_ddof": "0"})
    assert bound.value is not None
    assert bound.value.algorithm.scale.model_dump()["std_ddof"] == 0


def test_each_mistake_gets_a_sentence_beside_its_field_and_keeps_what_was_typed() -> None:
    data = {
        "budget.steps": "many",
        "optimization.learning_rate": "nan",
        "optimization.betas": "0.9",
        "optimization.zero_stage": "7",
        "algorithm.scale.kind": "group_std",
        "algorithm.scale:group_std.std_eps": "-1",
        "algorithm.aggregation.kind": "delta_l",
        "algorithm.aggregation:delta_l.length": "long",
        "evaluation.sets.3.name": "a b",
        "reward.parts.0.parameters": "{x",
    }
    bound = bind(RunSpec, data)
    wrong = {field.path: field.errors for field in bound.root.walk() if field.errors}
    assert bound.value is None
    assert wrong["budget.steps"] == ['Steps must be a whole number; it is "many".']
    assert "must be a finite number" in wrong["optimization.learning_rate"][0]
    assert "missing" in wrong["optimization.betas"][0]
    assert "must be 0, 1, 2 or 3" in wrong["optimization.zero_stage"][0]
    assert "must be at least 0" in wrong["algorithm.scale.std_eps"][0]
    assert "rollout.response_limit" in wrong["algorithm.aggregation.length"][0]
    assert "letters, digits" in wrong["evaluation.sets.0.name"][0]
    assert "must be a group of settings" in wrong["reward.parts.0.parameters"][0]
    assert bound.root.get("budget.steps").value == "many"


def test_a_learning_rate_of_zero_is_refused_in_words() -> None:
    assert bind(RunSpec, {"optimization.learning_rate": "0"}).errors == {
        "optimization.learning_rate": ['Learning rate must be greater than 0; it is "0".']
    }


def test_rows_are_added_and_removed_without_a_complaint() -> None:
    data = posted(spec_of_everything())
    added = bind(RunSpec, {**data.dict(), "form.add": "evaluation.sets", "budget.steps": "x"})
    assert added.reshaped
    assert added.errors == {}
    assert len(added.root.get("evaluation.sets").children) == 3
    removed = bind(RunSpec, {**data.dict(), "form.remove": "evaluation.sets.0"})
    assert [row.get("evaluation.sets.0.name").value for row in removed.root.get("evaluation.sets").children] == ["b"]


def test_a_later_refusal_stands_beside_the_closest_field_that_is_shown() -> None:
    bound = bind(RunSpec, {}).with_errors({"data.train": ["Choose a dataset."], "algorithm.baseline.kind": ["No."]})
    assert bound.value is None
    assert bound.root.get("data.train").errors == ["Choose a dataset."]
    assert bound.root.get("algorithm.baseline").errors == ["No."]


def test_choices_given_by_path_make_a_select() -> None:
    root = form(RunSpec, spec_of_everything(), choices={"evaluation.sets.*.dataset": [("sums@1", "Sums 1")]})
    assert root.get("evaluation.sets.1.dataset").widget == "select"
    assert 'value="sums@1"' in render_to_string("forms/field.html", {"field": root})
