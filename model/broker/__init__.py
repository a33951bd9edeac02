"""Specify what a broker keeps beside its messages: tables, and the limits of settings."""
