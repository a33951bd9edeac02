"""The judges: each looks at one recovered store and knows one numbered promise."""
