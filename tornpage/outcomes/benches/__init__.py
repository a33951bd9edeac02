"""Show measurements as documents, texts and Markdown."""
