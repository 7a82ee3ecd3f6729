"""Every rule by which seats talk to each other."""

from __future__ import annotations

from collections.abc import Callable

from fumehood.core.conversation import Conversation, ConversationSpec, TurnPolicy
from fumehood.core.episode_spec import EpisodeSpec
from fumehood.core.errors import SpecError
from fumehood.core.json_values import JsonObject
from fumehood.core.registry import Registry
from fumehood.core.tools import World

ModeratorFactory = Callable[[JsonObject, tuple[str, ...]], TurnPolicy]
"""Makes a turn_policy of its settings and the names of the seats; raises SpecError for unusable settings."""

BY_WORLD = "world"
"""The rule of worlds that say themselves who speaks next."""

TURN_POLICIES: Registry[ModeratorFactory] = Registry(
    "turn policy",
    {
        "dialogue": "fumehood.turn_policies.policies:Dialogue",
        "round": "fumehood.turn_policies.policies:Round",
        "supervisor": "fumehood.turn_policies.policies:Supervisor",
    },
)


def converse(spec: EpisodeSpec, world: World) -> Conversation | None:
    """Return the conversation of an episode's seats; None where each works for itself.

    Raises:
        InputError: there is no such rule, or it cannot be used here.
    """
    given = spec.conversation
    return None if given is None else Conversation(_moderator(given, spec, world))


def _moderator(given: ConversationSpec, spec: EpisodeSpec, world: World) -> TurnPolicy:
    if any(seat.further_turns for seat in spec.seats):
        raise SpecError(
            "seats.further_turns", "are not of a conversation: there, others say what is next"
        )
    if given.rule != BY_WORLD:
        return TURN_POLICIES.load(given.rule)(
            given.settings, tuple(seat.name for seat in spec.seats)
        )
    if not isinstance(world, TurnPolicy):
        raise SpecError("conversation.rule", f"the world {spec.world!r} does not moderate")
    return world
