"""The rules of AgentBench's card game, and its two baseline players.

Source: ``src/server/tasks/card_game`` of AgentBench's branch v0.2: ``logic/src`` (rules),
``AI/action1.py``, ``AI/action2.py`` and ``AI/sdk/ai_client.hpp`` (baselines). Only its tasks'
kinds of fish are here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fumehood.benchmarks.shared.seeded_choices import SeededChoices

SPRAY, FLAME, EEL, SUNFISH = KINDS = ("spray", "flame", "eel", "sunfish")
"""The kinds of each team, in the order of their positions if a game states no other order."""
GUESSED_KINDS = (*KINDS, "barracuda", "mobula", "octopus", "whiteshark", "hammerhead")
"""That the second baseline takes for possible."""
NORMAL, ACTIVE = "normal", "active"
HP, ATTACK = 400, 200
AOE, INFIGHT = (SPRAY, EEL), (FLAME, SUNFISH)
"""Kinds by their active ability: attack all enemies, or strengthen oneself at the cost of a
team-mate."""
DEFLECT, COUNTER = (EEL, SUNFISH), (SPRAY, FLAME)
"""Kinds by their passive ability."""
TURNS_MAX = 63
"""Of both sides together. The original allows 128 phases: two picks, and two of each turn."""
BASELINES = ("baseline1", "baseline2")


def new_team(kinds: Sequence[str] = KINDS) -> list[dict[str, Any]]:
    """Return a team at the start.

    Args:
        kinds: of its fish, by position.
    """
    return [
        {"kind": kind, "hp": HP, "attack": ATTACK, "wound": 0, "known": False, "dead": False}
        for kind in kinds
    ]


def position_of(kind: str, team: Sequence[dict[str, Any]]) -> int | None:
    """Return the position of the living fish of a kind; None if there is none."""
    return next((at for at in living(team) if team[at]["kind"] == kind), None)


def living(team: Sequence[dict[str, Any]]) -> list[int]:
    """Return the positions of the living fish."""
    return [at for at, fish in enumerate(team) if not fish["dead"]]


class Battle:
    """Carries out guesses and actions on two teams, which it changes."""

    def __init__(self, teams: list[list[dict[str, Any]]]) -> None:
        self.teams = teams
        self.passives: list[tuple[int, int, str]] = []
        """Side, position and name of the passive abilities that the last action triggered."""

    def guess(self, side: int, target: int, kind: str) -> bool:
        """Return whether a guess of ``side`` is right, which costs each enemy fish 50 health."""
        enemies = self.teams[1 - side]
        if enemies[target]["kind"] != kind:
            return False
        enemies[target]["known"] = True
        for fish in enemies:
            fish["hp"] = max(fish["hp"] - 50, 0)
        self._settle()
        return True

    def act(self, side: int, at: int, action: str, target: int) -> tuple[int, list[int]]:
        """Carry out a valid action.

        Args:
            side: that acts.
            at: position of its fish.
            action: ``normal`` or ``active``.
            target: position of an enemy, or of a team-mate for the ability ``INFIGHT``.

        Returns:
            The damage to each target, and the positions of the targets.
        """
        self.passives = []
        fish = self.teams[side][at]
        targets, damage = [target], fish["attack"] // 2
        if action == ACTIVE and fish["kind"] in INFIGHT:
            damage = 75
            self._damage(side, target, damage, from_enemy=False)
            fish["attack"] += 140
        else:
            if action == ACTIVE:
                targets = living(self.teams[1 - side])
                damage = 70 if fish["kind"] == SPRAY else int(fish["attack"] * 0.35)
            for enemy in targets:
                self._attack(side, at, enemy, damage)
        self._settle()
        return damage, targets

    def winner(self, side: int, turns: int) -> int | None:
        """Return the winner after a phase of ``side``; None if the game goes on.

        Args:
            side: that guessed or acted.
            turns: completed turns of both sides together.
        """
        counts = [len(living(team)) for team in self.teams]
        if turns < TURNS_MAX:
            if all(counts):
                return None
            return side if not any(counts) else counts.index(max(counts))
        health = [[max(fish["hp"], 0) for fish in team] for team in self.teams]
        ranks = [(count, sum(hps), max(hps)) for count, hps in zip(counts, health, strict=True)]
        return 0 if ranks[0] > ranks[1] else 1

    def _attack(self, side: int, at: int, target: int, damage: int) -> None:
        """Damage an enemy, whose team-mates may counter."""
        enemies = self.teams[1 - side]
        self._damage(1 - side, target, damage, from_enemy=True)
        if enemies[target]["hp"] < 0.3 * HP:
            for position, fish in enumerate(enemies):
                if fish["kind"] in COUNTER and not fish["dead"] and position != target:
                    self.passives.append((1 - side, target, "counter"))
                    self._damage(side, at, 30, from_enemy=False)

    def _damage(self, side: int, at: int, damage: int, *, from_enemy: bool) -> None:
        team = self.teams[side]
        fish = team[at]
        others = [position for position in living(team) if position != at]
        if fish["kind"] in DEFLECT and from_enemy and others:
            self.passives.append((side, at, "deflect"))
            for position in others:
                self._damage(side, position, int(damage * 0.3) // len(others), from_enemy=False)
            damage = int(damage * 0.7)
        fish["hp"] -= damage
        fish["wound"] += damage
        if fish["kind"] in DEFLECT and fish["wound"] >= 200:
            fish["attack"] += 40 * (fish["wound"] // 200)
            fish["wound"] %= 200

    def _settle(self) -> None:
        for team in self.teams:
            for fish in team:
                fish["dead"] = fish["dead"] or fish["hp"] <= 0


class Baseline:
    """One of the original's scripted players. Its choices depend on a seed, not on the clock."""

    def __init__(self, name: str, seed: int) -> None:
        self._name = name
        self._choices = SeededChoices("card_game", name, seed)

    def guess(self, enemies: Sequence[dict[str, Any]]) -> tuple[int, str] | None:
        """Return a position and a kind; None for no guess."""
        if self._name == BASELINES[0]:
            at, kind = self._choices.pick(living(enemies)), self._choices.pick(KINDS)
            return None if enemies[at]["known"] else (at, kind)
        hidden = [at for at in living(enemies) if not enemies[at]["known"]]
        known = [fish["kind"] for fish in enemies if fish["known"]]
        kinds = [kind for kind in GUESSED_KINDS if kind not in known]
        return (self._choices.pick(hidden), self._choices.pick(kinds)) if hidden else None

    def act(
        self,
        team: Sequence[dict[str, Any]],
        enemies: Sequence[dict[str, Any]],
        last_attacker: int | None,
    ) -> tuple[int, str, int]:
        """Return position, action and target.

        Args:
            team: of the baseline.
            enemies: the other team.
            last_attacker: position of the enemy that acted last; None before its first action.
        """
        own = self._choices.shuffled(living(team))
        others = self._choices.shuffled(living(enemies))
        if self._name == BASELINES[0]:
            return self._any_action(own[0], team, others)
        strongest = max(own, key=lambda at: team[at]["attack"])
        weakest = min(sorted(others), key=lambda at: enemies[at]["hp"])
        if team[strongest]["attack"] / 2 >= enemies[weakest]["hp"]:
            return strongest, NORMAL, weakest
        area = [at for kind in AOE for at in own if team[at]["kind"] == kind]
        if len(others) > 1 and area:
            return area[0], ACTIVE, 0
        return strongest, NORMAL, last_attacker if last_attacker in others else others[0]

    def _any_action(
        self, at: int, team: Sequence[dict[str, Any]], others: Sequence[int]
    ) -> tuple[int, str, int]:
        mates = [position for position in living(team) if position != at]
        is_normal = self._choices.below(10) < 3
        if not is_normal and team[at]["kind"] in AOE:
            return at, ACTIVE, 0
        if not is_normal and mates:
            return at, ACTIVE, self._choices.pick(mates)
        return at, NORMAL, others[0]
