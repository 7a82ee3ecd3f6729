"""What a run says of its judge, besides who it is."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class JudgeRule(_Strict):
    """One line of what the judge `rules` goes by."""

    answer: str = Field(description="What is answered where the rule fits.")
    criterion: str = Field("*", description="Name or pattern of the criteria that it is about.")
    contains: str = Field("", description="Words that one of the judged texts must hold.")


class JudgePrice(_Strict):
    """What the judge's model costs, dollars per million tokens."""

    input_usd_per_mtok: float = Field(ge=0)
    output_usd_per_mtok: float = Field(ge=0)


class JudgingConfig(_Strict):
    """How opinions are asked for; frozen in the run folder, so that they are counted alike again."""

    samples: int = Field(
        default=3, ge=1, le=25, description="How often a model is asked the same question."
    )
    output_tokens_max: int = Field(default=1024, ge=16, description="Of one reply.")
    temperature: float | None = Field(
        default=None, ge=0, le=2, description="The provider's own by default."
    )
    price: JudgePrice | None = Field(
        default=None, description="So that judging is counted in money."
    )
    rules: tuple[JudgeRule, ...] = Field(default=(), description="What the judge `rules` goes by.")
