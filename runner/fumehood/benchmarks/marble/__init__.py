"""MARBLE (MultiAgentBench): bargaining and the game of werewolf."""
