"""The steps of the main job, by what they look at; tornpage/proving.py puts them in order."""
