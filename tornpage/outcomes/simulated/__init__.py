"""The simulators beside the code that they simulate."""
