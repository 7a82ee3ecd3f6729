"""MARBLE (MultiAgentBench): a database to be diagnosed, a bargain, a village with wolves."""
