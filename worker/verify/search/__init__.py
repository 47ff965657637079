"""Mode `auto`: the smallest set of islands with which the model meets its target on samples.

All islands of mode `rope` are candidates, but for those whose hazard a run does not show. One run of the model
observes what each would cost, how large its values get, and how far half would move its results. The candidates are
then ordered, and bisection finds how many of them are needed; every trial runs the whole model in emulated half.
"""
