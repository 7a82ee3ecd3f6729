"""Makes native suites: stories that have to be read, and troubles that have to be understood.

A *story* is something to do that takes several calls; a *trouble* is what stands in its way, for good, and
can be learnt from what the tools or the instruction say. Sending a refused call again never helps.
"""
