"""Workspaces of episodes: the box in which the tools of an agent act, and the box of its verifier.

The orchestrator starts the box of the workspace (B) beside that of the agent (A). When the episode
has ended, it stops B, lets the engine copy files out, and starts the box of the verifier (C) from
the image and the tests of the task. Only a reward that C wrote counts. No box has a network.

* ``plans``: the images and settings of the boxes, once for each task of a run.
* ``episode_boxes``: starts, measures and stops the boxes of one attempt.
* ``disk_watch``: measures what a box writes, at once when the disk fills.
* ``healthcheck``: waits until B is ready for the agent.
* ``steps``: what happens between the steps of a task, and their common reward.
* ``artifacts``: chooses the files of B that C gets.
* ``verification``: copies these files, lets C verify them, and reads its rewards.
"""
