"""S03 and S04: which part is the store's duty, and which its context's; what counts as a refusal."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from n00dles_testing.conformance import check_store
from n00dles_testing.conformance.mutants.correct import JSONFiles
from n00dles_testing.conformance.refusals import text_of
from n00dles_testing.verdicts import ClauseResult, Verdict

HERE = f"{Path(__file__)}"
TOO_LARGE = 64


class PicklesRuns(JSONFiles):
    """Has a form for everything, and gives everything back."""

    def read(self, run_id: str) -> Any:
        path = self.path(run_id)
        return pickle.loads(path.read_bytes()) if path.exists() else None

    def write(self, run_id: str, record: dict[str, Any]) -> None:
        self.path(run_id).write_bytes(pickle.dumps(record))


class PicklesAndTrustsNobody(PicklesRuns):
    """Saves what it then refuses to load."""

    def read(self, run_id: str) -> Any:
        record = super().read(run_id)
        if record is not None and b"decimal" in self.path(run_id).read_bytes():
            raise pickle.UnpicklingError("decimal.Decimal is not allowed here")
        return record


class RefusesWhatIsTooLarge(JSONFiles):
    """Has 64 bits for a number, and says of which node one has more."""

    message = "node {node!r}: an integer does not fit 64 bits"

    def write(self, run_id: str, record: dict[str, Any]) -> None:
        for node, output in [*record["completed"].items(), *record["inputs"].items()]:
            value = output.get("value") if isinstance(output, dict) else None
            if type(value) is int and value.bit_length() > TOO_LARGE:
                self.refuse(node, run_id, record)
        super().write(run_id, record)

    def refuse(self, node: str, run_id: str, record: dict[str, Any]) -> None:
        raise OverflowError(f"node {node!r}: an integer does not fit 64 bits")


class RefusesInANote(RefusesWhatIsTooLarge):
    def refuse(self, node: str, run_id: str, record: dict[str, Any]) -> None:
        error = OverflowError("an integer does not fit 64 bits")
        error.add_note(f"it is an output of {node}")
        raise error


class RefusesAndForgetsWhatWasThere(RefusesWhatIsTooLarge):
    def refuse(self, node: str, run_id: str, record: dict[str, Any]) -> None:
        self.path(run_id).unlink(missing_ok=True)
        super().refuse(node, run_id, record)


class PicklesSecretsByTheirDump(PicklesRuns):
    """Revives a model with a secret from its dump: asterisks come back, which print like the secret itself."""

    def write(self, run_id: str, record: dict[str, Any]) -> None:
        outputs = record["completed"].items()
        super().write(run_id, {**record, "completed": {node: revived(output) for node, output in outputs}})


def revived(output: Any) -> Any:
    if isinstance(output, list) and isinstance(output[0], BaseModel) and "password" in type(output[0]).model_fields:
        return [type(output[0]).model_validate(output[0].model_dump(mode="json"))]
    return output


def s04_of(target: str) -> ClauseResult:
    [result] = check_store(target, clauses=["S04"]).results
    return result


def s03_of(target: str) -> ClauseResult:
    [result] = check_store(target, clauses=["S03"]).results
    return result


def test_a_store_that_takes_only_contexts_is_not_handed_what_they_refuse() -> None:
    result = s03_of("memory://")

    assert result.verdict is Verdict.PASS
    assert "the store takes only contexts, which refuse what JSON cannot hold" in result.reason


def test_a_store_with_a_form_for_everything_passes() -> None:
    result = s03_of(f"{HERE}:PicklesRuns")

    assert (result.verdict, result.reason) == (Verdict.PASS, "")


def test_what_the_json_module_bends_is_a_note_and_no_fault() -> None:
    result = s03_of("n00dles_testing.conformance.mutants.correct:JSONFiles")

    assert result.verdict is Verdict.PASS
    assert "values that only a context refuses: a key that is a number, keys that collide, " in result.reason


def test_what_is_saved_and_cannot_be_loaded_is_a_fault() -> None:
    result = s03_of(f"{HERE}:PicklesAndTrustsNobody")

    assert result.verdict is Verdict.FAIL
    assert result.reason.startswith("load_or_create raised UnpicklingError: decimal.Decimal is not allowed here")
    assert "the output is a Decimal" in result.findings[0].story


@pytest.mark.parametrize("store", ["RefusesWhatIsTooLarge", "RefusesInANote"])
def test_a_refusal_that_names_the_node_is_told_and_is_no_fault(store: str) -> None:
    result = s03_of(f"{HERE}:{store}")

    assert result.verdict is Verdict.PASS
    assert "refused, naming the node: 10**40" in result.reason


def test_a_refusal_that_loses_the_record_before_is_a_fault() -> None:
    result = s03_of(f"{HERE}:RefusesAndForgetsWhatWasThere")

    assert result.verdict is Verdict.FAIL
    assert result.findings[0].message == "completed['before'] is missing; it should be 'kept'"


def test_values_are_read_in_a_fresh_process() -> None:
    result = s03_of("n00dles_testing.conformance.mutants.s03:ReadsLargeNumbersAsDoubles")

    assert result.findings[0].story[0] == "scenario the values that were kept, read in a fresh process"
    assert result.findings[0].message.startswith(
        "completed['value021']['value'] is 1.8446744073709552e+19 (float), not"
    )


def test_the_text_of_an_error_is_that_of_all_behind_it_once() -> None:
    inner = ValueError("inner")
    inner.add_note("a note")
    outer = RuntimeError("outer")
    outer.__cause__ = inner
    inner.__context__ = outer

    assert text_of(outer) == "outer\ninner\na note"


def test_a_store_that_takes_only_contexts_gets_no_models() -> None:
    result = s04_of("memory://")

    assert (result.verdict, result.scenarios) == (Verdict.PASS, 15)
    assert result.reason.endswith("the store takes only contexts, which make the dump")


def test_a_store_may_give_back_the_models_themselves() -> None:
    result = s04_of(f"{HERE}:PicklesRuns")

    assert (result.verdict, result.reason) == (Verdict.PASS, "")


def test_a_model_that_only_looks_the_same_is_a_fault() -> None:
    result = s04_of(f"{HERE}:PicklesSecretsByTheirDump")

    assert result.verdict is Verdict.FAIL
    assert "the output is a secret in a model" in result.findings[0].story


def test_a_lost_field_is_told_with_the_model_that_has_it() -> None:
    finding = s04_of("n00dles_testing.conformance.mutants.s04:DropsFieldsOfSubclasses").findings[0]

    assert "the output is a subclass in a field declared as its base" in finding.story
    assert finding.message == (
        "completed['researcher'] is [{'fact': {'title': 'Cats'}}], not [{'fact': {'title': 'Cats', 'score': 0.5}}]"
    )


def test_the_text_of_an_error_has_nothing_of_what_was_hidden() -> None:
    outer = RuntimeError("outer")
    outer.__context__ = ValueError("inner")
    outer.__suppress_context__ = True

    assert text_of(outer) == "outer"
