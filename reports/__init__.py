"""Numbers, plots and the HTML page of a run. Reads result tables only; importing this loads neither plots nor pages."""
