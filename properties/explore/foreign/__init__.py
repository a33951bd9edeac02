"""Run crash campaigns on foreign stores."""
