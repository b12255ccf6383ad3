"""The study: the paper's experiments from one call, with its numbers beside ours.

`plan` says what is to be trained, `cell` trains and measures one model, `running` and `cluster` do all of them,
`collected` reads what was found, and `tables`, `figures`, `findings` and `report` tell it.
"""
