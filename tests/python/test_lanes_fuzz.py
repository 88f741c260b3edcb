"""Random models in lanes and by mj_step (``make fuzz-lanes`` runs more); what is wrong is seen."""

import xml.etree.ElementTree as ET
from collections import Counter
from pathlib import Path
from typing import Any

import closed_loop
import corpus
import lanes
import mujoco
import numpy as np
import pytest
import random_edits
import random_models
import shrink

from pyfastenv.vector.specs import assets_dir

MODELS = 20
KEPT = sorted((Path(lanes.__file__).parent / "lanes_models").glob("*.xml"))
SMALL = (
    "<mujoco><worldbody><geom name='floor' type='plane' size='5 5 1'/><body pos='0 0 .1'>"
    "<joint name='root' type='free'/><geom type='box' size='.1 .1 .1'/></body></worldbody></mujoco>"
)


# ---- not one bit differs -------------------------------------------------------------------------


def test_random_models() -> None:
    given = ["--seed", "20", "--models", str(MODELS), "--workers", "1"]
    results = list(lanes.fuzz(given))
    kinds = Counter(result["kind"] for result in results)
    wrong = [result for result in results if result["kind"] not in lanes.PROGRAM.fine]
    assert not wrong, f"{wrong[:3]}\nmore: python tests/fuzz/lanes.py --seed 20 --shrink NUMBER"
    assert kinds.total() == MODELS
    assert kinds["equal"] > 0.75 * MODELS
    left = np.array([result["left"] for result in results if result["kind"] == "equal"])
    assert np.mean(left < 0.5) > 0.7, "too many steps are left to mj_step to say anything of lanes"


@pytest.mark.parametrize("path", KEPT, ids=lambda path: path.stem)
def test_models_that_once_differed(path: Path) -> None:
    """Each was found by a fuzzer and shrunk; its name ends with the seed of its states."""
    model = mujoco.MjModel.from_xml_path(str(path))
    verdict = closed_loop.compare(model, int(path.stem.rsplit("-", 1)[1]))
    assert verdict.kind in ("equal", "refused"), f"{verdict.refusal} {verdict.difference}"
    assert verdict.steps or not verdict.refusal.startswith(closed_loop.DIFFER)


@pytest.mark.parametrize("robot", ["half_cheetah.xml", "ant.xml"])
def test_edited_robots(robot: str) -> None:
    kinds: Counter[str] = Counter()
    original = corpus.load(Path(assets_dir()) / robot)
    for number in range(5):
        model = original.__copy__()
        changed = random_edits.edit(model, np.random.default_rng(number))
        verdict = closed_loop.compare(model, number, steps=120)
        kinds[verdict.kind] += 1
        assert verdict.kind in ("equal", "refused"), f"{changed}: {verdict}"
    assert kinds["equal"] >= 2


# ---- what is wrong is seen -----------------------------------------------------------------------


def test_a_wrong_bit_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    right = closed_loop.theirs.rollout

    def wrong(*arguments: Any, **named: Any) -> Any:
        states, sensors = right(*arguments, **named)
        states[7, 3, 1] = np.nextafter(states[7, 3, 1], 1)
        return states, sensors

    model = mujoco.MjModel.from_xml_string(SMALL)
    assert closed_loop.compare(model, 0, steps=10).kind == "equal"
    monkeypatch.setattr(closed_loop.theirs, "rollout", wrong)
    verdict = closed_loop.compare(model, 0, steps=10)
    assert verdict.kind == "silent"
    assert verdict.difference is not None
    assert (verdict.difference.step, verdict.difference.rollout) == (3, 7)
    assert verdict.difference.element == "qpos[0] of joint root"
    assert verdict.difference.ours != verdict.difference.theirs


def test_the_sign_of_a_zero_is_a_difference() -> None:
    model = mujoco.MjModel.from_xml_string(SMALL)
    zeros = np.zeros((2, 1, 1 + model.nq + model.nv))
    assert closed_loop.first_difference(model, zeros, zeros.copy()) is None
    found = closed_loop.first_difference(model, zeros, -zeros)
    assert found is not None and (found.ours, found.theirs) == ("0.0", "-0.0")


def test_a_failing_model_becomes_small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever does not matter goes: elements with those that refer to them, attributes, digits."""

    def fails(root: ET.Element, seed: int, steps: int) -> int | None:
        text = random_models.render(root)
        mujoco.MjModel.from_xml_string(text)
        hinges = [j for j in root.iter("joint") if j.get("range") and "actuator" in text]
        return 5 if hinges and "motor" in text else None

    monkeypatch.setattr(shrink, "fails", lambda *given: _compiles(fails, *given))
    root = ET.fromstring(
        "<mujoco><option timestep='.001'/><worldbody><body name='a' pos='.123456 0 0'>"
        "<joint name='j' type='hinge' range='-.123456 1'/><geom size='.1234'/><body name='b'>"
        "<joint name='k'/><geom size='.1'/></body></body></worldbody>"
        "<actuator><motor joint='k'/><motor joint='j' ctrlrange='-1 1'/></actuator></mujoco>"
    )
    small = shrink.shrunk(root, 0, 600.0)
    assert len(list(root.iter())) > len(list(small.iter())) == 7
    assert small.find(".//joint").attrib == {"name": "j", "type": "hinge", "range": "-0.1 1"}


def _compiles(fails: Any, *given: Any) -> int | None:
    try:
        return fails(*given)
    except ValueError:
        return None


# ---- models and edits ----------------------------------------------------------------------------


def test_models_are_many_and_repeatable() -> None:
    texts = [random_models.render(random_models.draw(5, number)) for number in range(30)]
    assert len(set(texts)) == 30
    assert texts == [random_models.render(random_models.draw(5, i)) for i in range(30)]


def test_models_have_what_they_should() -> None:
    """Every feature is in a few percent of the models at least."""
    texts = [random_models.render(random_models.draw(6, number)) for number in range(200)]
    for feature in (
        'type="free"', 'type="ball"', 'type="slide"', 'type="hinge"', 'type="mesh"',
        'type="hfield"', 'type="capsule"', 'type="box"', 'type="ellipsoid"', 'type="cylinder"',
        "<fixed", "<spatial", "<connect", "<weld", "<pair", "<exclude", "frictionloss", "gravcomp",
        "actuatorfrcrange", "springref", "condim=", "margin=", "gap=", "solimp=", "solref=",
        'cone="elliptic"', 'solver="PGS"', 'integrator="RK4"', 'integrator="implicitfast"',
        "<damper", "<intvelocity", "<cylinder", "dyntype=", "forcerange", "density=", "impratio",
    ):  # fmt: skip
        assert sum(feature in text for text in texts) >= 4, feature


def test_most_models_compile() -> None:
    good = 0
    for number in range(40):
        try:
            mujoco.MjModel.from_xml_string(random_models.render(random_models.draw(7, number)))
        except ValueError:
            continue
        good += 1
    assert good >= 38


def test_edits_change_what_they_name() -> None:
    original = corpus.load(Path(assets_dir()) / "ant.xml")
    names: set[str] = set()
    for number in range(60):
        model = original.__copy__()
        changed = random_edits.edit(model, np.random.default_rng(number))
        names.update(changed)
        for name in set(changed) & set(random_edits.FIELDS):
            assert getattr(model, name).shape == getattr(original, name).shape
    assert {"geom_size", "geom_margin", "body_ipos", "integrator", "gravity"} <= names


def test_scenes_keep_their_sensors(tmp_path: Path) -> None:
    path = tmp_path / "scene.xml"
    path.write_text(SMALL.replace("</mujoco>", "<sensor><clock/></sensor></mujoco>"))
    assert corpus.load(path).nsensordata == 1
    assert corpus.digest(corpus.load(path)) != corpus.digest(mujoco.MjModel.from_xml_string(SMALL))
