"""Files of stores read as rows, and the columns of every table."""
