"""Presets and own algorithms: in words, compared, edited through a form made from the schema, versioned."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from vantage.algorithms.describe import differences, in_short, parts
from vantage.algorithms.formula.objective import formula
from vantage.algorithms.models import Algorithm, AlgorithmVersion
from vantage.algorithms.sources import SOURCES
from vantage.algorithms.store import choices, find, save
from vantage.algorithms.words import WORDS
from vantage.form_shapes import fields_of
from vantage.teams.models import User
from vantage_trainer.composition import Algorithm as Composition
from vantage_trainer.composition import Part
from vantage_trainer.presets import PRESETS

Clients = Callable[[User], Client]
GRPO = PRESETS["grpo"].algorithm


def all_parts(base: type[Part] = Part) -> list[type[Part]]:
    return [found for part in base.__subclasses__() for found in [part, *all_parts(part)]]


def test_every_option_has_a_title_and_a_meaning_in_words() -> None:
    shapes = [shape for part in all_parts() for shape in fields_of(part) if shape.owner != "Algorithm.preset"]
    kinds = [part.__name__ for part in all_parts() if "kind" in part.model_fields]
    assert {shape.owner for shape in shapes} - set(WORDS) == set()
    assert set(kinds) - set(WORDS) == set()


def test_no_words_are_left_over() -> None:
    known = {shape.owner for part in all_parts() for shape in fields_of(part)}
    assert set(WORDS) - known - {part.__name__ for part in all_parts()} == set()


@pytest.mark.parametrize("name", list(PRESETS))
def test_each_preset_has_a_page_with_its_source_and_parts(people: Any, client_of: Clients, name: str) -> None:
    page = client_of(people.viewer).get(f"/algorithms/presets/{name}/")
    assert page.status_code == 200
    text = page.content.decode()
    assert PRESETS[name].title in text
    assert len(parts(PRESETS[name].algorithm)) == 8
    assert all(str(line.math) in text for line in formula(PRESETS[name].algorithm))


@pytest.mark.parametrize("name", list(PRESETS))
def test_an_export_is_what_the_trainer_reads(people: Any, client_of: Clients, name: str) -> None:
    exported = client_of(people.viewer).get(f"/algorithms/presets/{name}.json")
    assert Composition.model_validate_json(exported.content) == PRESETS[name].algorithm


def test_dr_grpo_differs_from_grpo_in_scale_aggregation_and_kl() -> None:
    told = {(d.title, d.left, d.right) for d in differences(PRESETS["dr_grpo"].algorithm, GRPO)}
    assert ("Scale", "None", "Group deviation") in told
    assert ("Aggregation", "Sum over a fixed length", "Mean per response") in told
    assert ("Regularizer: KL to the reference", "off", "on") in told
    assert differences(GRPO, GRPO) == []


def test_a_line_in_short_names_the_choices() -> None:
    assert in_short(GRPO) == ["Group mean", "Group deviation", "Clip", "Mean per response", "KL to the reference"]


def test_a_preset_page_compares_with_any_other(people: Any, client_of: Clients) -> None:
    client = client_of(people.viewer)
    assert "Differs from GRPO in" in client.get("/algorithms/presets/dapo/").content.decode()
    page = client.get("/algorithms/presets/dapo/", {"against": "dapo_paper"}).content.decode()
    assert "Differs from DAPO (as printed) in" in page
    unknown = client.get("/algorithms/presets/dapo/", {"against": "no\x00such"})
    assert "choose a preset or name@number" in unknown.content.decode()


def test_starting_from_a_preset_and_saving_makes_a_version(people: Any, client_of: Clients) -> None:
    client = client_of(people.member)
    assert 'value="0.28"' in client.get("/algorithms/new/", {"from": "dapo"}).content.decode()
    posted = {"name": "mine", "trust_region.kind": "clip", "trust_region:clip.high": "0.5", "note": "wider"}
    page = client.post("/algorithms/new/?from=dapo", posted, follow=True).content.decode()
    assert "Saved as mine@1." in page
    saved = AlgorithmVersion.objects.get()
    assert saved.parts.trust_region.model_dump()["high"] == 0.5
    assert saved.parts.sampling == PRESETS["dapo"].algorithm.sampling
    assert (saved.note, saved.author) == ("wider", people.member)


def test_a_new_algorithm_begins_with_any_preset_or_own_version(people: Any, client_of: Clients) -> None:
    save(people.team, people.member, "mine", PRESETS["gspo"].algorithm, "")
    client = client_of(people.member)
    page = client.get("/algorithms/new/").content.decode()
    assert '<option value="grpo" selected>' in page and '<option value="mine@1">' in page
    assert 'value="0.0004"' in client.get("/algorithms/new/", {"from": "mine@1"}).content.decode()


def test_editing_adds_a_version_and_changes_none(people: Any, client_of: Clients) -> None:
    version, _ = save(people.team, people.member, "mine", GRPO, "")
    client = client_of(people.member)
    edit = f"/algorithms/{version.algorithm_id}/edit/"
    assert "Nothing changed: this is mine@1." in client.post(edit, {}, follow=True).content.decode()
    page = client.post(edit, {"scale.kind": "none"}, follow=True).content.decode()
    assert "Saved as mine@2." in page
    assert "Differs from mine@1 in" in page
    assert AlgorithmVersion.objects.get(number=1).parts == GRPO


@pytest.mark.parametrize(
    ("posted", "sentence"),
    [
        ({"trust_region:clip.low": "2"}, "must be at most 1"),
        ({"trust_region:clip.high": "nan"}, "must be a finite number"),
        ({"scale.kind": "nonsense"}, "Scale must be one of"),
        ({"ratio.denominator": "behaviour", "correction.kind": "truncate"}, "already holds the correction"),
        ({"name": "a b"}, "A name starts with a letter"),
        ({"name": "grpo"}, "grpo is the name of a preset"),
    ],
)
def test_mistakes_get_sentences_and_save_nothing(
    people: Any, client_of: Clients, posted: dict[str, str], sentence: str
) -> None:
    refused = client_of(people.member).post("/algorithms/new/?from=grpo", {"name": "mine"} | posted)
    assert refused.status_code == 400
    assert sentence in refused.content.decode()
    assert not Algorithm.objects.exists()


def test_what_is_exported_can_be_imported(people: Any, client_of: Clients) -> None:
    client = client_of(people.member)
    exported = client.get("/algorithms/presets/gspo.json").content
    file = SimpleUploadedFile("gspo.json", exported)
    assert client.post("/algorithms/import/", {"name": "mine", "file": file}).status_code == 302
    assert find(people.team, "mine@1") == PRESETS["gspo"].algorithm


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "This is not JSON"),
        ("{", "This is not JSON"),
        ("[]", "must be a group of settings"),
        ('{"scale": {"kind": "group_std", "eps": 1}}', "is not a setting"),
        ('{"scale": {"kind": "group_std", "std_eps": NaN}}', "must be a finite number"),
        (
            '{"ratio": {"level": "token", "denominator": "behaviour"}, "correction": {"kind": "truncate"}}',
            "already holds the correction",
        ),
    ],
)
def test_an_import_that_is_no_algorithm_gets_a_sentence(
    people: Any, client_of: Clients, text: str, sentence: str
) -> None:
    refused = client_of(people.member).post("/algorithms/import/", {"name": "mine", "json": text})
    assert refused.status_code == 400
    assert sentence in refused.content.decode()
    assert not Algorithm.objects.exists()


def test_two_algorithms_stand_side_by_side_with_their_differences_marked(people: Any, client_of: Clients) -> None:
    save(people.team, people.member, "mine", PRESETS["dapo"].algorithm, "")
    client = client_of(people.viewer)
    page = client.get("/algorithms/compare/", {"left": "grpo", "right": "mine@1"}).content.decode()
    assert "GRPO and mine@1" in page and "of=grpo&amp;of=mine%401" in page
    assert page.count('class="other"') > 10
    chosen = client.get("/algorithms/compare/", {"left": "grpo", "against": "mine@1"}).content.decode()
    assert "GRPO and mine@1" in chosen
    same = client.get("/algorithms/compare/", {"left": "grpo", "right": "grpo"}).content.decode()
    assert "The two compute the same." in same and 'class="other"' not in same
    unknown = client.get("/algorithms/compare/", {"left": "no\x00such"}, follow=True).content.decode()
    assert "choose a preset or name@number" in unknown
    assert client_of(people.outsider).get("/algorithms/compare/", {"left": "mine@1"}).status_code == 302


def test_every_choice_but_the_plainest_names_its_source() -> None:
    without = {"NoBaseline", "NoTrustRegion", "NoCorrection", "MaskCorrection", "RejectCorrection", "Deviation"}
    kinds = {part.__name__ for part in all_parts() if "kind" in part.model_fields} - without
    assert kinds <= set(SOURCES)
    assert [part.sources for part in parts(PRESETS["gspo"].algorithm)][2] == ["Zheng 2025 (arXiv:2507.18071)"]


def test_every_source_is_of_something_that_exists() -> None:
    options = {f"{part.__name__}.{name}" for part in all_parts() for name in part.model_fields}
    known = {part.__name__ for part in all_parts()} | options
    assert {key.split("=")[0] for key in SOURCES} <= known


def test_an_own_algorithm_is_found_by_name_and_number_in_its_team(people: Any) -> None:
    save(people.team, people.member, "mine", GRPO, "")
    assert find(people.team, "mine@1") == GRPO
    assert find(people.other_team, "grpo") == GRPO
    assert ("mine@1", "mine@1") in choices(people.team)
    assert ("mine@1", "mine@1") not in choices(people.other_team)
    for reference in ("mine", "mine@2", "mine@x", "@1", ""):
        with pytest.raises(ValueError, match="choose a preset or name@number"):
            find(people.team, reference)
    with pytest.raises(ValueError, match="There is no algorithm"):
        find(people.other_team, "mine@1")


def test_a_deleted_algorithm_comes_back(people: Any, client_of: Clients) -> None:
    version, _ = save(people.team, people.member, "mine", GRPO, "")
    client, path = client_of(people.member), f"/algorithms/{version.algorithm_id}/"
    assert "mine was deleted." in client.post(f"{path}delete/", follow=True).content.decode()
    assert client.get(path).status_code == 404
    client.post(f"{path}restore/")
    assert client.get(path).status_code == 200


@pytest.mark.parametrize("path", ["{pk}/", "{pk}/1/", "{pk}/1.json", "{pk}/edit/"])
def test_an_outsider_finds_no_algorithm_of_another_team(people: Any, client_of: Clients, path: str) -> None:
    version, _ = save(people.team, people.member, "mine", GRPO, "")
    address = "/algorithms/" + path.format(pk=version.algorithm_id)
    assert client_of(people.outsider).get(address).status_code == 404
    assert client_of(people.member).get(address).status_code == 200


def test_an_outsider_changes_and_sees_nothing(people: Any, client_of: Clients) -> None:
    version, _ = save(people.team, people.member, "mine-own", GRPO, "")
    client, path = client_of(people.outsider), f"/algorithms/{version.algorithm_id}/"
    assert client.post(f"{path}edit/").status_code == 404
    assert client.post(f"{path}delete/").status_code == 404
    client_of(people.member).post(f"{path}delete/")
    assert client.post(f"{path}restore/").status_code == 404
    assert "mine-own" not in client.get("/algorithms/").content.decode()
    assert client.get("/algorithms/new/", {"from": "mine-own@1"}).status_code == 302


def test_a_viewer_reads_and_changes_nothing(people: Any, client_of: Clients) -> None:
    version, _ = save(people.team, people.member, "mine", GRPO, "")
    client, path = client_of(people.viewer), f"/algorithms/{version.algorithm_id}/"
    assert client.get(path).status_code == 200
    addresses = ["/algorithms/new/", "/algorithms/import/", f"{path}edit/", f"{path}delete/"]
    for refused in [client.post(address) for address in addresses]:
        assert refused.status_code == 403
        assert "only members and admins may create and change" in refused.content.decode()


def test_an_unknown_preset_is_404(people: Any, client_of: Clients) -> None:
    client = client_of(people.viewer)
    assert client.get("/algorithms/presets/none/").status_code == 404
    assert client.get("/algorithms/presets/none.json").status_code == 404


def test_an_odd_note_is_shown_as_text(people: Any, client_of: Clients) -> None:
    posted = {"name": "mine", "note": "<script>alert(1)</script> \x00", "preset": json.dumps("x")}
    page = client_of(people.member).post("/algorithms/new/", posted, follow=True)
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page.content.decode()
