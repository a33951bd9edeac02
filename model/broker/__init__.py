"""Specify what a broker keeps beside its messages: broker tables, and the limits of settings."""
