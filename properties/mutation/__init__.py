"""Change the store by machine, and measure which changes the strategies find.

No module of this package imports the store when it is imported itself, so that a process can load a changed module
first.
"""
