"""Specify what a store serves from files that are damaged in several places."""
