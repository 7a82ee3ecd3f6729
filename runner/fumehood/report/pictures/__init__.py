"""Pictures as data: Vega-Lite specifications, drawn to SVG when a report is written."""
