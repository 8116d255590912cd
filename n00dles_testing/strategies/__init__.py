"""Hypothesis strategies for runs, values, models, pipelines and crash plans.

What is drawn is data (`PipelineSpec`), and `build` makes the real thing of it in any process, so that whatever is found
by generation can be replayed by one token: `from_token(…)`. `predict` says what a pipeline has to do.
"""

from __future__ import annotations

from .attempts import ATTEMPTS_VARIABLE, AttemptsFile, AttemptsInMemory, counted_by
from .behaviour import PlannedFailure
from .build import build
from .codec import from_json, from_token, target_of, to_json, to_token
from .crash_plans import crash_plans
from .describe import describe
from .json_values import json_values
from .model_classes import build_model
from .models import instances, lossy_instances, model_specs, models
from .oracle import Prediction, predict
from .pipelines import pipelines
from .run_ids import run_ids
from .spec import (
    ALWAYS,
    BranchSpec,
    FanOutSpec,
    InputSpec,
    NestedSpec,
    NodeSpec,
    ParameterSpec,
    PipelineSpec,
    RouteSpec,
)
from .spec_error import SpecError
from .types import Choice, DictOf, FieldSpec, ListOf, ModelSpec, OneOf, OptionalOf, Record, TupleOf

__all__ = [
    "ALWAYS",
    "ATTEMPTS_VARIABLE",
    "AttemptsFile",
    "AttemptsInMemory",
    "BranchSpec",
    "Choice",
    "DictOf",
    "FanOutSpec",
    "FieldSpec",
    "InputSpec",
    "ListOf",
    "ModelSpec",
    "NestedSpec",
    "NodeSpec",
    "OneOf",
    "OptionalOf",
    "ParameterSpec",
    "PipelineSpec",
    "PlannedFailure",
    "Prediction",
    "Record",
    "RouteSpec",
    "SpecError",
    "TupleOf",
    "build",
    "build_model",
    "counted_by",
    "crash_plans",
    "describe",
    "from_json",
    "from_token",
    "instances",
    "json_values",
    "lossy_instances",
    "model_specs",
    "models",
    "pipelines",
    "predict",
    "run_ids",
    "target_of",
    "to_json",
    "to_token",
]
