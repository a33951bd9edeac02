"""The scoreboard: how soon each strategy kills each planted bug, measured with a budget, many seeds and censoring."""
